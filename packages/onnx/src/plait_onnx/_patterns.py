"""Operators of ONNX that a recording has as several calls."""

from __future__ import annotations

from typing import Any

from plait_graph import Graph, Node, Value

__all__ = ["join_batch_norms"]


def join_batch_norms(graph: Graph) -> Graph:
    r"""Return the graph with a batch norm in the place of the calls that it consists of.

    With running statistics these are, for each channel,

    .. math:: s = w / \sqrt{v + \epsilon}, \quad t = b - m s, \quad y = t + s x
    """
    graph = graph.copy()
    makers = {value.name: node for node in graph.nodes for value in node.defines()}
    weights = {value.name for value in graph.weights}
    for node in graph.nodes:
        found = _batch_norm(node, makers, weights) if node.op == "addcmul" else None
        if found is not None:
            node.op, node.args = "batch_norm", found
    return graph


def _batch_norm(node: Node, makers: dict[str, Node], weights: set[str]) -> list[Any] | None:
    """Return the arguments of the batch norm whose last call a node is, or None."""

    def made(value: Any, op: str, count: int) -> list[Any] | None:
        """Return the first arguments of the call that makes a value, if it is of the operator."""
        maker = makers.get(value.name) if isinstance(value, Value) else None
        same = maker is not None and maker.op == op and maker.form == "function"
        return maker.args[:count] if same and maker is not None else None

    shift, x, scale, value = node.args
    wide_shift, wide_scale = made(shift, "view", 2), made(scale, "view", 2)
    if value != 1 or node.form != "function" or wide_shift is None or wide_scale is None:
        return None
    (shift, shape), (scale, other) = wide_shift, wide_scale
    if shape != other or not isinstance(shape, tuple) or shape[0] != 1 or set(shape[2:]) - {1}:
        return None
    weighted = made(scale, "mul", 2)
    root, weight = weighted if weighted is not None else (scale, None)
    inverse = made(root, "rsqrt", 1)
    moved = made(inverse[0], "add", 2) if inverse is not None else None
    biased = made(shift, "add", 2)
    negative, bias = biased if biased is not None else (shift, None)
    opposite = made(negative, "neg", 1)
    product = made(opposite[0], "mul", 2) if opposite is not None else None
    if moved is None or product is None or product[1] != scale:
        return None
    variance, epsilon = moved
    tensors = [each for each in (weight, bias, product[0], variance) if each is not None]
    are_weights = all(isinstance(each, Value) and each.name in weights for each in tensors)
    if not are_weights or not isinstance(epsilon, float):
        return None
    return [x, weight, bias, product[0], variance, False, 0.1, epsilon]
