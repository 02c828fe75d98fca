"""`GroupNorm`, `RMSNorm`, `LocalResponseNorm`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn import functional as F, init
from plait_nn._affine import Affine
from plait_nn._module import Module
from plait_nn._parameter import Parameter

__all__ = ["GroupNorm", "LocalResponseNorm", "RMSNorm"]


class GroupNorm(Affine):
    """Normalise over groups of channels; see `plait_nn.functional.group_norm`.

    Args:
        num_groups: Number of groups of channels.
        num_channels: Channels of the input, of shape ``(N, C, *)``.
        eps: Keeps the root away from 0.
        affine: Whether there is a weight, starting at 1, and a bias.
        device: Where the parameters live.
        dtype: Their dtype; None is float32.
        bias: Whether there is a bias, starting at 0.

    Raises:
        ValueError: ``num_groups`` doesn't divide ``num_channels``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.GroupNorm(3, 6)(pc.randn(20, 6, 10, 10)).shape)
        (20, 6, 10, 10)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(
                f"GroupNorm: `num_channels` must be divisible by `num_groups`; "
                f"got {num_channels} and {num_groups}"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._add_affine(num_channels, affine, affine and bias, device, dtype)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divide by the root of the mean square; see `plait_nn.functional.rms_norm`.

    Args:
        normalized_shape: Sizes of the last dimensions, or the size of the last one.
        eps: Keeps the root away from 0; None is the epsilon of the input's dtype.
        elementwise_affine: Whether there is a weight, starting at 1.
        device: Where the weight lives.
        dtype: Its dtype; None is float32.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.RMSNorm(3)(pc.tensor([[3.0, 3.0, -3.0]])).detach()
        tensor([[ 1.,  1., -1.]])
    """

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            empty = pc.empty(self.normalized_shape, device=device, dtype=dtype)
            self.weight = Parameter(empty)
        else:
            self.register_parameter("weight", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class _ResponseNorm(Module):
    """Division by a power of the sum of neighbouring channels' squares."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class LocalResponseNorm(_ResponseNorm):
    """Divide by a norm over neighbouring channels; see `plait_nn.functional.local_response_norm`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.LocalResponseNorm(3, alpha=3.0, beta=1.0)(pc.ones(1, 3, 1)).reshape(-1)
        tensor([0.3333, 0.2500, 0.3333])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)
