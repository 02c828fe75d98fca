"""A spiral learnt as a differential equation, through the solver and by the adjoint."""

import itertools

import numpy as np
import torch
import torch.nn as nn


def rk4(f, t, dt, y):
    k1 = f(t, y)
    k2 = f(t + dt / 2, y + dt * k1 / 2)
    k3 = f(t + dt / 2, y + dt * k2 / 2)
    k4 = f(t + dt, y + dt * k3)
    return y + dt * (k1 + 2 * k2 + 2 * k3 + k4) / 6


def odeint(f, y0, t):
    ys = [y0]
    for t0, t1 in itertools.pairwise(t):
        ys.append(rk4(f, t0, t1 - t0, ys[-1]))
    return torch.stack(ys)


class Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, f, y0, t, *params):
        with torch.no_grad():
            ys = odeint(f, y0, t)
        ctx.f = f
        ctx.save_for_backward(t, ys, *params)
        return ys

    @staticmethod
    def backward(ctx, grad_ys):
        t, ys, *params = ctx.saved_tensors
        shapes = [p.numel() for p in params]

        def dynamics(s, state):
            y, a = state[: ys[0].numel()].view_as(ys[0]), state[ys[0].numel() :][: ys[0].numel()]
            with torch.enable_grad():
                y = y.detach().requires_grad_(True)
                out = ctx.f(s, y)
                grads = torch.autograd.grad(out, (y, *params), -a.view_as(out), allow_unused=True)
            flat = [torch.zeros(n) if g is None else g.reshape(-1)
                    for g, n in zip(grads[1:], shapes, strict=True)]  # fmt: skip
            return torch.cat([out.detach().reshape(-1), grads[0].reshape(-1), *flat])

        a = grad_ys[-1].reshape(-1)
        sums = torch.zeros(sum(shapes))
        for i in range(len(t) - 1, 0, -1):
            state = torch.cat([ys[i].reshape(-1), a, sums])
            state = rk4(dynamics, t[i], t[i - 1] - t[i], state)
            n = ys[0].numel()
            a = state[n : 2 * n] + grad_ys[i - 1].reshape(-1)
            sums = state[2 * n :]
        parts = torch.split(sums, shapes)
        return (
            None,
            a.view_as(ys[0]),
            None,
            *(s.view_as(p) for s, p in zip(parts, params, strict=True)),
        )


class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
        rng = np.random.default_rng(0)
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                m.weight.data = torch.from_numpy(rng.normal(0, 0.1, m.weight.shape)).float()
                nn.init.constant_(m.bias, val=0)
        self.nfe = 0

    def forward(self, t, y):
        self.nfe += 1
        return self.net(y**3)


t = torch.linspace(0.0, 2.0, 9)
true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
with torch.no_grad():
    true_y = odeint(lambda t, y: torch.mm(y**3, true_A), torch.tensor([[2.0, 0.0]]), t)
func = ODEFunc()
for use_adjoint in (False, True):
    func.zero_grad()
    if use_adjoint:
        pred = Adjoint.apply(func, true_y[0], t, *func.parameters())
    else:
        pred = odeint(func, true_y[0], t)
    loss = torch.mean(torch.abs(pred - true_y))
    loss.backward()
    print(f"adjoint {use_adjoint} loss {loss.item():.5f} nfe {func.nfe}")
    print([f"{p.grad.norm().item():.2f}" for p in func.parameters()])
optimizer = torch.optim.RMSprop(func.parameters(), lr=1e-2)
for _ in range(30):
    optimizer.zero_grad()
    loss = (odeint(func, true_y[0], t) - true_y).abs().mean()
    loss.backward()
    optimizer.step()
print("#", loss.item())
assert loss.item() < 1.0
