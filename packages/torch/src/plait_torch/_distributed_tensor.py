"""`torch.distributed.tensor`: how tensors would lie in several processes; they are whole here."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "_StridedShard",
]


class DTensor:
    """A class without instances: tensors are whole."""


class DeviceMesh:
    """A class without instances."""


class Placement:
    """How one dimension of a mesh holds a tensor: a value that libraries put into their tables."""

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
        >>> from plait_torch._distributed_tensor import Replicate
        >>> Replicate() == Replicate(), Replicate().is_replicate()
        (True, True)
    """


@dataclass(frozen=True)
class Shard(Placement):
    """Each process has a part along a dimension.

    Example:
        >>> from plait_torch._distributed_tensor import Shard
        >>> Shard(1), Shard(1).is_shard(0)
        (Shard(dim=1), False)
    """

    dim: int


@dataclass(frozen=True)
class _StridedShard(Placement):
    """Each process has parts of several groups along a dimension."""

    dim: int
    split_factor: int = 1


@dataclass(frozen=True)
class Partial(Placement):
    """The processes' tensors are to be reduced.

    Example:
        >>> from plait_torch._distributed_tensor import Partial
        >>> Partial().is_partial("sum")
        True
    """

    reduce_op: str = "sum"
