"""Weight and spectral norm, in both spellings of PyTorch."""

import copy

import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils import (
    parametrizations,
    parametrize,
    remove_weight_norm,
    spectral_norm,
    weight_norm,
)

rng = np.random.default_rng(0)


def fixed(layer):
    for p in layer.parameters():
        p.data = torch.from_numpy(rng.normal(0, 0.5, tuple(p.shape)).astype(np.float32))
    return layer


layer = weight_norm(fixed(nn.Linear(4, 3)), name="weight")
print(sorted(n for n, _ in layer.named_parameters()), tuple(layer.weight_g.shape))
x = torch.from_numpy(rng.normal(size=(5, 4)).astype(np.float32))
out = layer(x)
out.pow(2).sum().backward()
print(f"{out.sum().item():.4f} {layer.weight_g.grad.norm().item():.4f}")
with torch.no_grad():
    layer.weight_g.mul_(2)
doubled = layer(x)
clone = copy.deepcopy(nn.Sequential(fixed(nn.Linear(4, 4)), nn.Tanh()))
print(f"{doubled.sum().item():.4f}", len(list(clone.parameters())))
remove_weight_norm(layer)
print(sorted(n for n, _ in layer.named_parameters()), torch.allclose(layer(x), doubled))
conv = weight_norm(fixed(nn.Conv1d(2, 4, 3, dilation=2, padding=2)))
print(tuple(conv(torch.ones(1, 2, 6)).shape), tuple(conv.weight_v.shape))

new = parametrizations.weight_norm(fixed(nn.Linear(4, 3)))
print(parametrize.is_parametrized(new), sorted(new.state_dict()))
parametrize.remove_parametrizations(new, "weight")
print(sorted(new.state_dict()))

critic = spectral_norm(fixed(nn.Conv2d(2, 4, 3)))
print(sorted(critic.state_dict()))
for _ in range(40):
    critic(torch.ones(1, 2, 5, 5))
sigma = torch.linalg.svdvals(critic.weight.detach().flatten(1))[0]
print(f"largest singular value {sigma.item():.3f}")
critic.eval()
a, b = critic(torch.ones(1, 2, 5, 5)), critic(torch.ones(1, 2, 5, 5))
print(torch.equal(a, b))
linear = parametrizations.spectral_norm(fixed(nn.Linear(6, 6)), n_power_iterations=5)
for _ in range(20):
    linear(torch.ones(1, 6))
print(f"{torch.linalg.matrix_norm(linear.weight, 2).item():.3f}")
