"""Graphs: functions that are recorded, saved, and run without Python.

>>> from plait_graph import Graph, Value
>>> x, w = Value("x", "float32", (8, 3)), Value("w", "float32", (4, 3))
>>> graph = Graph([x], [w])
>>> graph.outputs = [graph.call("relu", graph.call("linear", x, w))]
>>> print(graph)
inputs   %x float32[8, 3]
weights  %w float32[4, 3]
%1 = linear(%x, %w, None)
%2 = relu(%1)
outputs  %2
"""

import plait_core as _core  # noqa: F401  operators, and the kernels of the CPU
from plait_graph._bundle import bundle
from plait_graph._compile import compile
from plait_graph._computation_graph import Graph, Node
from plait_graph._control_flow import cond, while_loop
from plait_graph._deferred import Deferred
from plait_graph._export import Loaded, export, load
from plait_graph._free_sizes import Dim
from plait_graph._frozen import Compiled
from plait_graph._values import Number, SizeExpression, SizeQuotient, SizeRange, Value

__all__ = [
    "Compiled",
    "Deferred",
    "Dim",
    "Graph",
    "Loaded",
    "Node",
    "Number",
    "SizeExpression",
    "SizeQuotient",
    "SizeRange",
    "Value",
    "bundle",
    "compile",
    "cond",
    "export",
    "load",
    "while_loop",
]

__version__ = "0.2.0"
