"""Regression with a Gaussian process: Cholesky factors and gradients of the evidence."""

import math

import numpy as np
import torch

torch.set_default_dtype(torch.float64)
rng = np.random.default_rng(0)
X = torch.linspace(0, 1, 25).unsqueeze(-1)
y = torch.sin(X.squeeze(-1) * 2 * math.pi) + torch.from_numpy(rng.normal(0, 0.1, 25))


class GP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.log_length = torch.nn.Parameter(torch.zeros(()))
        self.log_scale = torch.nn.Parameter(torch.tensor(0.0))
        self.log_noise = torch.nn.Parameter(torch.full((), -1.0))

    def kernel(self, a, b):
        distances = (a.unsqueeze(1) - b.unsqueeze(0)).pow(2).sum(-1)
        return self.log_scale.exp() * torch.exp(-0.5 * distances / torch.exp(2 * self.log_length))

    def factor(self, X):
        noise = self.log_noise.exp() * torch.eye(len(X), dtype=X.dtype)
        return torch.linalg.cholesky(self.kernel(X, X) + noise)

    def evidence(self, X, y):
        L = self.factor(X)
        alpha = torch.cholesky_solve(y.unsqueeze(1), L).squeeze(1)
        quadratic = -0.5 * torch.dot(y, alpha)
        return quadratic - L.diagonal().log().sum() - 0.5 * len(X) * math.log(2 * math.pi)

    @torch.no_grad()
    def predict(self, X, y, new):
        L = self.factor(X)
        cross = self.kernel(X, new)
        mean = cross.T @ torch.cholesky_solve(y[:, None], L)[:, 0]
        v = torch.linalg.solve_triangular(L, cross, upper=False)
        return mean, self.log_scale.exp() - v.square().sum(0)


gp = GP()
optimizer = torch.optim.Adam(gp.parameters(), lr=0.1)
for step in range(40):
    optimizer.zero_grad()
    loss = -gp.evidence(X, y)
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print(f"{step} {loss.item():.5f}")
mean, variance = gp.predict(X, y, torch.tensor([[0.25], [0.5], [2.0]]))
print(mean.numpy().round(4).tolist(), variance.numpy().round(4).tolist())
print({n: round(p.item(), 4) for n, p in gp.named_parameters()})
closure = torch.optim.LBFGS(gp.parameters(), line_search_fn="strong_wolfe", max_iter=10)


def evaluate():
    closure.zero_grad()
    loss = -gp.evidence(X, y)
    loss.backward()
    return loss


closure.step(evaluate)
print(f"{evaluate().item():.4f} {torch.finfo(torch.get_default_dtype()).eps:.3g}")
H = torch.autograd.functional.hessian(lambda v: (v**3).sum() * v[0], torch.tensor([1.0, 2.0]))
print(H.tolist(), mean.dtype == torch.float64)
