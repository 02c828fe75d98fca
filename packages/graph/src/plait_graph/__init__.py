"""Graphs: functions that are recorded, saved, and run without Python."""

import plait_core as _core  # noqa: F401  operators, and the kernels of the CPU
