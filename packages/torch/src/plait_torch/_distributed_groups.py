"""Private names of `torch.distributed.distributed_c10d` that libraries use."""

from __future__ import annotations

from typing import Any

from plait_abi.components import require

__all__ = ["_get_default_group", "_rank_not_in_group"]


def _get_default_group() -> Any:
    """Return the group of all processes."""
    return require("distributed").get_default_group()


def _rank_not_in_group(group: Any) -> bool:
    """Return whether this process is no member of a group."""
    return bool(group == require("distributed").GroupMember.NON_GROUP_MEMBER)
