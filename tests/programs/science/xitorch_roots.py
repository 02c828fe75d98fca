"""xitorch: roots, equilibria, eigenvalues and integrals that can be differentiated."""

import torch
from recording import array, record
from xitorch import LinearOperator
from xitorch.integrate import quad, solve_ivp
from xitorch.linalg import solve, symeig
from xitorch.optimize import equilibrium, rootfinder

a = (0.2 * array(0, 3, 3, dtype=torch.float64)).requires_grad_()
root = rootfinder(
    lambda y, a: y + 0.3 * torch.tanh(a @ y) - 1,
    torch.zeros(3, 1, dtype=torch.float64),
    params=(a,),
)
root.sum().backward()
record("root", root)
record("gradient", a.grad)
fixed = equilibrium(
    lambda y, a: torch.tanh(a @ y) + 1, torch.zeros(3, 1, dtype=torch.float64), params=(a.detach(),)
)
record("fixed", fixed)
matrix = a.detach() @ a.detach().T + torch.eye(3, dtype=torch.float64)
operator = LinearOperator.m(matrix)
record("values", symeig(operator, neig=2)[0])
record("solved", solve(operator, torch.ones(3, 1, dtype=torch.float64)))
record(
    "integral", quad(lambda x: torch.sin(x) * torch.exp(-x), torch.tensor(0.0), torch.tensor(2.0))
)
times = torch.linspace(0, 1, 5, dtype=torch.float64)
record("path", solve_ivp(lambda t, y: -y * t, times, torch.ones(2, dtype=torch.float64)))
