"""An optimizer, a schedule and a sampler of one's own, on the base classes."""

import math

import numpy as np
import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import _LRScheduler
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, get_worker_info


class Lion(Optimizer):
    def __init__(self, params, lr=1e-2, betas=(0.9, 0.99), weight_decay=0.0):
        if lr <= 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data.mul_(1 - group["lr"] * group["weight_decay"])
                state = self.state[p]
                if len(state) == 0:
                    state["exp_avg"] = torch.zeros_like(p)
                    state["step"] = 0
                state["step"] += 1
                exp_avg, (beta1, beta2) = state["exp_avg"], group["betas"]
                update = exp_avg * beta1 + p.grad * (1 - beta1)
                p.add_(torch.sign(update), alpha=-group["lr"])
                exp_avg.mul_(beta2).add_(p.grad, alpha=1 - beta2)
        return loss


class WarmupCosine(_LRScheduler):
    def __init__(self, optimizer, warmup, total, last_epoch=-1):
        self.warmup, self.total = warmup, total
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        if self.last_epoch < self.warmup:
            factor = (self.last_epoch + 1) / self.warmup
        else:
            done = (self.last_epoch - self.warmup) / (self.total - self.warmup)
            factor = 0.5 * (1 + math.cos(math.pi * done))
        return [base * factor for base in self.base_lrs]


class EvenFirst(Sampler):
    def __init__(self, source):
        self.source = source

    def __iter__(self):
        n = len(self.source)
        return iter([*range(0, n, 2), *range(1, n, 2)])

    def __len__(self):
        return len(self.source)


class Rows(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "y": self.y[i], "name": f"row{i}"}


class Stream(IterableDataset):
    def __iter__(self):
        assert get_worker_info() is None
        yield from (np.float32(i) for i in range(7))


rng = np.random.default_rng(0)
x = torch.from_numpy(rng.normal(size=(30, 4)).astype(np.float32))
y = x @ torch.tensor([1.0, -2.0, 0.5, 0.0])
model = torch.nn.Linear(4, 1)
torch.nn.init.zeros_(model.weight)
torch.nn.init.zeros_(model.bias)
optimizer = Lion([{"params": [model.weight]}, {"params": [model.bias], "lr": 0.001}], lr=0.05)
scheduler = WarmupCosine(optimizer, 5, 30)
loader = DataLoader(Rows(x, y), batch_size=10, sampler=EvenFirst(x))
for epoch in range(10):
    for batch in loader:
        loss = torch.nn.functional.l1_loss(model(batch["x"]).squeeze(-1), batch["y"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    if epoch % 3 == 0:
        print(f"{epoch} {loss.item():.4f} {[round(v, 5) for v in scheduler.get_last_lr()]}")
print(batch["name"][:3], tuple(batch["x"].shape))
state = optimizer.state_dict()
print(sorted(state["state"][0]), [g["lr"] < 0.05 for g in state["param_groups"]])
again = Lion([{"params": [model.weight]}, {"params": [model.bias]}])
again.load_state_dict(state)
print(torch.equal(again.state[model.weight]["exp_avg"], optimizer.state[model.weight]["exp_avg"]))
print([b.tolist() for b in DataLoader(Stream(), batch_size=3)])
print(isinstance(scheduler, torch.optim.lr_scheduler.LRScheduler), optimizer.defaults["lr"])
optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(2))]})
print(len(optimizer.param_groups))
