"""Learning to learn: adapted parameters in a functional call, gradients through the adaptation."""

from collections import OrderedDict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call

rng = np.random.default_rng(0)
model = nn.Sequential(
    OrderedDict(
        [("l1", nn.Linear(1, 20)), ("r1", nn.Tanh()), ("l2", nn.Linear(20, 20)), ("r2", nn.Tanh())]
    )
)
model.add_module("l3", nn.Linear(20, 1))
for p in model.parameters():
    p.data = torch.from_numpy(rng.normal(0, 0.4, tuple(p.shape))).float()


def task():
    amplitude, phase = rng.uniform(0.1, 2.0), rng.uniform(0, np.pi)

    def sample(k):
        x = rng.uniform(-3, 3, (k, 1))
        return torch.from_numpy(x).float(), torch.from_numpy(amplitude * np.sin(x + phase)).float()

    return sample


def adapt(params, x, y, steps=1, lr=0.05, first_order=False):
    for _ in range(steps):
        loss = F.mse_loss(functional_call(model, params, (x,)), y)
        grads = torch.autograd.grad(loss, tuple(params.values()), create_graph=not first_order)
        params = OrderedDict(
            (name, p - lr * g) for (name, p), g in zip(params.items(), grads, strict=True)
        )
    return params


meta = torch.optim.Adam(model.parameters(), lr=5e-3)
for iteration in range(12):
    meta.zero_grad()
    meta_loss = torch.tensor(0.0)
    for _ in range(4):
        sample = task()
        params = OrderedDict(model.named_parameters())
        fast = adapt(params, *sample(10), first_order=iteration % 2 == 1)
        x, y = sample(10)
        meta_loss = meta_loss + F.mse_loss(functional_call(model, fast, x), y)
    (meta_loss / 4).backward()
    meta.step()
    if iteration % 4 == 0:
        print(f"{iteration} {meta_loss.item() / 4:.4f}")
norms = [f"{p.grad.norm().item():.4f}" for p in model.parameters()]
print(norms)
