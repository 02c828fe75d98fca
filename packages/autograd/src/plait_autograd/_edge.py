"""Gradient edges: outputs of nodes of the graph, without their tensors."""

from __future__ import annotations

from typing import Any, NamedTuple

from plait_autograd._autograd import stand_in


class GradientEdge(NamedTuple):
    """The target of a tensor's gradients: an output of a node.

    `backward` and `grad` accept it instead of a tensor, so that the tensor need not be kept.

    Args:
        node: The node that computed the tensor.
        output_nr: Which of its results the tensor is.
        ownership_token: Keeps the node alive.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> y = 2 * pc.ones(1, requires_grad=True)
        >>> edge = pa.graph.get_gradient_edge(y)
        >>> edge.node == y.grad_fn, edge.output_nr
        (True, 0)
        >>> z = y.exp()
        >>> del y
        >>> pa.grad(z, edge)[0].shape
        plait.Size([1])
    """

    node: Any
    output_nr: int
    ownership_token: Any = None
    """The object that keeps the node alive if ``node`` is a `FunctionContext`, which does not."""


def tensor_at(value: Any) -> Any:
    """Return a tensor with the history of an edge; anything else as it is."""
    return stand_in(value.node, value.output_nr) if isinstance(value, GradientEdge) else value
