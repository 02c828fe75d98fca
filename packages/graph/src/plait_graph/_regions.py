"""Regions of a node: what their inputs are outside, and how a pass changes them."""

from __future__ import annotations

import itertools
from collections.abc import Collection

from plait_graph._computation_graph import Graph, Node
from plait_graph._values import Value, values_in

__all__ = ["add_operand", "bound_inputs", "drop_unread_operands", "result_types", "with_weights"]


def carried(node: Node) -> int:
    """Return how many of the first operands are carried by a loop: they change in each round."""
    return len(list(values_in(node.args[0]))) if node.op == "while_loop" else 0


def bound_inputs(node: Node, region: Graph, values: Collection[Value]) -> dict[str, Value]:
    """Return the names of a region's inputs that always are one of some values outside."""
    pairs = list(zip(region.inputs, node.operands(), strict=True))
    return {own.name: operand for own, operand in pairs[carried(node) :] if operand in values}


def with_weights(region: Graph, names: Collection[str]) -> Graph:
    """Return a region as a graph, with some of its inputs as weights."""
    inputs = [value for value in region.inputs if value.name not in names]
    weights = [value for value in region.inputs if value.name in names]
    return Graph(inputs, weights, nodes=region.nodes, outputs=region.outputs)


def add_operand(node: Node, region: Graph, value: Value, operand: Value) -> None:
    """Make a value of a region an input, which is an operand of the node."""
    last = node.args[-1]
    assert isinstance(last, tuple)
    node.args[-1] = (*last, operand)
    for each in node.regions:
        own = value
        if each is not region:
            names = {other.name for other in each.values()}
            name = next(n for n in (f"unused.{k}" for k in itertools.count()) if n not in names)
            own = Value(name, value.dtype, value.shape, value.strides, value.device)
        each.inputs.append(own)


def drop_unread_operands(node: Node) -> None:
    """Remove the operands that no region reads, except for carried ones."""
    first = carried(node)
    unread = set(range(first, len(node.operands())))
    for region in node.regions:
        read = {value for each in region.nodes for value in each.reads()} | set(region.outputs)
        read |= {value for each in region.nodes for value in values_in(each.outputs)}
        unread = {at for at in unread if region.inputs[at] not in read}
    if not node.regions or not unread:
        return
    for region in node.regions:
        region.inputs = [value for at, value in enumerate(region.inputs) if at not in unread]
    last = node.args[-1]
    assert isinstance(last, tuple)
    node.args[-1] = tuple(each for at, each in enumerate(last, first) if at not in unread)


def result_types(node: Node) -> dict[Value, Value]:
    """Return the results of a node with the types that its regions give, where they are known."""
    (results,) = node.outputs
    types = node.regions[0].inputs if node.op == "while_loop" else node.regions[0].outputs
    assert isinstance(results, tuple)
    return {
        result: Value(result.name, each.dtype, each.shape, None, each.device)
        for result, each in zip(results, types, strict=False)
        if result is not None
    }
