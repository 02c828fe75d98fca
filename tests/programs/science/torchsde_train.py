"""torchsde: solvers with a given Brownian path, and 20 steps of training, also by the adjoint."""

import numpy as np
import torch
import torchsde
from recording import fill, record
from torch import nn

SHAPE = (8, 3)


class Path(torchsde.BaseBrownian):
    """A Brownian path on a grid of 1/64, the same everywhere."""

    dtype, device, shape = torch.float32, torch.device("cpu"), SHAPE
    levy_area_approximation = "none"

    def __init__(self):
        steps = np.random.default_rng(0).standard_normal((64, *SHAPE)) / 8
        self.values = torch.from_numpy(np.concatenate([np.zeros((1, *SHAPE)), steps.cumsum(0)]))

    def at(self, t):
        return self.values[round(float(t) * 64)].float()

    def __call__(self, ta, tb=None, return_U=False, return_A=False):
        return self.at(ta) if tb is None else self.at(tb) - self.at(ta)

    def __repr__(self):
        return "Path()"


class Process(torchsde.SDEIto):
    def __init__(self):
        super().__init__("diagonal")
        self.drift = nn.Sequential(nn.Linear(3, 16), nn.Softplus(), nn.Linear(16, 3))
        self.scale = nn.Parameter(torch.zeros(3))

    def f(self, t, y):
        return self.drift(y)

    def g(self, t, y):
        return self.scale.sigmoid().expand_as(y)


process = fill(Process())
ts = torch.linspace(0, 1, 5)
start = torch.ones(SHAPE)
for method in ("euler", "milstein"):
    values = torchsde.sdeint(process, start, ts, bm=Path(), method=method, dt=1 / 64)
    record(method, values)

optimizer = torch.optim.Adam(process.parameters(), lr=1e-2)
losses = []
for step in range(20):
    solve = torchsde.sdeint_adjoint if step % 2 else torchsde.sdeint
    values = solve(process, start, ts, bm=Path(), method="euler", dt=1 / 64)
    loss = (values[-1] - 0.5).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
record("losses", losses)
record("trained", process.state_dict())

drawn = torchsde.BrownianInterval(0.0, 1.0, size=(4000, 1), entropy=1)
record("variance", drawn(0.0, 0.5).var(), rtol=0.15)
