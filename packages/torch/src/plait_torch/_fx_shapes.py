"""`torch.fx.passes.shape_prop`: shapes and dtypes of a graph's values, from a run."""

from __future__ import annotations

from typing import Any, NamedTuple

import plait
from plait_torch._fx_interpreter import Interpreter
from plait_torch._fx_node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its elements."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _of(tensor: Any) -> TensorMetadata:
    return TensorMetadata(
        tensor.shape, tensor.dtype, tensor.requires_grad, tuple(tensor.stride()),
        plait.contiguous_format if tensor.is_contiguous() else None, False, {},
    )  # fmt: skip


class ShapeProp(Interpreter):
    """Runs a graph and stores each value's ``"tensor_meta"`` and ``"type"`` in its node's `meta`.

    Example:
        >>> import plait
        >>> from plait_torch._fx_module import symbolic_trace
        >>> from plait_torch._fx_shapes import ShapeProp
        >>> traced = symbolic_trace(lambda x: x.sum(0))
        >>> _ = ShapeProp(traced).propagate(plait.ones(2, 3))
        >>> [tuple(node.meta["tensor_meta"].shape) for node in traced.graph.nodes]
        [(2, 3), (3,), (3,)]
    """

    def run_node(self, n: Node) -> Any:
        """Run one node and store what its value is."""
        result = super().run_node(n)
        results = []

        def look(value: Any) -> Any:
            if isinstance(value, plait.Tensor):
                results.append(value)
                return _of(value)
            return value

        meta = map_aggregate(result, look)
        if results:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on arguments; return its result."""
        return super().run(*args)
