"""The placement of a tensor along one dimension of a mesh."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard", "shard_bounds"]


class Placement:
    """The placement of a tensor along one dimension of a mesh.

    Example:
        >>> from plait_distributed.tensor import Shard
        >>> Shard(0).is_shard(), Shard(0).is_replicate()
        (True, False)
    """

    def is_shard(self, dim: int | None = None) -> bool:
        """Return whether each process has a part along a dimension, or along `dim`."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Return whether each process has the whole tensor."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Return whether the processes' tensors are to be reduced, or reduced by `reduce_op`."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process has the whole tensor.

    Example:
        >>> from plait_distributed.tensor import Replicate
        >>> Replicate() == Replicate(), Replicate().is_replicate()
        (True, True)
    """


@dataclass(frozen=True)
class Shard(Placement):
    """Each process has a part along a dimension, of the length of a chunk; the last have the rest.

    Args:
        dim: The dimension that is divided.

    Example:
        >>> from plait_distributed.tensor import Shard
        >>> Shard(1), Shard(1).is_shard(0)
        (Shard(dim=1), False)
    """

    dim: int

    @staticmethod
    def local_shard_size_and_offset(
        curr_local_size: int, num_chunks: int, rank: int
    ) -> tuple[int, int]:
        """Return how long one of `num_chunks` parts of a length is, and where it begins.

        Example:
            >>> from plait_distributed.tensor import Shard
            >>> [Shard.local_shard_size_and_offset(5, 3, rank) for rank in range(3)]
            [(2, 0), (2, 2), (1, 4)]
        """
        first, length = shard_bounds(curr_local_size, num_chunks, rank)
        return length, first

    def _local_shard_size_and_offset(
        self, curr_local_size: int, num_chunks: int, rank: int
    ) -> tuple[int, int]:
        return self.local_shard_size_and_offset(curr_local_size, num_chunks, rank)


@dataclass(frozen=True)
class Partial(Placement):
    """The processes' tensors are to be reduced.

    Args:
        reduce_op: How the parts are combined: "sum", "avg", "product", "min" or "max".

    Example:
        >>> from plait_distributed.tensor import Partial
        >>> Partial().is_partial("sum")
        True
    """

    reduce_op: str = "sum"


def shard_bounds(length: int, parts: int, part: int) -> tuple[int, int]:
    """Return where one of `parts` chunks begins and how long it is; the last ones may be empty.

    Args:
        length: The size of the dimension.
        part: The number of the part.

    Example:
        >>> from plait_distributed.tensor.placement_types import shard_bounds
        >>> [shard_bounds(5, 4, part) for part in range(4)]
        [(0, 2), (2, 2), (4, 1), (5, 0)]
    """
    chunk = -(-length // parts)
    first = min(part * chunk, length)
    return first, min(chunk, length - first)
