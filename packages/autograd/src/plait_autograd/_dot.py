"""The graph as text in Graphviz's DOT language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from plait_autograd import _autograd
from plait_autograd._autograd import Node

__all__ = ["to_dot"]


def to_dot(tensors: Any, params: Mapping[str, Any] | None = None) -> str:
    """Return the graph behind results in the DOT language; no library is needed for it.

    Boxes are operators, rounded boxes are leaves; arrows point in the direction in which gradients
    flow. Nodes are numbered in the order of their recording, so that the same program gives the
    same text.

    Args:
        tensors: a result or a sequence of them.
        params: names for leaves (for example ``dict(model.named_parameters())``).

    Raises:
        RuntimeError: a result does not require grad.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x = pc.ones(2, requires_grad=True)
        >>> print(pa.graph.to_dot(x * x, {"x": x}))
        digraph {
          n0 [label="MulBackward" shape=box];
          n1 [label="x" shape=box style=rounded];
          n0 -> n1;
          n0 -> n1;
        }
    """
    if not isinstance(tensors, Iterable):
        raise TypeError(
            "to_dot: `tensors` must be a tensor or a sequence of tensors, "
            f"got {type(tensors).__name__}"
        )
    roots = [tensors] if _autograd.is_tensor(tensors) else list(tensors)
    names: dict[Node, str] = {}
    for name, tensor in (params or {}).items():
        node, _ = _autograd.gradient_edge(tensor)
        if node is not None:
            names.setdefault(node, name)
    waiting: list[Node] = []
    for i, root in enumerate(roots):
        node, _ = _autograd.gradient_edge(root)
        if node is None:
            raise RuntimeError(f"to_dot: result {i} must require grad")
        waiting.append(node)
    visited: dict[Node, tuple[tuple[Node | None, int], ...]] = {}
    while waiting:
        node = waiting.pop()
        if node in visited:
            continue
        visited[node] = _autograd.edges(node)
        waiting += [to for to, _ in reversed(visited[node]) if to is not None]
    # the latest first; leaves all have the same number and keep the order in which they were found
    order = sorted(visited, key=lambda node: (node.name() == "AccumulateGrad", -node.sequence))
    number = {node: i for i, node in enumerate(order)}
    lines = ["digraph {"]
    for node in order:
        leaf = node.name() == "AccumulateGrad"
        label = names.get(node, node.name()).replace("\\", "\\\\").replace('"', '\\"')
        style = " style=rounded" if leaf else ""
        lines.append(f'  n{number[node]} [label="{label}" shape=box{style}];')
    for node in order:
        lines += [
            f"  n{number[node]} -> n{number[to]};" for to, _ in visited[node] if to is not None
        ]
    return "\n".join([*lines, "}"])
