"""Graphs: functions that are recorded, saved, and run without Python.

Importing this package loads a library without Python in it into plait's runtime.
"""

from plait_abi import load as _load, paths as _paths

_load(_paths(__name__)["libplait_graph.so"])
