"""Convolutions and the activations after them, which run as one operator.

Both become one step if nothing else reads what is between them. The operator computes the same bits
as the two; where a gradient is needed, it runs them one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

__all__ = ["activations"]


def _names_read(graph: Any) -> Iterator[str]:
    """Yield names that nodes read, in subgraphs too, and the names of outputs."""
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _names_read(attribute.g)
    for value in graph.output:
        yield value.name


def activations(graph: Any) -> dict[int, tuple[int, ...]]:
    """Return places of activations, with those of the convolution and of nodes between them."""
    convolutions = {
        node.output[0]: i
        for i, node in enumerate(graph.node)
        if node.op_type == "Conv" and not node.domain and len(node.output) == 1
    }
    if not convolutions:
        return {}
    reads = Counter(_names_read(graph))
    sigmoids = {
        node.output[0]: i
        for i, node in enumerate(graph.node)
        if node.op_type == "Sigmoid" and not node.domain and node.input[:1] and node.output[:1]
    }
    found = {}
    for i, node in enumerate(graph.node):
        if node.domain or not node.input:
            continue
        x = node.input[0]
        if node.op_type in ("Relu", "LeakyRelu", "Clip", "HardSwish"):
            if x in convolutions and reads[x] == 1:
                found[i] = (convolutions[x],)
        elif node.op_type == "Mul" and len(node.input) == 2:
            x, gate = sorted(node.input, key=lambda name: name in sigmoids)
            place = sigmoids.get(gate)
            if (
                place is not None
                and x in convolutions
                and list(graph.node[place].input) == [x]
                and (reads[x], reads[gate]) == (2, 1)
            ):
                found[i] = (convolutions[x], place)
    return {i: places for i, places in found.items() if max(places) < i}
