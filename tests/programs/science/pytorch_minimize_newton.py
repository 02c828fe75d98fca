"""pytorch-minimize: Rosenbrock's function by five methods, least squares, and as an optimizer."""

import torch
from recording import array, record
from torchmin import Minimizer, least_squares, minimize
from torchmin.benchmarks import rosen

start = torch.tensor([1.3, 0.7, 0.8, 1.9, 1.2], dtype=torch.float64)
names = "bfgs l-bfgs cg newton-cg newton-exact"
for method in names.split():
    result = minimize(rosen, start, method=method, max_iter=100)
    record(f"{method} x", result.x, rtol=1e-2)
    record(f"{method} success", bool(result.success))
fit = least_squares(lambda p: p[0] * torch.exp(p[1] * torch.linspace(0, 1, 9)) - 2, torch.ones(2))
record("squares", fit.x, rtol=1e-2, atol=1e-3)
model = torch.nn.Linear(3, 1).double()
x, y = array(0, 20, 3, dtype=torch.float64), array(1, 20, 1, dtype=torch.float64)
optimizer = Minimizer(model.parameters(), method="newton-exact", max_iter=20)


def closure():
    """Return the loss."""
    optimizer.zero_grad()
    return (model(x) - y).square().mean()


optimizer.step(closure)
record("weight", model.weight, rtol=5e-3)
