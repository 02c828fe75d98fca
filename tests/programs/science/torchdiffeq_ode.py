"""torchdiffeq: solvers, events, and a neural ODE trained 20 steps with the adjoint method."""

import torch
from recording import array, fill, record
from torch import nn
from torchdiffeq import odeint, odeint_adjoint, odeint_event


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))

    def forward(self, t, y):
        return self.net(y**3)


spiral = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
t = torch.linspace(0, 0.5, 30)
start = torch.tensor([[2.0, 0.0]])
truth = odeint(lambda t, y: y**3 @ spiral, start, t, method="dopri5")
record("truth", truth)
for method in ("euler", "midpoint", "rk4", "bosh3", "adaptive_heun", "implicit_adams", "dopri8"):
    record(method, odeint(lambda t, y: y**3 @ spiral, start, t, method=method), rtol=5e-3)

field = fill(Field())
optimizer = torch.optim.RMSprop(field.parameters(), lr=1e-3)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = (odeint_adjoint(field, start, t) - truth).abs().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
record("losses", losses)
record("trained", field.state_dict(), rtol=5e-3, atol=1e-4)

height = torch.tensor([10.0, 0.0])
fall = lambda t, y: torch.stack([y[1], torch.tensor(-9.8)])  # noqa: E731
landed = odeint_event(fall, height, torch.tensor(0.0), event_fn=lambda t, y: y[0])
record("landed", landed[0])
record("noise", array(0, 2))
