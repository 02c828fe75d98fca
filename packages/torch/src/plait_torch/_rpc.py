"""`torch.distributed.rpc.api`: functions that may only be called after `init_rpc`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

__all__: list[str] = []


def _is_current_rpc_agent_set() -> bool:
    """Return whether this process has called `init_rpc`.

    Example:
        >>> from plait_torch._rpc import _is_current_rpc_agent_set
        >>> _is_current_rpc_agent_set()
        False
    """
    calls: Any = sys.modules.get("plait_ray.rpc")
    try:
        return calls is not None and calls.get_worker_info() is not None
    except RuntimeError:  # there is no agent
        return False


def _require_initialized(func: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that raises RuntimeError before `init_rpc`, and else calls the given one.

    Example:
        >>> from plait_torch._rpc import _require_initialized
        >>> _require_initialized(print)("hello")
        Traceback (most recent call last):
        RuntimeError: RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not _is_current_rpc_agent_set():
            raise RuntimeError(
                "RPC has not been initialized. Call torch.distributed.rpc.init_rpc first."
            )
        return func(*args, **kwargs)

    return wrapper
