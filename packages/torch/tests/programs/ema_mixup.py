"""Averages of weights, mixup, gradient accumulation, and a schedule with warm-up."""

import copy
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import LambdaLR
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn


class EMA:
    def __init__(self, model, decay):
        self.module = copy.deepcopy(model).eval()
        self.decay = decay
        for p in self.module.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for e, m in zip(
            self.module.state_dict().values(), model.state_dict().values(), strict=True
        ):
            if e.dtype.is_floating_point:
                e.copy_(self.decay * e + (1.0 - self.decay) * m)
            else:
                e.copy_(m)


def mixup_data(x, y, alpha, rng):
    lam = rng.beta(alpha, alpha)
    index = torch.from_numpy(rng.permutation(x.size(0)))
    return lam * x + (1 - lam) * x[index, :], y, y[index], lam


rng = np.random.default_rng(0)
model = nn.Sequential(nn.Linear(10, 20), nn.BatchNorm1d(20), nn.SiLU(), nn.Linear(20, 3))
for p in model.parameters():
    p.data.copy_(torch.from_numpy(rng.normal(0, 0.3, p.shape)))
ema = EMA(model, decay=0.9)
x = torch.from_numpy(rng.normal(size=(96, 10)).astype(np.float32))
y = x[:, :3].argmax(dim=1)
decay, no_decay = [], []
for name, p in model.named_parameters():
    (no_decay if p.ndim == 1 or name.endswith("bias") else decay).append(p)
optimizer = torch.optim.AdamW(
    [{"params": decay}, {"params": no_decay, "weight_decay": 0.0}], lr=1e-2, weight_decay=0.05
)


def warmup(step, total=24, start=4):
    if step < start:
        return (step + 1) / start
    return 0.5 * (1 + math.cos(math.pi * (step - start) / (total - start)))


scheduler = LambdaLR(optimizer, lr_lambda=warmup)
accumulation = 4
for step in range(24):
    optimizer.zero_grad()
    total = 0.0
    for part in range(accumulation):
        xs, ys = x[part::accumulation], y[part::accumulation]
        xs, ya, yb, lam = mixup_data(xs, ys, 0.4, rng)
        out = model(xs)
        loss = lam * F.cross_entropy(out, ya) + (1 - lam) * F.cross_entropy(out, yb)
        (loss / accumulation).backward()
        total += loss.item() / accumulation
    optimizer.step()
    scheduler.step()
    ema.update(model)
    if step % 6 == 0:
        print(f"{step} loss {total:.4f} lr {scheduler.get_last_lr()[0]:.6f}")
model.eval()
right = (ema.module(x).argmax(1) == y).sum().item()
print(f"# right {right} of 96, ema norm {ema.module[0].weight.norm().item():.3f}")

swa_model = AveragedModel(model)
swa_scheduler = SWALR(optimizer, swa_lr=5e-3, anneal_epochs=2)
model.train()
for _ in range(4):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    swa_model.update_parameters(model)
    swa_scheduler.step()
update_bn([x[:48], x[48:]], swa_model)
print(int(swa_model.n_averaged), f"{optimizer.param_groups[0]['lr']:.6f}")
print(f"mean {swa_model.module[1].running_mean.norm().item():.3f}")
