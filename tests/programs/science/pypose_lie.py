"""pypose: Lie groups, their maps and gradients, interpolation, IMU, and Levenberg-Marquardt."""

import pypose as pp
import torch
from recording import array, record

algebra = pp.se3(0.3 * array(0, 4, 6))
pose = algebra.Exp()
record("pose", pose.tensor())
record("matrix", pose.matrix())
record("inverse", (pose * pose.Inv()).tensor(), atol=1e-4)
record("log", pose.Log().tensor())
record("acted", pose.Act(array(1, 4, 3)))
record("adjoint", pose.Adj(pp.se3(array(2, 4, 6))).tensor())
record("euler", pp.SO3(pose.rotation()).euler())
parameter = pp.Parameter(pp.so3(0.2 * array(3, 3)).Exp())
(parameter.Act(array(4, 5, 3)) - 1).square().sum().backward()
record("gradient", parameter.grad)


class Inverse(torch.nn.Module):
    """A pose that undoes another one."""

    def __init__(self) -> None:
        super().__init__()
        self.pose = pp.Parameter(pp.se3(0.1 * array(5, 2, 6)).Exp())

    def forward(self, x):
        """Return the difference from the identity."""
        return (self.pose @ x).Log().tensor()


model = Inverse()
optimizer = pp.optim.LM(model, strategy=pp.optim.strategy.Adaptive(damping=1e-4))
target = pp.se3(0.3 * array(6, 2, 6)).Exp()
losses = [float(optimizer.step(target)) for _ in range(5)]
record("losses", losses, rtol=1e-2, atol=1e-5)
record("kind", repr(type(model.pose)) + type(pose.ltype).__name__)
