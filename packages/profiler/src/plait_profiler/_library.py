"""Loads the recorder, at the first profile."""

from __future__ import annotations

import functools
from types import ModuleType

import plait_abi


@functools.cache
def observer() -> ModuleType:
    """Load the component and return the module of its functions, `plait_profiler._observer`."""
    plait_abi.load(plait_abi.paths("plait_profiler")["libplait_profiler.so"])
    from plait_profiler import _observer

    _observer.watch_stacks()
    return _observer
