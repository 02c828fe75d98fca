"""Per-sample gradients, Jacobians, Hessians and batches of functions with torch.func."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vjp,
    vmap,
)

rng = np.random.default_rng(0)
model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
for p in model.parameters():
    p.data = torch.from_numpy(rng.normal(0, 0.5, tuple(p.shape)).astype(np.float32))
x = torch.from_numpy(rng.normal(size=(5, 4)).astype(np.float32))
y = torch.from_numpy(rng.integers(0, 3, 5))
params = {k: v.detach() for k, v in model.named_parameters()}
buffers = {k: v.detach() for k, v in model.named_buffers()}


def compute_loss(params, buffers, sample, target):
    out = functional_call(model, (params, buffers), (sample.unsqueeze(0),))
    return F.cross_entropy(out, target.unsqueeze(0))


per_sample = vmap(grad(compute_loss), in_dims=(None, None, 0, 0))(params, buffers, x, y)
print({k: tuple(v.shape) for k, v in per_sample.items()})
F.cross_entropy(model(x), y, reduction="sum").backward()
for name, p in model.named_parameters():
    assert torch.allclose(per_sample[name].sum(0), p.grad, atol=1e-5)
print([f"{g.norm().item():.4f}" for g in per_sample.values()])
print(any(g.requires_grad for g in per_sample.values()))


def f(v):
    return torch.sin(v) * v.sum()


v = torch.tensor([0.5, 1.0, -0.3])
print(jacrev(f)(v).numpy().round(4).tolist())
print(torch.allclose(jacrev(f)(v), jacfwd(f)(v), atol=1e-6))
print(hessian(lambda v: f(v).sum())(v).numpy().round(4).tolist())
out, pull = vjp(f, v)
print(pull(torch.ones(3))[0].numpy().round(4).tolist())
out, tangent = jvp(f, (v,), (torch.ones(3),))
print(tangent.numpy().round(4).tolist(), tangent.requires_grad)
g, (value, aux) = grad_and_value(lambda a, b: ((a * b).sum(), a), argnums=(0, 1), has_aux=True)(
    v, v
)
print([t.numpy().round(3).tolist() for t in g], round(value.item(), 4), aux.shape[0])
print(grad(grad(grad(torch.sin)))(torch.tensor(0.3)).item().__round__(5))
w = torch.ones(3, requires_grad=True)
grad(lambda a: (a**2 * w).sum())(v).sum().backward()
print(w.grad.tolist())

models = [nn.Linear(4, 2) for _ in range(3)]
for i, m in enumerate(models):
    m.weight.data.fill_(i + 1.0)
    m.bias.data.zero_()
stacked, _ = stack_module_state(models)
base = models[0]
ensemble = vmap(lambda p, s: functional_call(base, p, (s,)), in_dims=(0, None))(stacked, x)
print(tuple(ensemble.shape), f"{ensemble.sum().item():.3f}")
print(vmap(torch.dot)(x, x).shape[0], tuple(vmap(torch.outer, out_dims=1)(x, x).shape))
print(tuple(vmap(vmap(torch.mul), in_dims=(0, None))(x, x[0]).shape))
