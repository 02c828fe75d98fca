"""Private names of `torch.distributed.distributed_c10d` that libraries use."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from plait_abi.components import require
from plait_distributed import DistStoreError

__all__ = [
    "QueueEmptyError",
    "_all_gather_base",
    "_get_default_group",
    "_pg_map",
    "_rank_not_in_group",
    "_reduce_scatter_base",
    "_world",
]


class QueueEmptyError(DistStoreError):
    """A queue of a store has no element."""


def _all_gather_base(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Any:
    """Call `all_gather_into_tensor`: the older name."""
    function = require("distributed").all_gather_into_tensor
    return function(output_tensor, input_tensor, group, async_op)


def _reduce_scatter_base(
    output: Any, input: Any, op: Any = None, group: Any = None, async_op: bool = False
) -> Any:
    """Call `reduce_scatter_tensor`: the older name."""
    package = require("distributed")
    op = package.ReduceOp.SUM if op is None else op
    return package.reduce_scatter_tensor(output, input, op, group, async_op)


class _Groups(MutableMapping[Any, Any]):
    """The groups that this process is a member of, each with the name of its backend and None in
    the place of PyTorch's store. It follows the groups that are made and destroyed; tests of
    libraries add groups that are none.
    """

    def __init__(self) -> None:
        self._added: dict[Any, Any] = {}

    def _open(self) -> list[Any]:
        distributed = require("distributed")
        return list(importlib.import_module(f"{distributed.__name__}._world").open_groups())

    def __getitem__(self, group: Any) -> Any:
        if group not in self._open():
            return self._added[group]
        return require("distributed").get_backend(group), None

    def __setitem__(self, group: Any, value: Any) -> None:
        if group not in self._open():
            self._added[group] = value

    def __delitem__(self, group: Any) -> None:
        if group not in self._open():
            del self._added[group]

    def __iter__(self) -> Iterator[Any]:
        return iter([*self._open(), *self._added])

    def __len__(self) -> int:
        return len(self._open()) + len(self._added)


_pg_map = _Groups()


class _World:
    """What libraries ask of PyTorch's table of groups."""

    @property
    def default_pg(self) -> Any:
        """The group of all processes, or None."""
        distributed = require("distributed")
        return distributed.get_default_group() if distributed.is_initialized() else None

    @property
    def group_count(self) -> int:
        """The number of groups: 0 or 1, as those of `new_group` are not counted."""
        return int(require("distributed").is_initialized())

    @property
    def pg_map(self) -> Mapping[Any, Any]:
        """The groups that this process is a member of."""
        return _pg_map


_world = _World()


def _get_default_group() -> Any:
    """Return the group of all processes."""
    return require("distributed").get_default_group()


def _rank_not_in_group(group: Any) -> bool:
    """Return whether this process is no member of a group."""
    return bool(group == require("distributed").GroupMember.NON_GROUP_MEMBER)
