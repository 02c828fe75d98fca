"""torchdyn: solvers, a neural ODE trained 10 steps by autograd and by the adjoint."""

import torch
from recording import array, fill, record
from torchdyn.core import NeuralODE, ODEProblem
from torchdyn.numerics import odeint

t = torch.linspace(0, 1, 6)
for solver in ("euler", "midpoint", "rk4", "dopri5", "tsit5"):
    record(solver, odeint(lambda t, x, args=None: -x * t, array(0, 4, 2), t, solver)[1])
x, y = array(1, 16, 2), array(2, 16, 2)
for sensitivity in ("autograd", "adjoint", "interpolated_adjoint"):
    field = fill(torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)))
    model = NeuralODE(field, sensitivity=sensitivity, solver="rk4", return_t_eval=False)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    losses = []
    for _ in range(6):
        loss = (model(x, t)[-1] - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    record(sensitivity, losses, rtol=5e-3)
problem = ODEProblem(lambda t, x, args=None: torch.sin(x), solver="dopri5", sensitivity="autograd")
record("problem", problem(array(3, 4, 2), t)[1])
record("trajectory", model.trajectory(x, t), rtol=5e-3)
