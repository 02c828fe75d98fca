"""Private names of `torch.distributed.distributed_c10d` that libraries use."""

from __future__ import annotations

from typing import Any

from plait_abi.components import require

__all__ = ["_get_default_group", "_rank_not_in_group", "_world"]


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
    def pg_map(self) -> dict[Any, Any]:
        """The backends and stores of groups, which are not kept: an empty dict."""
        return {}


_world = _World()


def _get_default_group() -> Any:
    """Return the group of all processes."""
    return require("distributed").get_default_group()


def _rank_not_in_group(group: Any) -> bool:
    """Return whether this process is no member of a group."""
    return bool(group == require("distributed").GroupMember.NON_GROUP_MEMBER)
