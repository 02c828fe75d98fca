"""A profiler of operators, backward nodes and named ranges of all threads.

The recorder is an observer of plait's ABI, written in C++. It is registered only while a profile
runs, and loaded when the first profile or range begins.
"""

from plait_profiler._averages import EventAverage, EventList
from plait_profiler._events import Event
from plait_profiler._profile import ProfilerActivity, profile
from plait_profiler._range import record_function

__all__ = [
    "Event",
    "EventAverage",
    "EventList",
    "ProfilerActivity",
    "profile",
    "record_function",
]

__version__ = "0.1.0"
