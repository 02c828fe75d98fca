"""Activations as modules."""

from __future__ import annotations

from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._layer import Layer
from plait_nn._module import Module
from plait_nn._parameter import Parameter

_relu, _relu_, _function = pc.relu, pc.relu_, F.relu


class _InPlace(Layer, fields="inplace"):
    """An activation whose only argument is ``inplace``."""

    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class ReLU(_InPlace):
    """Compute ``max(x, 0)``; with ``inplace`` in the input's memory.

    Args:
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.ReLU()(pc.tensor([-1.0, 2.0])).tolist()
        [0.0, 2.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        if F.relu is not _function:  # a program has replaced it
            return F.relu(input, self.inplace)
        # the operator itself, which saves a call
        return _relu_(input) if self.inplace else _relu(input)


class SELU(_InPlace):
    """Compute ``scale * elu(x, alpha)`` with the self-normalising constants.

    Args:
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.SELU()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-1.1113,  0.0000,  2.1014])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class SiLU(_InPlace):
    """Compute ``x * sigmoid(x)``.

    Args:
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.SiLU()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.2689,  0.0000,  1.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_InPlace):
    """Compute ``x * tanh(softplus(x))``.

    Args:
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Mish()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.3034,  0.0000,  1.9440])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class Hardswish(_InPlace):
    """Compute ``x * relu6(x + 3) / 6``.

    Args:
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Hardswish()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.3333,  0.0000,  1.6667])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class Hardsigmoid(_InPlace):
    """Compute ``relu6(x + 3) / 6``.

    Args:
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Hardsigmoid()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([0.3333, 0.5000, 0.8333])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardsigmoid(input, self.inplace)


class Sigmoid(Module):
    """Compute ``1 / (1 + exp(-x))``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Sigmoid()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([0.2689, 0.5000, 0.8808])
    """

    def forward(self, input: Tensor) -> Tensor:
        return pc.sigmoid(input)


class Tanh(Module):
    """Compute ``tanh(x)``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Tanh()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.7616,  0.0000,  0.9640])
    """

    def forward(self, input: Tensor) -> Tensor:
        return pc.tanh(input)


class LogSigmoid(Module):
    """Compute ``log(sigmoid(x))`` without underflow.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.LogSigmoid()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-1.3133, -0.6931, -0.1269])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.logsigmoid(input)


class Softsign(Module):
    """Compute ``x / (1 + |x|)``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Softsign()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.5000,  0.0000,  0.6667])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softsign(input)


class Tanhshrink(Module):
    """Compute ``x - tanh(x)``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Tanhshrink()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.2384,  0.0000,  1.0360])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanhshrink(input)


class _AlongDim(Layer, fields="dim"):
    """A function along one dimension."""

    dim: int | None

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim


class Softmax(_AlongDim):
    r"""Compute :math:`\exp(x_i) / \sum_j \exp(x_j)` along ``dim``.

    Args:
        dim: The dimension along which it is computed.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Softmax(dim=0)(pc.zeros(4)).tolist()
        [0.25, 0.25, 0.25, 0.25]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class LogSoftmax(_AlongDim):
    r"""Compute :math:`x_i - \log \sum_j \exp(x_j)` along ``dim``.

    Args:
        dim: The dimension along which it is computed.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.LogSoftmax(dim=0)(pc.tensor([0.0, 0.0]))
        tensor([-0.6931, -0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmin(_AlongDim):
    """Compute ``softmax(-x)`` along ``dim``.

    Args:
        dim: The dimension along which it is computed.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Softmin(dim=0)(pc.tensor([0.0, 1.0]))
        tensor([0.7311, 0.2689])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmin(input, self.dim)


class Softmax2d(Module):
    """Compute softmax over the channels of (N, C, H, W) or (C, H, W).

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Softmax2d()(pc.zeros(1, 4, 1, 1)).reshape(-1)
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in (3, 4):
            raise ValueError(
                f"Softmax2d: `input` must be (N, C, H, W) or (C, H, W); got {tuple(input.shape)}"
            )
        return F.softmax(input, -3)


class GLU(Layer, fields="dim"):
    """Halve along ``dim`` into ``a, b`` and compute ``a * sigmoid(b)``.

    Args:
        dim: The dimension along which it is computed.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.GLU()(pc.tensor([1.0, 2.0, 0.0, 0.0]))
        tensor([0.5000, 1.0000])
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)


class LeakyReLU(Layer, fields="negative_slope inplace"):
    """Compute ``x`` where positive, else ``negative_slope * x``.

    Args:
        negative_slope: The factor of negative elements.
        inplace: Whether the result is written to the input's memory.

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


class ELU(Layer, fields="alpha inplace"):
    """Compute ``x`` where positive, else ``alpha * (exp(x) - 1)``.

    Args:
        alpha: The factor of the exponential of negative elements.
        inplace: Whether the result is written to the input's memory.

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


class CELU(ELU):
    """Compute ``max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))``.

    Args:
        alpha: The factor of the exponential of negative elements.
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.CELU()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.6321,  0.0000,  2.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class GELU(Layer, fields="approximate"):
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


class Softplus(Layer, fields="beta threshold"):
    """Compute ``log(1 + exp(beta x)) / beta``; ``x`` itself where ``beta x > threshold``.

    Args:
        beta: The sharpness: the larger, the closer to ReLU.
        threshold: The value of ``beta * x`` from which the input is returned unchanged.

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


class Hardtanh(Layer, fields="min_val max_val inplace"):
    """Clip to ``[min_val, max_val]``; ``min_value`` and ``max_value`` are their old names.

    Args:
        min_val: The smallest result.
        max_val: The largest result.
        inplace: Whether the result is written to the input's memory.
        min_value: An old name of `min_val`.
        max_value: An old name of `max_val`.

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


class ReLU6(Hardtanh, fields="inplace"):
    """Clip to ``[0, 6]``.

    Args:
        inplace: Whether the result is written to the input's memory.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.ReLU6()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class PReLU(Layer, fields="num_parameters"):
    """Compute ``x`` where positive, else ``weight * x`` with learned weights (He et al. 2015).

    Args:
        num_parameters: 1, or the number of channels (dim 1 of the input).
        init: The weights' initial value.
        device, dtype: Where the weights are, and their dtype; None is float32.

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


class Hardshrink(Module):
    """Compute ``x`` where ``|x| > lambd``, else 0.

    Args:
        lambd: The threshold; not negative.

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

    Args:
        lambd: The threshold; not negative.

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


class Threshold(Layer, fields="threshold value inplace"):
    """Compute ``x`` where ``x > threshold``, else ``value``.

    Args:
        threshold: Elements that are not larger are replaced.
        value: Their new value.
        inplace: Whether the result is written to the input's memory.

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


class RReLU(Layer, fields="lower upper inplace"):
    """Compute ``x`` where positive, else ``a * x``; see `plait.nn.functional.rrelu`.

    Args:
        lower: The smallest slope.
        upper: The largest slope.
        inplace: Whether the result is written to the input's memory.

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
