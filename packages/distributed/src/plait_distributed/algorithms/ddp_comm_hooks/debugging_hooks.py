"""A communication hook for measurements."""

from __future__ import annotations

from typing import Any

from plait_distributed._buckets import GradBucket
from plait_distributed._futures import Future

__all__ = ["noop_hook"]


def noop_hook(_: Any, bucket: GradBucket) -> Future:
    """Return the gradients as they are, so that what communication costs can be measured.

    Args:
        bucket: The gradients.

    Example:
        >>> from plait_distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook
        >>> def measure(model):
        ...     model.register_comm_hook(None, noop_hook)
    """
    future = Future()
    future.set_result(bucket.buffer())
    return future
