"""Which values of a graph share memory, and which nodes write to it.

The answers come from the schemas of the operators and are careful: what may share memory does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from plait_graph._computation_graph import Graph, Node
from plait_graph._values import Value, values_in

__all__ = ["Memory", "writes"]

# composites whose results are new tensors, also where they have nothing to do
_NEW = ("batch_norm", "batch_norm_by", "batch_norm_activation")


def writes(node: Node) -> list[Value]:
    """Return the values that a node writes to.

    Running statistics (``!`` of arguments beside `training`) are written in training alone.
    """
    if node.form == "inplace":
        return list(values_in(node.args[0]))
    if node.form == "out":
        return list(values_in(node.outputs))
    if node.regions:
        return _written_operands(node)
    parameters = node.definition.schema.arguments
    args = {p.name: argument for p, argument in zip(parameters, node.args, strict=True)}
    if args.get("training") is False:
        return []
    return [value for p in parameters if p.writes for value in values_in(args[p.name])]


def _written_operands(node: Node) -> list[Value]:
    """Return the operands that regions write to. A loop carries copies, which its body may write.

    Programs refuse other writes; a graph that a pass looks at may have them.
    """
    results = []
    carried = len(list(values_in(node.args[0]))) if node.op == "while_loop" else 0
    for region in node.regions:
        memory = Memory(region)
        for at, (operand, own) in enumerate(zip(node.operands(), region.inputs, strict=True)):
            if at >= carried and memory.of(own) in memory.written:
                results.append(operand)
    return list(dict.fromkeys(results))


class Memory:
    """The memory of the values of a graph: groups that may share it.

    Args:
        graph: the graph.
        weights: its tensors by name, of which it is known whether they share memory; without them
            all weights may do so, as all inputs may. Inputs and weights do not share memory.
    """

    def __init__(self, graph: Graph, weights: Mapping[str, Any] | None = None) -> None:
        self._parents: dict[Value, Value] = {}
        self._join(graph.inputs)
        for group in _storages(graph.weights, weights or {}):
            self._join(group)
        for node in graph.nodes:
            for group in _shared(node):
                self._join(group)
        written = {self.of(value) for node in graph.nodes for value in writes(node)}
        self.written = written
        self.returned = self.of_all(graph.outputs)
        self.outside = self.returned | {self.of(value) for value in [*graph.inputs, *graph.weights]}

    def of(self, value: Value) -> Value:
        """Return the representative of the values that may share memory with `value`."""
        root = value
        while root in self._parents:
            root = self._parents[root]
        while value in self._parents:  # shorten the path
            self._parents[value], value = root, self._parents[value]
        return root

    def of_all(self, values: Iterable[Value]) -> set[Value]:
        """Return the representatives of several values."""
        return {self.of(value) for value in values}

    def _join(self, values: Iterable[Value]) -> None:
        roots = list(dict.fromkeys(map(self.of, values)))
        for root in roots[1:]:
            self._parents[root] = roots[0]


def _storages(values: list[Value], weights: Mapping[str, Any]) -> list[list[Value]]:
    """Return the groups of weights that share a storage; those without a tensor are one group."""
    groups: dict[object, list[Value]] = {}
    for value in values:
        tensor = weights.get(value.name)
        place = None if tensor is None else (tensor.device, tensor.untyped_storage().data_ptr())
        groups.setdefault(place, []).append(value)
    return list(groups.values())


def _shared(node: Node) -> Iterator[list[Value]]:
    """Yield groups of arguments and results of a node that may share memory.

    A composite without marks may return an argument, as dropout outside of training does.
    """
    if node.form != "function":
        return
    definition = node.definition
    results = definition.schema.results
    if not any(result.alias for result in results):
        if not definition.is_composite or node.op in _NEW:
            return
        yield [*node.reads(), *values_in(node.outputs)]
        return
    for result, output in zip(results, node.outputs, strict=True):
        if result.alias:
            for parameter, argument in zip(definition.schema.arguments, node.args, strict=True):
                if parameter.alias == result.alias:
                    yield [*values_in(argument), *values_in(output)]
