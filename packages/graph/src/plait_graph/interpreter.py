"""Graphs run node by node in Python: for tests, for constants, and to look at each value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import plait_abi
import plait_core as pc
from plait_graph._computation_graph import Graph, Node
from plait_graph._graph_sizes import sizes_of_inputs
from plait_graph._values import Argument, Number, Value

__all__ = ["results_of", "run_graph", "run_node"]


def run_node(node: Node, values: Mapping[Value | Number, Any]) -> list[Any]:
    """Call the operator of a node and return its results.

    Args:
        node: the node; what it writes to changes in place.
        values: the tensors and numbers that it reads or writes.

    Returns:
        As many results as the schema has: tensors, and lists of tensors.

    Raises: what the operator raises; ArgumentError if a value is missing.

    Example:
        >>> import plait_core as pc
        >>> from plait_graph import Node, Value
        >>> from plait_graph.interpreter import run_node
        >>> x = Value("x")
        >>> run_node(Node("add", [x, 1.0, 1], [Value("1")]), {x: pc.ones(2)})
        [tensor([2., 2.])]
    """
    if node.regions:
        return [_control_flow(node, [_given(argument, values) for argument in node.args])]
    positional, keywords = [], {}
    for parameter, argument in zip(node.definition.schema.arguments, node.args, strict=True):
        if parameter.keyword_only:
            keywords[parameter.name] = _given(argument, values)
        else:
            positional.append(_given(argument, values))
    if node.form == "out":
        targets = tuple(_given(output, values) for output in node.outputs)
        keywords["out"] = targets[0] if len(targets) == 1 else targets
    result = plait_abi.operator(node.name)(*positional, **keywords)
    if not node.outputs:
        return []
    return [result] if len(node.outputs) == 1 else list(result)


def run_graph(
    graph: Graph,
    inputs: Sequence[Any],
    weights: dict[str, Any] | None = None,
    numbers: Mapping[str, int | float] | None = None,
) -> list[Any]:
    """Run the nodes of a graph one by one and return its outputs.

    Args:
        graph: the graph.
        inputs: a tensor for each of its inputs.
        weights: its weights by name. What a node writes to changes.
        numbers: its numbers by name; those that are missing are as they were in the capture.

    Raises: ArgumentError if tensors are missing; what operators raise.

    Example:
        >>> import plait_core as pc
        >>> from plait_graph import Graph, Value
        >>> from plait_graph.interpreter import run_graph
        >>> graph = Graph([Value("x", "float32", (2,))])
        >>> graph.outputs = [graph.call("neg", graph.inputs[0])]
        >>> run_graph(graph, [pc.ones(2)])
        [tensor([-1., -1.])]
    """
    weights = {} if weights is None else weights
    if len(inputs) != len(graph.inputs):
        raise plait_abi.ArgumentError(
            f"run_graph: `inputs` must be {len(graph.inputs)} tensors, got {len(inputs)}"
        )
    if graph.sizes:
        graph = graph.at_sizes(sizes_of_inputs(graph, inputs))
    values: dict[Value | Number, Any] = dict(zip(graph.inputs, inputs, strict=True))
    for weight in graph.weights:
        if weight.name not in weights:
            raise plait_abi.ArgumentError(f"run_graph: `weights` has no {weight.name!r}")
        values[weight] = weights[weight.name]
    for number in graph.numbers:
        values[number] = (numbers or {}).get(number.name, number.value)
    for node in graph.nodes:
        values.update(results_of(node, run_node(node, values)))
    return [values[value] for value in graph.outputs]


def results_of(node: Node, results: Sequence[Any]) -> Iterator[tuple[Value, Any]]:
    """Yield each result of a node that has a name, with its tensor.

    Args:
        node: The node.
        results: What its call returned.

    Example:
        >>> from plait_graph import Node, Value
        >>> from plait_graph.interpreter import results_of
        >>> node = Node("max.dim", [Value("x"), 0, False], [None, Value("at")])
        >>> [(value.name, result) for value, result in results_of(node, ["values", "indices"])]
        [('at', 'indices')]
    """
    for output, result in zip(node.outputs, results, strict=True):
        pairs = (
            zip(output, result, strict=True) if isinstance(output, tuple) else [(output, result)]
        )
        yield from ((value, tensor) for value, tensor in pairs if value is not None)


def _given(argument: Argument, values: Mapping[Value | Number, Any]) -> Any:
    """Return an argument with tensors and numbers in the place of their names."""
    if isinstance(argument, tuple):
        return [_given(each, values) for each in argument]
    if not isinstance(argument, (Value, Number)):
        return argument
    if argument not in values:
        raise plait_abi.ArgumentError(f"run_node: there is no value for %{argument.name}")
    return values[argument]


def _control_flow(node: Node, args: list[Any]) -> list[Any]:
    """Return the results of `cond` or `while_loop`, which are new tensors in C order."""
    if node.op == "cond":
        return _copies(run_graph(node.regions[0 if bool(args[0]) else 1], args[1]))
    carried, captured = _copies(args[0]), args[1]
    while bool(run_graph(node.regions[0], [*carried, *captured])[0]):
        carried = _copies(run_graph(node.regions[1], [*carried, *captured]))
    return carried


def _copies(tensors: Sequence[Any]) -> list[Any]:
    return [tensor.clone(memory_format=pc.contiguous_format) for tensor in tensors]
