"""Graphs: functions that are recorded, saved, and run without Python."""

import plait_core as _core  # noqa: F401  operators, and the kernels of the CPU
from plait_graph._compile import Compiled, compile

__all__ = ["Compiled", "compile"]
