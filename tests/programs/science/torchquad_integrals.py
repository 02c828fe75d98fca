"""torchquad: integrals by five rules, their gradient by the bounds, Monte Carlo with a seed."""

import torch
from recording import record
from torchquad import VEGAS, Boole, GaussLegendre, MonteCarlo, Simpson, Trapezoid
from torchquad.utils.set_precision import set_precision

set_precision("double", backend="torch")


def curve(x):
    """Return the integrand."""
    return torch.sin(x).sum(dim=1) * torch.exp(-x.square().sum(dim=1))


domain = [[0.0, 1.0], [-1.0, 2.0]]
for rule in (Trapezoid, Simpson, Boole, GaussLegendre):
    record(rule.__name__, rule().integrate(curve, 2, 1369, domain, backend="torch"))
record("mc", MonteCarlo().integrate(curve, 2, 10000, domain, seed=3, backend="torch"), rtol=1e-2)
record("vegas", VEGAS().integrate(curve, 2, 10000, domain, seed=3, backend="torch"), rtol=3e-2)
bounds = torch.tensor(domain, requires_grad=True)
Simpson().integrate(curve, 2, 1369, bounds).backward()
record("gradient", bounds.grad)
