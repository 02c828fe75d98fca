"""Activations as modules; each computes the function in `plait_nn.functional` with its name.

Activations with parameters, such as a slope, are in `_parametric`.
"""

from __future__ import annotations

import plait_core as pc
from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._module import Module

__all__ = [
    "GLU",
    "SELU",
    "Hardsigmoid",
    "Hardswish",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "ReLU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softsign",
    "Tanh",
    "Tanhshrink",
]

_relu, _relu_, _function = pc.relu, pc.relu_, F.relu


class _InPlace(Module):
    """An activation whose only argument is ``inplace``."""

    inplace: bool

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_InPlace):
    """Compute ``max(x, 0)``; with ``inplace`` in the input's memory.

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

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.SELU()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-1.1113,  0.0000,  2.1014])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.selu(input, self.inplace)


class SiLU(_InPlace):
    """Compute ``x * sigmoid(x)``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.SiLU()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.2689,  0.0000,  1.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input, self.inplace)


class Mish(_InPlace):
    """Compute ``x * tanh(softplus(x))``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Mish()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.3034,  0.0000,  1.9440])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.mish(input, self.inplace)


class Hardswish(_InPlace):
    """Compute ``x * relu6(x + 3) / 6``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Hardswish()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.3333,  0.0000,  1.6667])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.hardswish(input, self.inplace)


class Hardsigmoid(_InPlace):
    """Compute ``relu6(x + 3) / 6``.

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
        return F.sigmoid(input)


class Tanh(Module):
    """Compute ``tanh(x)``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Tanh()(pc.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.7616,  0.0000,  0.9640])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.tanh(input)


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


class _AlongDim(Module):
    """A function along one dimension."""

    dim: int | None

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    r"""Compute :math:`\exp(x_i) / \sum_j \exp(x_j)` along ``dim``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Softmax(dim=0)(pc.zeros(4)).tolist()
        [0.25, 0.25, 0.25, 0.25]
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class LogSoftmax(_AlongDim):
    r"""Compute :math:`x_i - \log \sum_j \exp(x_j)` along ``dim``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.LogSoftmax(dim=0)(pc.tensor([0.0, 0.0]))
        tensor([-0.6931, -0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class Softmin(_AlongDim):
    """Compute ``softmax(-x)`` along ``dim``.

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


class GLU(Module):
    """Halve along ``dim`` into ``a, b`` and compute ``a * sigmoid(b)``.

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

    def extra_repr(self) -> str:
        return f"dim={self.dim}"
