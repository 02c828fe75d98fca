"""`LayerNorm`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._affine import Affine

__all__ = ["LayerNorm"]


class LayerNorm(Affine):
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
        has_bias = elementwise_affine and bias
        self._add_affine(self.normalized_shape, elementwise_affine, has_bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )
