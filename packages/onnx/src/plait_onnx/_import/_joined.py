"""Convolutions and the activations after them, which run as one operator.

Both become one step if nothing else reads what is between them. The operator computes the same bits
as the two; where a gradient is needed, it runs them one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["activation_of", "activations"]


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
    found: dict[int, tuple[int, ...]] = {}
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


def activation_of(
    proto: Any, array_of: Callable[[str], Any]
) -> tuple[str, float, float, float] | None:
    """Return an activation's name, limits and slope."""
    given = {a.name: a.f for a in proto.attribute if not a.ref_attr_name}
    if len(given) != len(proto.attribute) or len(proto.output) != 1:
        return None
    if proto.op_type == "LeakyRelu":
        return ("leaky_relu", 0.0, 0.0, given.get("alpha", 0.01))
    if proto.op_type == "Clip":
        limits = [given.get("min"), given.get("max")]
        for k, name in enumerate(proto.input[1:3]):
            array = array_of(name)
            if array is None or array.size != 1:
                return None
            limits[k] = float(array.reshape(()))
        if limits[0] is None or limits[1] is None or not limits[0] <= limits[1]:
            return None
        return ("hardtanh", limits[0], limits[1], 0.0)
    names = {"Relu": "relu", "HardSwish": "hardswish", "Mul": "silu"}
    return (names[proto.op_type], 0.0, 0.0, 0.0)
