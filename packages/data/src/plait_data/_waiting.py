"""The time for which a program waits for batches, as events of profiles."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["waiting"]

_DATA = 128  # PLAIT_EVENT_DATA of plait's ABI


def waiting(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Let observers of plait's runtime, where there is one, see each call of a ``__next__``."""

    @functools.wraps(method)
    def observed(self: Any) -> Any:
        binding = sys.modules.get("plait_abi.binding")
        if binding is None or not binding.observed(_DATA):
            return method(self)
        with binding.Range(f"enumerate(DataLoader)#{type(self).__name__}.__next__", _DATA):
            return method(self)

    return observed
