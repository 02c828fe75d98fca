"""thop: operations and parameters of models, with a rule for a layer of one's own."""

import torch
import torchvision
from recording import record
from thop import clever_format, profile


class Double(torch.nn.Module):
    """A layer of one's own."""

    def forward(self, x):
        """Return twice the input."""
        return 2 * x


def count(module, inputs, output):
    """Count an operation for each element."""
    module.total_ops += torch.DoubleTensor([int(output.numel())])


for name in ("resnet18", "mobilenet_v2"):
    model = torch.nn.Sequential(getattr(torchvision.models, name)(), Double())
    numbers = profile(
        model, (torch.zeros(1, 3, 64, 64),), custom_ops={Double: count}, verbose=False
    )
    record(name, list(numbers))
    record(f"{name} text", list(clever_format(numbers, "%.3f")))
