"""torchcde: splines through missing values, their derivatives, log signatures, a neural CDE."""

import torch
import torchcde
from recording import array, fill, record

x = array(0, 4, 9, 3)
x[:, 3, 1] = float("nan")
cubic = torchcde.natural_cubic_coeffs(x)
hermite = torchcde.hermite_cubic_coefficients_with_backward_differences(x)
linear = torchcde.linear_interpolation_coeffs(x, rectilinear=0)
record("coefficients", [cubic, hermite, linear])
path = torchcde.CubicSpline(hermite)
at = torch.tensor([0.5, 3.3])
record("value", path.evaluate(at))
record("derivative", path.derivative(at))


class Field(torch.nn.Module):
    """The vector field of a CDE."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(5, 15)

    def forward(self, t, z):
        """Return its value."""
        return self.linear(z).tanh().view(-1, 5, 3)


field = fill(Field())
optimizer = torch.optim.Adam(field.parameters(), 1e-2)
losses = []
for adjoint in (True, False, True, False):
    z = torchcde.cdeint(
        path,
        field,
        array(1, 4, 5),
        path.interval,
        adjoint=adjoint,
        method="rk4",
        options={"step_size": 0.5},
    )
    loss = (z[:, -1] - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
record("losses", losses, rtol=5e-3)
