"""`LayerNorm`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn import functional as F
from plait_nn import init
from plait_nn._module import Module
from plait_nn._parameter import Parameter

__all__ = ["LayerNorm"]


class LayerNorm(Module):
    """Normalise over the last dimensions; see `plait_nn.functional.layer_norm`.

    Args:
        normalized_shape: Sizes of the last dimensions, or the size of the last one.
        eps: Keeps the root away from 0.
        elementwise_affine: Whether there is a weight, starting at 1, and a bias.
        bias: Whether there is a bias, starting at 0.
        device: Where the parameters live.
        dtype: Their dtype; None is float32.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.LayerNorm(10)(pc.randn(2, 5, 10)).shape)
        (2, 5, 10)
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        for name, wanted in (("weight", True), ("bias", bias)):
            if elementwise_affine and wanted:
                empty = pc.empty(self.normalized_shape, device=device, dtype=dtype)
                self.register_parameter(name, Parameter(empty))
            else:
                self.register_parameter(name, None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )
