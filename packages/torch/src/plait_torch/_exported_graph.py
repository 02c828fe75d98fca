"""The graph of an exported program as a `GraphModule`, whose nodes call ``torch.ops.aten``."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import plait
from plait_torch._aten import of_call
from plait_torch._fx_graph import Graph
from plait_torch._fx_module import GraphModule
from plait_torch._fx_node import Node

__all__ = ["graph_module_of"]

_FORMS = {"function": 0, "inplace": 1, "out": 2}


class _Writer:
    """Writes calls of plait's graph as nodes. Tensors of the device "meta" stand for values."""

    def __init__(self) -> None:
        self.graph = Graph()
        self._nodes: dict[int, Node] = {}  # by the tensor that stands for their result
        self._tensors: list[Any] = []  # which so keep their ids

    def note(self, tensor: Any, node: Node) -> None:
        """Let a node make the value that a tensor stands for."""
        self._nodes[id(tensor)] = node
        self._tensors.append(tensor)
        node.meta["val"] = tensor

    def placeholder(self, name: str, value: Any) -> Any:
        """Add an argument; return the tensor that stands for it."""
        tensor = plait.empty_strided(
            value.shape, value.strides or _dense(value.shape), dtype=value.dtype, device="meta"
        )
        self.note(tensor, self.graph.placeholder(name))
        return tensor

    def call(self, node: Any, args: tuple[Any, ...], results: list[Any]) -> None:
        """Add the call of a node of plait's graph."""
        form = _FORMS[node.form]
        target, rest, kwargs = of_call(node.op, form, args, results if form else ())
        made = self.graph.call_function(target, self.given(rest), self.given(kwargs))
        if len(results) == 1:
            self._take(results[0], made)
            return
        made.meta["val"] = tuple(results)
        for at, result in enumerate(results):
            self._take(result, self.graph.call_function(operator.getitem, (made, at)))

    def _take(self, result: Any, node: Node) -> None:
        if isinstance(result, plait.Tensor):
            self.note(result, node)
            return
        node.meta["val"] = tuple(result)
        for at, each in enumerate(result):
            self.note(each, self.graph.call_function(operator.getitem, (node, at)))

    def given(self, value: Any) -> Any:
        """Return arguments with nodes in the place of tensors."""
        if isinstance(value, plait.Tensor):
            return self._nodes[id(value)]
        if isinstance(value, (list, tuple)):
            return type(value)(self.given(each) for each in value)
        if isinstance(value, dict):
            return {key: self.given(each) for key, each in value.items()}
        return value


def graph_module_of(program: Any) -> GraphModule:
    """Return a module of a program's graph. It gets parameters, buffers, constants and inputs in
    the order of the signature, and returns the buffers that it changed, then the results.

    Args:
        program: an `ExportedProgram`.

    Raises:
        NotImplementedError: if sizes are free, or for branches and loops.

    Example:
        >>> import plait
        >>> from plait_torch._export import export
        >>> from plait_torch._exported_graph import graph_module_of
        >>> graph_module = graph_module_of(export(plait.nn.ReLU(), (plait.ones(2),)))
        >>> [str(node.target) for node in graph_module.graph.nodes]
        ['input', 'aten.relu.default', 'output']
        >>> graph_module(plait.tensor([-1.0, 2.0]))
        (tensor([0., 2.]),)
    """
    from plait_graph.interpreter import results_of, run_node

    graph = program.graph
    if graph.sizes or any(node.regions for node in graph.nodes):
        raise NotImplementedError(
            "ExportedProgram.graph_module: a graph with free sizes, a branch or a loop has no "
            "GraphModule; use `graph`, whose `nodes` have `op`, `args` and `outputs`, and "
            "`module()`, which runs it"
        )
    writer, tensors = _Writer(), {}
    weights = {value.name: value for value in graph.weights}
    inputs = iter(graph.inputs)
    for spec in program.graph_signature.input_specs:
        value = weights[spec.target] if spec.target is not None else next(inputs)
        tensors[value] = writer.placeholder(spec.arg.name, value)
    for node in graph.nodes:
        args = tuple(_with_tensors(each, tensors) for each in node.args)
        made = run_node(node, tensors)
        writer.call(node, args, made)
        tensors.update(results_of(node, made))
    written = [
        tensors[weights[name]] for name in program.graph_signature.buffers_to_mutate.values()
    ]
    writer.graph.output(writer.given((*written, *(tensors[value] for value in graph.outputs))))
    return GraphModule(plait.nn.Module(), writer.graph)


def _with_tensors(argument: Any, tensors: Mapping[Any, Any]) -> Any:
    if isinstance(argument, tuple):
        return tuple(_with_tensors(each, tensors) for each in argument)
    return tensors.get(argument, argument) if _is_value(argument) else argument


def _is_value(argument: Any) -> bool:
    from plait_graph import Value

    return isinstance(argument, Value)


def _dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, stride = [], 1
    for size in reversed(shape):
        strides.append(stride)
        stride *= max(size, 1)
    return tuple(reversed(strides))
