"""`Hardshrink`, `Softshrink`, `Threshold`, `RReLU`."""

from __future__ import annotations

from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._module import Module

__all__ = ["Hardshrink", "RReLU", "Softshrink", "Threshold"]


class Hardshrink(Module):
    """Compute ``x`` where ``|x| > lambd``, else 0.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Hardshrink()(pc.tensor([-1.0, 0.25, 2.0]))
        tensor([-1.,  0.,  2.])
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Module):
    """Move ``x`` towards 0 by ``lambd``, at most to 0.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Softshrink()(pc.tensor([-1.0, 0.25, 2.0]))
        tensor([-0.5000,  0.0000,  1.5000])
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Threshold(Module):
    """Compute ``x`` where ``x > threshold``, else ``value``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Threshold(1.0, 20.0)(pc.tensor([-1.0, 0.5, 2.0]))
        tensor([20., 20.,  2.])
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        inplace = ", inplace=True" if self.inplace else ""
        return f"threshold={self.threshold}, value={self.value}{inplace}"


class RReLU(Module):
    """Compute ``x`` where positive, else ``a * x``; see `plait_nn.functional.rrelu`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.RReLU(0.25, 0.75).eval()(pc.tensor([-1.0, 2.0]))
        tensor([-0.5000,  2.0000])
    """

    def __init__(
        self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False
    ) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        inplace = ", inplace=True" if self.inplace else ""
        return f"lower={self.lower}, upper={self.upper}{inplace}"
