"""What passes through: compile, jit, profilers, and settings that promise speed."""

import warnings

import torch
import torch._dynamo
import torch.backends.cudnn as cudnn
import torch.nn as nn
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils.data import DataLoader

warnings.simplefilter("ignore")
cudnn.enabled, cudnn.benchmark, cudnn.deterministic = True, False, True
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
torch.set_float32_matmul_precision("high")
torch.use_deterministic_algorithms(True, warn_only=True)
torch.set_num_threads(1)
torch.set_num_interop_threads(1)
torch._dynamo.config.suppress_errors = True
print(torch.get_num_threads(), torch.are_deterministic_algorithms_enabled())
print(torch.get_float32_matmul_precision(), torch.backends.mps.is_available())
device = (
    "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
)
print(device, torch.cuda.device_count(), torch.version.cuda is None or torch.version.cuda)
print(torch.cuda.memory_allocated(), torch.cuda.is_initialized())


@torch.jit.script
def gelu(x):
    return x * 0.5 * (1.0 + torch.erf(x / 1.4142135381698608))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        nn.init.constant_(self.fc.weight, 0.5)
        nn.init.zeros_(self.fc.bias)

    def forward(self, x):
        if x.sum() > 100:
            x = x / 2
        return gelu(self.fc(x))


net = Net().eval()
traced = torch.jit.trace(net, torch.ones(1, 3))
scripted = torch.jit.script(net)
print(traced(torch.ones(2, 3)).tolist() == net(torch.ones(2, 3)).tolist(), scripted is not None)
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
    with record_function("model_inference"):
        net(torch.ones(2, 3))
print("model_inference" in prof.key_averages().table(sort_by="cpu_time_total", row_limit=30))
with torch.autograd.set_detect_anomaly(True):
    net(torch.ones(1, 3)).sum().backward()
print(net.fc.weight.grad.shape == net.fc.weight.shape)
print(len(DataLoader([1, 2, 3], batch_size=2)), torch.finfo(torch.float16).max)
torch.manual_seed(3)
a = torch.rand(3)
torch.manual_seed(3)
print(torch.equal(a, torch.rand(3)), torch.initial_seed())
torch.set_printoptions(precision=2, sci_mode=False, linewidth=60)
print(torch.tensor([1.23456, 2.0]), torch.arange(3), torch.tensor(True))
print(torch.__version__ >= "1.8", tuple(int(v) for v in torch.__version__.split(".")[:2]) > (1, 9))
