"""mmengine: a Runner with hooks, a schedule and a metric, its checkpoints, and its registry."""

import numpy as np
import torch
from mmengine.dataset import DefaultSampler
from mmengine.evaluator import BaseMetric
from mmengine.model import BaseModel
from mmengine.runner import Runner
from recording import array, fill, record


class Classifier(BaseModel):
    """A linear model."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x, y, mode="tensor"):
        """Return losses or predictions."""
        output = self.linear(x)
        if mode == "loss":
            losses.append(torch.nn.functional.cross_entropy(output, y))
            return {"loss": losses[-1]}
        return output.argmax(1), y


class Accuracy(BaseMetric):
    """The share of correct classes."""

    def process(self, batch, samples):
        """Keep one batch."""
        self.results.append((samples[0] == samples[1]).float().mean().item())

    def compute_metrics(self, results):
        """Return the mean."""
        return {"accuracy": float(np.mean(results))}


losses: list[torch.Tensor] = []
data = [(array(i, 4), i % 3) for i in range(16)]
loader = {
    "dataset": data,
    "batch_size": 4,
    "sampler": DefaultSampler(data, shuffle=False),
    "collate_fn": {"type": "default_collate"},
}
runner = Runner(
    fill(Classifier()),
    "work",
    train_dataloader=loader,
    val_dataloader=loader,
    train_cfg={"by_epoch": True, "max_epochs": 3, "val_interval": 1},
    val_cfg={},
    optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.1, "momentum": 0.9}},
    param_scheduler={"type": "MultiStepLR", "milestones": [2]},
    val_evaluator=[Accuracy()],
)
runner.train()
record("losses", [loss.item() for loss in losses])
record("weight", runner.model.linear.weight)
record("saved", sorted(torch.load("work/epoch_3.pth", weights_only=False)))
