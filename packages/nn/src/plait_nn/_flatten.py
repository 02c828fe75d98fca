"""`Flatten` and `Unflatten`."""

from __future__ import annotations

from collections.abc import Sequence

from plait_core import Tensor
from plait_nn._module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Make one dimension of those from ``start_dim`` to ``end_dim``.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.Flatten()(pc.zeros(32, 1, 5, 5)).shape)
        (32, 25)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Make dimensions of sizes ``unflattened_size`` of one; one of them may be -1.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> tuple(nn.Unflatten(1, (2, -1))(pc.zeros(3, 10)).shape)
        (3, 2, 5)
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(
                f"Unflatten: `dim` must be an int (dimensions have no names); "
                f"got {type(dim).__name__}"
            )
        if isinstance(unflattened_size, int) or not all(
            isinstance(size, int) for size in unflattened_size
        ):
            raise TypeError(
                f"Unflatten: `unflattened_size` must be a sequence of ints; got {unflattened_size}"
            )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        shape = tuple(input.shape)
        if not -len(shape) <= self.dim < len(shape):
            raise IndexError(
                f"Unflatten: `dim` must be in [{-len(shape)}, {len(shape) - 1}] for shape {shape}; "
                f"got {self.dim}"
            )
        dim = self.dim % len(shape)
        return input.reshape((*shape[:dim], *self.unflattened_size, *shape[dim + 1 :]))

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
