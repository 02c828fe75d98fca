"""`torch.fx`: programs as graphs of operations, which passes read and change."""

from __future__ import annotations

from plait_torch._fx_graph import CodeGen, Graph, PythonCode
from plait_torch._fx_interpreter import Interpreter, Transformer
from plait_torch._fx_module import (
    GraphModule,
    _assign_attr,
    _copy_attr,
    _make_graph_module,
    symbolic_trace,
)
from plait_torch._fx_node import (
    Node,
    _get_qualified_name as _get_qualified_name,
    _side_effectful_functions as _side_effectful_functions,
    has_side_effect,
    map_aggregate,
    map_arg,
)
from plait_torch._fx_recording import wrap
from plait_torch._fx_rewriter import Match, ReplacedPatterns, replace_pattern
from plait_torch._fx_shapes import ShapeProp, TensorMetadata
from plait_torch._fx_tracing import (
    PH,
    Attribute,
    GraphAppendingTracer,
    ParameterProxy,
    Proxy,
    TraceError,
    Tracer,
    TracerBase,
    is_fx_tracing,
)

__all__ = [
    "PH", "Attribute", "CodeGen", "Graph", "GraphAppendingTracer", "GraphModule", "Interpreter",
    "Match", "Node", "ParameterProxy", "Proxy", "PythonCode", "ReplacedPatterns", "ShapeProp",
    "TensorMetadata", "TraceError", "Tracer", "TracerBase", "Transformer", "_assign_attr",
    "_copy_attr", "_make_graph_module", "get_proxy_mode", "has_side_effect", "is_fx_tracing",
    "map_aggregate", "map_arg", "replace_pattern", "symbolic_trace", "wrap",
]  # fmt: skip


def get_proxy_mode() -> None:
    """Return None: operators are not traced below the functions of `torch`."""
    return None
