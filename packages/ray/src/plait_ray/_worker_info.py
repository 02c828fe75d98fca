"""The name and number of a process that can be called."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class WorkerInfo:
    """The name and the rank of a process that can be called.

    Args:
        name: The name.
        id: The number.

    Example:
        >>> from plait_ray.rpc import WorkerInfo
        >>> WorkerInfo("trainer", 1).name
        'trainer'
    """

    name: str
    id: int
