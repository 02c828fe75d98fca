"""`Identity`, `Linear`, `Bilinear`."""

from __future__ import annotations

import math
import operator
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn import functional as F, init
from plait_nn._module import Module
from plait_nn._parameter import Parameter


def check_sizes(layer: str, **sizes: int) -> None:
    """Raise for a layer's size that is negative or not an integer."""
    for name, size in sizes.items():
        try:
            operator.index(size)
        except TypeError:
            raise TypeError(f"{layer}: `{name}` must be an integer; got {size!r}") from None
        if size < 0:
            raise ValueError(f"{layer}: `{name}` must not be negative; got {size}")


def add_bias(module: Module, size: int, has_bias: bool, device: Any, dtype: Any) -> None:
    """Register the parameter ``bias`` with uninitialised values, or None."""
    if has_bias:
        module.bias = Parameter(pc.empty(size, device=device, dtype=dtype))
    else:
        module.register_parameter("bias", None)


class Identity(Module):
    """Return the input; other arguments are accepted and not used.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.Identity()(pc.ones(2)).tolist()
        [1.0, 1.0]
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    r"""Compute :math:`y = x W^T + b`.

    Weight and bias start uniform in :math:`\pm 1 / \sqrt{in}`.

    Args:
        in_features: Size of the input's last dimension.
        out_features: Size of the output's last dimension.
        bias: Whether there is a ``b``.
        device, dtype: Where the parameters are, and their dtype; None is float32.

    Attributes:
        weight: Shape (out_features, in_features).
        bias: Shape (out_features), or None.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.Linear(20, 30)
        >>> layer
        Linear(in_features=20, out_features=30, bias=True)
        >>> tuple(layer(pc.randn(128, 20)).shape)
        (128, 30)
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_sizes("Linear", in_features=in_features, out_features=out_features)
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(pc.empty(out_features, in_features, device=device, dtype=dtype))
        add_bias(self, out_features, bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    r"""Compute :math:`y_k = x_1^T W_k x_2 + b_k`.

    The parameters start uniform in :math:`\pm 1 / \sqrt{in_1}`.

    Args:
        in1_features: Size of the first input's last dimension.
        in2_features: Size of the second input's last dimension.
        out_features: Size of the output's last dimension.
        bias: Whether there is a ``b``.
        device, dtype: Where the parameters are, and their dtype; None is float32.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.Bilinear(2, 3, 4)(pc.ones(5, 2), pc.ones(5, 3)).shape)
        (5, 4)
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_sizes("Bilinear", in2_features=in2_features, out_features=out_features)
        if in1_features < 1:
            raise ValueError(f"Bilinear: `in1_features` must be positive; got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(pc.empty(shape, device=device, dtype=dtype))
        add_bias(self, out_features, bias, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters again."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
