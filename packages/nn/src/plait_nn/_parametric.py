"""Activations with parameters: a slope, a threshold, a range."""

from __future__ import annotations

from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._module import Module
from plait_nn._parameter import Parameter

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "Hardtanh",
    "LeakyReLU",
    "PReLU",
    "ReLU6",
    "Softplus",
]


class LeakyReLU(Module):
    """Compute ``x`` where positive, else ``negative_slope * x``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.LeakyReLU(0.25)(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.2500,  0.0000,  2.0000])
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class ELU(Module):
    """Compute ``x`` where positive, else ``alpha * (exp(x) - 1)``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.ELU()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.6321,  0.0000,  2.0000])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class CELU(ELU):
    """Compute ``max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.CELU()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.6321,  0.0000,  2.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class GELU(Module):
    """Compute ``x`` times the normal distribution function, or its tanh approximation.

    Args:
        approximate: "none" or "tanh".

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.GELU()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.1587,  0.0000,  1.9545])
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """Compute ``log(1 + exp(beta x)) / beta``; ``x`` itself where ``beta x > threshold``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Softplus()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([0.3133, 0.6931, 2.1269])
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Hardtanh(Module):
    """Clip to ``[min_val, max_val]``; ``min_value`` and ``max_value`` are their old names.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Hardtanh()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-1.,  0.,  1.])
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        min_val = min_val if min_value is None else min_value
        max_val = max_val if max_value is None else max_value
        if min_val >= max_val:
            raise ValueError(
                f"Hardtanh: `min_val` must be less than `max_val`; got {min_val} and {max_val}"
            )
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        inplace = ", inplace=True" if self.inplace else ""
        return f"min_val={self.min_val}, max_val={self.max_val}{inplace}"


class ReLU6(Hardtanh):
    """Clip to ``[0, 6]``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.ReLU6()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class PReLU(Module):
    """Compute ``x`` where positive, else ``weight * x`` with learned weights (He et al. 2015).

    Args:
        num_parameters: 1, or the number of channels (dim 1 of the input).
        init: The weights' initial value.
        device: Where the weights live.
        dtype: Their dtype; None is float32.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.PReLU(init=0.25)(pc.tensor([-1.0, 0.0, 2.0])).detach()
        tensor([-0.2500,  0.0000,  2.0000])
    """

    weight: Parameter

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(pc.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weights to their initial value."""
        self.weight.detach().fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"
