"""Graphs of plait, node by node as ONNX nodes.

A graph of plait has views and writes; ONNX has neither. So each value of the graph stands for the
ONNX tensor that has its elements at that place. A write makes a new tensor, puts it back into
those of which the written one is a view, and the other views of them are computed again where they
are read next.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ValueInfoProto

import plait_core as pc
import plait_onnx._operators  # noqa: F401 - fills the table
from plait_abi import binding
from plait_graph import Graph, Node, Number, SizeExpression, SizeQuotient, Value as GraphValue
from plait_graph.interpreter import results_of, run_node
from plait_onnx._builder import Builder, Size, Unsupported, Value
from plait_onnx._counted_sizes import counted_sizes, has_counted_sizes
from plait_onnx._dtypes import element_type
from plait_onnx._table import TABLE, lower_call

__all__ = ["Lowering", "Result", "value_info"]

# views that keep the order of elements
_IN_ORDER = (
    *("view", "reshape", "flatten", "unflatten", "unsqueeze", "squeeze", "squeeze.dim", "ravel"),
    *("view_as", "reshape_as", "alias", "detach", "positive", "contiguous", "dense"),
)
_SMALL = 1 << 16  # elements of a tensor that is computed at once
_FILLS = ("zeros", "ones", "full", "empty", "empty_strided")


@dataclasses.dataclass(frozen=True)
class Result:
    """What is known of a tensor of the graph: dtype, sizes in the recording and in all runs."""

    dtype: Any
    shape: tuple[int, ...]
    dims: tuple[Size, ...]
    in_memory_order: bool

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def named(self, name: str) -> Value:
        """Return an ONNX tensor of this type."""
        return Value(name, self.dtype, self.shape, self.dims)


def value_info(name: str, result: Result) -> ValueInfoProto:
    """Return the entry of a tensor among the inputs or outputs of an ONNX graph."""
    return onnx.helper.make_tensor_value_info(name, element_type(result.dtype), list(result.dims))


class Lowering:
    """Adds a graph to a builder.

    Args:
        builder: gets the nodes.
        graph: the graph, with its free sizes.
        fixed: the graph at the sizes of the recording.
        weights: its weights, by name.
    """

    def __init__(
        self, builder: Builder, graph: Graph, fixed: Graph, weights: dict[str, pc.Tensor]
    ) -> None:
        self.builder, self.graph, self.fixed, self.weights = builder, graph, fixed, weights
        self.types: dict[str, Result] = {}
        self._values: dict[str, Value] = {}
        self._tensors: dict[Any, Any] = {}
        self._parents: dict[str, tuple[str, Node, tuple[Any, ...]]] = {}
        self._read: set[str] = set()
        self._stale: set[str] = set()
        self._constant: set[str] = set()
        self._producers: dict[str, tuple[str, dict[str, Any]]] = {}

    # ---- the graph -------------------------------------------------------------------------------

    def bind(self, value: GraphValue, tensor: pc.Tensor, name: str, dims: Any = None) -> None:
        """Let an input or weight be an ONNX tensor."""
        self.types[value.name] = self._described(value.name, tensor, dims)
        self._values[value.name] = self.types[value.name].named(name)
        self._tensors[value.name] = tensor

    def run(self) -> list[Value]:
        """Add the nodes and return the outputs."""
        self._read = {value.name for node in self.graph.nodes for value in node.reads()}
        self._read |= {value.name for value in self.graph.outputs}
        # of a written tensor all views are read
        self._read |= {
            value.name
            for node in self.graph.nodes
            if node.form != "function"
            for output in node.outputs
            for value in _parts(output)
        }
        for number in self.fixed.numbers:
            self._tensors[number.name] = number.value
        for weight in self.fixed.weights:
            self._constant.add(weight.name)
        last = {name: at for at, node in enumerate(self.fixed.nodes) for name in _names_in(node)}
        kept = {value.name for value in self.fixed.outputs}
        for at, (node, fixed) in enumerate(zip(self.graph.nodes, self.fixed.nodes, strict=True)):
            self._lower(node, fixed)
            for name in _names_in(fixed):
                if last[name] == at and name not in kept:
                    self._tensors.pop(name, None)
        return [self.get(value.name) for value in self.graph.outputs]

    def example(self, name: str) -> pc.Tensor:
        """Return the value of an output in the recording."""
        tensor: pc.Tensor = self._tensors[name]
        return tensor

    def _described(self, name: str, tensor: pc.Tensor, dims: Any = None) -> Result:
        shape = tuple(tensor.shape)
        known = self.graph.shapes.get(name, shape) if dims is None else dims
        return Result(tensor.dtype, shape, tuple(known), tensor.is_contiguous())

    # ---- nodes -----------------------------------------------------------------------------------

    def _lower(self, node: Node, fixed: Node) -> None:
        env = {
            value: self._tensors[value.name]
            for argument in fixed.args
            for value in _parts(argument, (GraphValue, Number))
        }
        if fixed.form == "out":
            env |= {v: self._tensors[v.name] for out in fixed.outputs for v in _parts(out)}
        places = {v.name: _place(t) for v, t in env.items() if isinstance(t, pc.Tensor)}
        pairs = list(results_of(fixed, run_node(fixed, env)))
        made = {value.name: tensor for value, tensor in pairs}
        self._tensors.update(made)
        is_new = {name for name in made if name not in self.types}
        operands = [[self.types[v.name].dims for v in _parts(each)] for each in node.args]
        unknown = has_counted_sizes(node, operands)
        for name in is_new:
            dims = None
            if unknown and name not in self.graph.shapes:
                dims = counted_sizes(node, operands, tuple(made[name].shape))
            self.types[name] = self._described(name, made[name], dims)
        inputs = [value.name for argument in node.args for value in _parts(argument)]
        is_constant = not _is_random(node) and all(name in self._constant for name in inputs)
        is_constant = is_constant and not node.regions and not _has_sizes(node.args)
        results = self._results(node, fixed, inputs, is_constant, made)
        for value, name in _named(node, results):
            self._settle(value, name, node, is_new, is_constant, places)

    def _settle(
        self,
        value: str,
        name: str,
        node: Node,
        is_new: set[str],
        is_constant: bool,
        places: dict[str, int],
    ) -> None:
        """Note the ONNX tensor that a value of the graph now is."""
        result = self.types[value].named(name)
        if value not in is_new or node.form != "function":
            self._constant.discard(value)
            self._write(value, result)
            return
        self._values[value] = result
        if is_constant:
            self._constant.add(value)
        place = _place(self._tensors[value])
        source = next((each for each, at in places.items() if at == place and place), None)
        if source is not None:
            self._parents[value] = (source, node, self._result_types(node))

    def _results(
        self,
        node: Node,
        fixed: Node,
        inputs: list[str],
        is_constant: bool,
        made: dict[str, pc.Tensor],
    ) -> Any:
        if node.regions:
            return [self._control_flow(node, fixed)]
        elements = sum(int(tensor.numel()) for tensor in made.values())
        is_small = elements <= _SMALL and not any(_is_complex(each) for each in made.values())
        folds = is_constant and node.form == "function" and made
        if folds and (node.op not in TABLE or (not inputs and is_small and not _is_fill(node))):
            return self._folded(node, made)
        return self._call(node)

    def _folded(self, node: Node, made: dict[str, pc.Tensor]) -> list[Any]:
        """Return the results of a call as constants."""

        def one(output: Any) -> Any:
            if isinstance(output, tuple):
                return [one(each) for each in output]
            if output is None:
                return None
            label = self.builder.names.new("constant")
            self.builder.weights.tensors[label] = made[output.name].contiguous()
            return label

        return [one(output) for output in node.outputs]

    def _result_types(self, node: Node) -> tuple[Any, ...]:
        def one(output: Any) -> Any:
            if isinstance(output, tuple):
                return [one(each) for each in output]
            is_read = output is not None and output.name in self._read
            return self.types[output.name] if is_read else None

        return tuple(one(output) for output in node.outputs)

    def _call(self, node: Node, replaced: Any = None, results: Any = None) -> list[Any]:
        """Add the nodes of a call; return an ONNX name for each result.

        Args:
            node: the call.
            replaced: a pair, a value and the tensor that the call gets in its place.
            results: the types of the results; None: those that the graph has.
        """
        if node.op not in TABLE:
            raise Unsupported(f"{node.op}: ONNX has no such operator, nor one that it consists of")

        def given(argument: Any) -> Any:
            if isinstance(argument, tuple):
                return tuple(given(each) for each in argument)
            if isinstance(argument, Number):
                return argument.value
            if not isinstance(argument, GraphValue):
                return argument
            if replaced is not None and argument.name == replaced[0]:
                return replaced[1]
            return self.get(argument.name)

        parameters = node.definition.schema.arguments
        arguments = {
            parameter.name: given(argument)
            for parameter, argument in zip(parameters, node.args, strict=True)
        }
        self.builder.results = self._result_types(node) if results is None else results
        self.builder.call = node.op
        self.builder.linear_of = self._linear_of
        self.builder.in_memory_order = all(
            self.types[value.name].in_memory_order
            for argument in node.args
            for value in _parts(argument)
        )
        try:
            got = lower_call(self.builder, node.op, arguments)
        except Unsupported as error:
            if str(error).startswith(f"{node.op}: "):
                raise
            raise Unsupported(f"{node.op}: {error}") from None
        listed = [_label(each) for each in (got if isinstance(got, tuple) else (got,))]
        if replaced is None and len(listed) == 1 and isinstance(listed[0], str):
            self._producers.setdefault(listed[0], (node.op, arguments))
        return listed

    # ---- views and writes ------------------------------------------------------------------------

    def get(self, name: str) -> Value:
        """Return the ONNX tensor that a value of the graph is now."""
        if name in self._stale:
            self._stale.discard(name)
            source, node, _ = self._parents[name]
            self.get(source)
            for value, label in _named(node, self._call(node)):
                if value == name:
                    self._values[value] = self.types[value].named(label)
        return self._values[name]

    def _write(self, name: str, content: Value) -> None:
        chain = {name}
        self._values[name] = content
        self._stale.discard(name)
        while name in self._parents:
            source, node, types = self._parents[name]
            old = self.get(source)
            content = self._put_back(node, types, name, source, old, content)
            name = source
            chain.add(name)
            self._values[name] = content
            self._constant.discard(name)
        for each in self._parents:
            if each not in chain and self._root(each) == name:
                self._stale.add(each)
                self._constant.discard(each)

    def _root(self, name: str) -> str:
        while name in self._parents:
            name = self._parents[name][0]
        return name

    def _put_back(
        self, node: Node, types: Any, name: str, source: str, old: Value, content: Value
    ) -> Value:
        """Return a tensor with a view of it replaced."""
        b = self.builder
        sizes = b.sizes_of(old)
        if node.op in _IN_ORDER:
            return self.types[source].named(b.reshape(content, sizes))
        count = b.product(sizes)
        if isinstance(count, int) and count <= _SMALL:
            places = b.constant(np.arange(count).reshape(old.shape))
        else:
            places = b.reshape(b.positions(count), sizes)
        positions = Value(places, pc.int64, old.shape, old.dims)
        kinds = tuple(_as_int64(each) for each in types)
        names = dict(_named(node, self._call(node, (source, positions), kinds)))
        moved = b.op("ScatterElements", b.flat(old), b.flat(names[name]), b.flat(content), axis=0)
        return self.types[source].named(b.reshape(moved, sizes))

    def _linear_of(self, value: Value) -> Any:
        """Return the operands of the linear layer that computes a tensor, or None."""
        name = value.name
        for _ in range(4):
            op, arguments = self._producers.get(name, ("", {}))
            if op == "linear":
                return arguments["input"], arguments["weight"], arguments["bias"]
            if op not in _IN_ORDER:
                return None
            name = arguments["self"].name
        return None

    # ---- control flow ----------------------------------------------------------------------------

    def _region(
        self, region: Graph, inputs: Sequence[Value], examples: Sequence[pc.Tensor], b: Builder
    ) -> tuple[Lowering, list[Value]]:
        inner = Lowering(b, region, region, {})
        for value, tensor, example in zip(region.inputs, inputs, examples, strict=True):
            inner.bind(value, example.clone(), tensor.name, tensor.dims)
        return inner, inner.run()

    def _branch(
        self, region: Graph, inputs: list[Value], examples: list[pc.Tensor], title: str
    ) -> GraphProto:
        b = self.builder.inner()
        inner, outputs = self._region(region, inputs, examples, b)
        infos = []
        for value, output in zip(region.outputs, outputs, strict=True):
            infos.append(value_info(b.op("Identity", output), inner.types[value.name]))
        return onnx.helper.make_graph(b.nodes, title, [], infos)

    def _control_flow(self, node: Node, fixed: Node) -> list[str]:
        b = self.builder
        values = [[self.get(v.name) for v in _parts(argument)] for argument in node.args]
        examples = [[self._tensors[v.name] for v in _parts(argument)] for argument in fixed.args]
        (outputs,) = node.outputs
        count = len(outputs)  # type: ignore[arg-type]
        if node.op == "cond":
            pred = b.reshape(b.cast(values[0][0], "bool"), [])
            then, other = (
                self._branch(region, values[1], examples[1], title)
                for region, title in zip(node.regions, ("then", "else"), strict=True)
            )
            return b.ops("If", count, pred, then_branch=then, else_branch=other)
        return self._loop(node, values, examples)

    def _loop(
        self, node: Node, values: list[list[Value]], examples: list[list[pc.Tensor]]
    ) -> list[str]:
        b = self.builder
        carried, captured = values
        before = [*examples[0], *examples[1]]
        _, (first,) = self._region(node.regions[0], [*carried, *captured], before, b)
        start = b.reshape(b.cast(first, "bool"), [])
        body = b.inner()
        names = [b.names.new("carried") for _ in carried]
        own = [
            dataclasses.replace(value, name=name)
            for value, name in zip(carried, names, strict=True)
        ]
        inner, results = self._region(node.regions[1], [*own, *captured], before, body)
        after = [inner.example(v.name) for v in node.regions[1].outputs] + examples[1]
        _, (again,) = self._region(node.regions[0], [*results, *captured], after, body)
        goes_on = body.reshape(body.cast(again, "bool"), [])
        infos = [
            value_info(body.op("Identity", result), inner.types[value.name])
            for value, result in zip(node.regions[1].outputs, results, strict=True)
        ]
        boolean = onnx.TensorProto.BOOL
        inputs = [
            onnx.helper.make_tensor_value_info(
                b.names.new("iteration"), onnx.TensorProto.INT64, []
            ),
            onnx.helper.make_tensor_value_info(b.names.new("condition"), boolean, []),
            *(
                onnx.helper.make_tensor_value_info(v.name, element_type(v.dtype), list(v.dims))
                for v in own
            ),
        ]
        outputs = [onnx.helper.make_tensor_value_info(goes_on, boolean, []), *infos]
        graph = onnx.helper.make_graph(body.nodes, "body", inputs, outputs)
        return b.ops("Loop", len(carried), None, start, *carried, body=graph)


@functools.cache
def _random() -> frozenset[str]:
    return frozenset(dict(binding.operators_with("random")))


def _label(result: Any) -> Any:
    """Return the name of a result, which a function may also return as it got it."""
    if isinstance(result, list):
        return [_label(each) for each in result]
    return result.name if isinstance(result, Value) else result


def _is_random(node: Node) -> bool:
    return node.op in _random()


def _parts(argument: Any, kinds: Any = GraphValue) -> Iterator[Any]:
    """Yield the values in an argument or a result."""
    if isinstance(argument, tuple):
        for each in argument:
            yield from _parts(each, kinds)
    elif isinstance(argument, kinds):
        yield argument


def _names_in(node: Node) -> set[str]:
    return {value.name for each in (*node.args, *node.outputs) for value in _parts(each)}


def _has_sizes(arguments: Any) -> bool:
    return any(True for _ in _parts(tuple(arguments), (SizeExpression, SizeQuotient)))


def _place(tensor: Any) -> int:
    """Return the address of the memory of a tensor; 0 if it has none."""
    return int(tensor.untyped_storage().data_ptr()) if tensor.numel() else 0


def _named(node: Node, results: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Yield the name of each result of a node that is read, with its ONNX name."""
    for output, label in zip(node.outputs, results, strict=True):
        if isinstance(output, tuple):
            pairs = zip(output, label, strict=True)
            yield from ((v.name, each) for v, each in pairs if v is not None and each is not None)
        elif isinstance(output, GraphValue) and label is not None:
            yield output.name, label


def _is_complex(tensor: pc.Tensor) -> bool:
    return tensor.dtype.name.startswith("complex")


def _is_fill(node: Node) -> bool:
    return node.op in _FILLS


def _as_int64(result: Any) -> Any:
    if isinstance(result, list):
        return [_as_int64(each) for each in result]
    return None if result is None else dataclasses.replace(result, dtype=pc.int64)
