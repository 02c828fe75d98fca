"""Graphs: functions that are recorded, saved, and run without Python."""

import plait_core as _core  # noqa: F401  operators, and the kernels of the CPU
from plait_graph._compile import Compiled, compile
from plait_graph._export import Loaded, export, load

__all__ = ["Compiled", "Loaded", "compile", "export", "load"]
