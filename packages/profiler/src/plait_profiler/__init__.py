"""A profiler of operators, backward nodes, named ranges, memory and accelerators.

The recorder is an observer of plait's ABI, written in C++. It is registered only while a profile
runs. It keeps numbers; tables, timelines and pictures are computed from them, with NumPy, when they
are asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plait_profiler._averages import EventAverage, EventList
    from plait_profiler._compare import compare
    from plait_profiler._events import Event
    from plait_profiler._handlers import tensorboard_trace_handler
    from plait_profiler._memory import MemoryProfile, MemoryTimeline
    from plait_profiler._peak import Peak, machine_peak
    from plait_profiler._pictures import memory_figure, timeline_figure
    from plait_profiler._profile import ProfilerActivity, profile
    from plait_profiler._range import record_function
    from plait_profiler._recorded import Recorded, load
    from plait_profiler._recording import Category, Context, Kind, Recording, Signature
    from plait_profiler._schedule import ProfilerAction, schedule
    from plait_profiler._tables import Table
    from plait_profiler._timer import Measurement, Timer, TimerComparison
    from plait_profiler._watch import Watch, watch

_MODULES = {
    "Category": "_recording",
    "Context": "_recording",
    "Event": "_events",
    "EventAverage": "_averages",
    "EventList": "_averages",
    "Kind": "_recording",
    "Measurement": "_timer",
    "MemoryProfile": "_memory",
    "MemoryTimeline": "_memory",
    "Peak": "_peak",
    "ProfilerAction": "_schedule",
    "ProfilerActivity": "_profile",
    "Recorded": "_recorded",
    "Recording": "_recording",
    "Signature": "_recording",
    "Table": "_tables",
    "Timer": "_timer",
    "TimerComparison": "_timer",
    "Watch": "_watch",
    "compare": "_compare",
    "load": "_recorded",
    "machine_peak": "_peak",
    "memory_figure": "_pictures",
    "profile": "_profile",
    "record_function": "_range",
    "schedule": "_schedule",
    "tensorboard_trace_handler": "_handlers",
    "timeline_figure": "_pictures",
    "watch": "_watch",
}

__all__ = [
    "Category",
    "Context",
    "Event",
    "EventAverage",
    "EventList",
    "Kind",
    "Measurement",
    "MemoryProfile",
    "MemoryTimeline",
    "Peak",
    "ProfilerAction",
    "ProfilerActivity",
    "Recorded",
    "Recording",
    "Signature",
    "Table",
    "Timer",
    "TimerComparison",
    "Watch",
    "compare",
    "load",
    "machine_peak",
    "memory_figure",
    "profile",
    "record_function",
    "schedule",
    "tensorboard_trace_handler",
    "timeline_figure",
    "watch",
]

__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'plait_profiler' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"plait_profiler.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
