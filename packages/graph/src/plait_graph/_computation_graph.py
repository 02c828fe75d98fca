"""The graph: operator calls as data, in the order in which they run."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import plait_abi
from plait_graph._argument_kinds import fits, kind_text, to_argument
from plait_graph._graph_sizes import check_sizes, graph_at_sizes, read_sizes, sizes_json
from plait_graph._layered_drawing import Box, draw
from plait_graph._schemas import Definition, definition_of, has_inplace_form, has_out_form
from plait_graph._values import (
    Argument,
    Number,
    SizeRange,
    Value,
    argument_text,
    decode,
    encode,
    values_in,
)

__all__ = ["FORMS", "Graph", "Node", "Result"]

FORMS = ("function", "inplace", "out")
_VERSION = 1
_DEEPEST = 14  # regions within regions; each is four levels of JSON, and programs read 64

Result: TypeAlias = Value | tuple[Value | None, ...] | None


@dataclasses.dataclass(eq=False)
class Node:
    """One call of an operator.

    Args:
        op: the operator with its overload, such as ``max.dim``.
        args: an argument for each of the schema.
        outputs: a result for each of the schema: None for one that nobody reads, a tuple for
            ``Tensor[]``. A result that is also an argument is that tensor itself.
        form: ``function``; ``inplace``, which writes to its first argument; or ``out``, which
            writes to `outputs`.
        regions: the graphs of ``cond`` and ``while_loop``.

    Example:
        >>> from plait_graph import Node, Value
        >>> print(Node("relu", [Value("x", "float32", (2,))], [Value("1")]))
        %1 = relu(%x)
    """

    op: str
    args: list[Argument]
    outputs: list[Result]
    form: str = "function"
    regions: list[Graph] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        results = ", ".join(map(_result_text, self.outputs))
        args = ", ".join(map(argument_text, self.args))
        call = f"{self.name}({args}{', out' if self.form == 'out' else ''})"
        return f"{results} = {call}" if results else call

    @property
    def name(self) -> str:
        """The name that the call has in programs: ``add_`` in the form ``inplace``.

        Example:
            >>> from plait_graph import Node, Value
            >>> Node("scatter.value", [], [Value("x")], "inplace").name
            'scatter_.value'
        """
        base, dot, overload = self.op.partition(".")
        return f"{base}_{dot}{overload}" if self.form == "inplace" else self.op

    @property
    def definition(self) -> Definition:
        """The operator's schema and properties.

        Example:
            >>> from plait_graph import Node, Value
            >>> [a.name for a in Node("add", [], []).definition.schema.arguments]
            ['self', 'other', 'alpha']
        """
        return definition_of(self.op)

    def reads(self) -> Iterator[Value]:
        """Yield the values among the arguments, also those that the node writes to.

        Example:
            >>> from plait_graph import Node, Value
            >>> node = Node("neg", [Value("x")], [Value("y")])
            >>> [value.name for value in node.reads()]
            ['x']
        """
        for argument in self.args:
            yield from values_in(argument)

    def operands(self) -> list[Value]:
        """Return the values that are the inputs of the node's regions.

        Example:
            >>> from plait_graph import Node, Value
            >>> node = Node("cond", [Value("p"), (Value("x"),)], [(Value("y"),)])
            >>> [value.name for value in node.operands()]
            ['x']
        """
        return [value for each in self.args if isinstance(each, tuple) for value in values_in(each)]

    def defines(self) -> Iterator[Value]:
        """Yield the values that the node makes: results that existed before are none of them.

        Example:
            >>> from plait_graph import Node, Value
            >>> x = Value("x")
            >>> [value.name for value in Node("neg", [x], [Value("y")]).defines()]
            ['y']
            >>> list(Node("neg", [x], [x], "inplace").defines())
            []
        """
        if self.form == "function":
            before = set(self.reads())
            yield from (value for value in values_in(self.outputs) if value not in before)

    def replace(self, values: Mapping[Value, Value]) -> None:
        """Put other values in the place of those that the node reads or writes to.

        Args:
            values: For each value the one that takes its place.

        Example:
            >>> from plait_graph import Node, Value
            >>> x, y = Value("x"), Value("y")
            >>> node = Node("add", [x, 1.0, 1], [Value("1")])
            >>> node.replace({x: y})
            >>> print(node)
            %1 = add(%y, 1.0, 1)
        """
        made = set(self.defines())
        self.args = [_replaced(argument, values) for argument in self.args]
        self.outputs = [_replaced(output, values, made) for output in self.outputs]


class Graph:
    """A function as data: what it gets, the operator calls that it makes, what it returns.

    Args:
        inputs: the arguments of the function.
        weights: the other tensors that it reads or writes.
        numbers: the numbers that differ from run to run.
        nodes: operator calls in the order in which they run.
        outputs: the results of the function.
        sizes: the sizes that are free, by name: dimensions of inputs.
        guards: relations that the sizes must have, such as ``n % 2 == 0``.
        shapes: shapes of values that depend on the sizes, as the recordings had them; a program
            compares them with its own.

    Example:
        >>> from plait_graph import Graph, Value
        >>> x, w = Value("x", "float32", (8, 3)), Value("w", "float32", (4, 3))
        >>> graph = Graph([x], [w])
        >>> graph.outputs = [graph.call("relu", graph.call("linear", x, w))]
        >>> print(graph)
        inputs   %x float32[8, 3]
        weights  %w float32[4, 3]
        %1 = linear(%x, %w, None)
        %2 = relu(%1)
        outputs  %2
    """

    def __init__(
        self,
        inputs: Sequence[Value] = (),
        weights: Sequence[Value] = (),
        numbers: Sequence[Number] = (),
        nodes: Sequence[Node] = (),
        outputs: Sequence[Value] = (),
        *,
        sizes: Mapping[str, SizeRange] | None = None,
        guards: Sequence[str] = (),
        shapes: Mapping[str, Sequence[int | str]] | None = None,
    ) -> None:
        self.inputs, self.weights, self.numbers = list(inputs), list(weights), list(numbers)
        self.nodes, self.outputs = list(nodes), list(outputs)
        self.sizes, self.guards = dict(sizes or {}), list(guards)
        self.shapes = {name: tuple(shape) for name, shape in (shapes or {}).items()}
        self._last_name = 0

    # ---- reading ---------------------------------------------------------------------------------

    def values(self) -> Iterator[Value]:
        """Yield inputs, weights and the values that nodes make, without those of regions.

        Example:
            >>> from plait_graph import Graph, Value
            >>> graph = Graph([Value("x", "float32", (2,))])
            >>> y = graph.call("neg", graph.inputs[0])
            >>> [value.name for value in graph.values()]
            ['x', '1']
        """
        yield from self.inputs
        yield from self.weights
        for node in self.nodes:
            yield from node.defines()

    def value(self, name: str) -> Value:
        """Return the value of a name.

        Raises: ArgumentError if there is none.

        Args:
            name: The name of the value.

        Example:
            >>> from plait_graph import Graph, Value
            >>> print(Graph([Value("x", "float32", (2,))]).value("x"))
            %x float32[2]
        """
        for value in self.values():
            if value.name == name:
                return value
        raise plait_abi.ArgumentError(f"Graph.value: there is no value {name!r}")

    def users(self, value: Value) -> list[Node]:
        """Return the nodes that read a value or write to it.

        Args:
            value: A value or its name.

        Example:
            >>> from plait_graph import Graph, Value
            >>> graph = Graph([Value("x", "float32", (2,))])
            >>> y = graph.call("neg", graph.inputs[0])
            >>> [node.op for node in graph.users(graph.inputs[0])]
            ['neg']
        """
        return self.uses().get(value, [])

    def uses(self) -> dict[Value, list[Node]]:
        """Return the users of each value that has any.

        Example:
            >>> from plait_graph import Graph, Value
            >>> graph = Graph([Value("x", "float32", (2,))])
            >>> y = graph.call("neg", graph.inputs[0])
            >>> {value.name: len(nodes) for value, nodes in graph.uses().items()}
            {'x': 1}
        """
        results: dict[Value, list[Node]] = {}
        for node in self.nodes:
            touched = [*node.reads(), *values_in(node.outputs)]
            for value in dict.fromkeys(touched) if node.form == "out" else node.reads():
                users = results.setdefault(value, [])
                if not users or users[-1] is not node:
                    users.append(node)
        return results

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        for at, (name, size) in enumerate(self.sizes.items()):
            yield f"{'' if at else 'sizes':<8} {name} from {size.min} to {size.max}"
        for at, guard in enumerate(self.guards):
            yield f"{'' if at else 'guards':<8} {guard}"
        for title, entries in (
            ("inputs", self.inputs),
            ("weights", self.weights),
            ("numbers", self.numbers),
        ):
            for at, entry in enumerate(entries):
                yield f"{'' if at else title:<8} {entry}"
        for node in self.nodes:
            yield str(node)
            for title, region in zip(_region_titles(node), node.regions, strict=False):
                yield f"  {title}"
                yield from (f"    {line}" for line in region._lines())
        yield f"outputs  {', '.join(f'%{value.name}' for value in self.outputs)}".rstrip()

    def __repr__(self) -> str:
        return (
            f"<Graph: {len(self.inputs)} inputs, {len(self.weights)} weights, "
            f"{len(self.nodes)} nodes, {len(self.outputs)} outputs>"
        )

    # ---- rewriting -------------------------------------------------------------------------------

    def copy(self) -> Graph:
        """Return a graph with nodes of its own; the values are the same.

        Example:
            >>> from plait_graph import Graph, Value
            >>> graph = Graph([Value("x", "float32", (2,))])
            >>> other = graph.copy()
            >>> y = other.call("neg", graph.inputs[0])
            >>> len(graph.nodes), len(other.nodes)
            (0, 1)
        """
        nodes = [
            Node(
                node.op,
                list(node.args),
                list(node.outputs),
                node.form,
                [region.copy() for region in node.regions],
            )
            for node in self.nodes
        ]
        return Graph(
            self.inputs,
            self.weights,
            self.numbers,
            nodes,
            self.outputs,
            sizes=self.sizes,
            guards=self.guards,
            shapes=self.shapes,
        )

    def at_sizes(self, sizes: Mapping[str, int]) -> Graph:
        """Return the graph with numbers in the place of its free sizes.

        Raises: ArgumentError for sizes that it is not for.

        Args:
            sizes: A number for each free size.

        Example:
            >>> from plait_graph import Graph, SizeRange, Value
            >>> x = Value("x", "float32", ("n", 4))
            >>> graph = Graph([x], outputs=[x], sizes={"n": SizeRange(1, 64, 8)})
            >>> print(graph.at_sizes({"n": 3}))
            inputs   %x float32[3, 4]
            outputs  %x
        """
        result: Graph = graph_at_sizes(self, sizes)
        return result

    def call(
        self,
        op: str,
        *args: Any,
        before: Node | None = None,
        form: str = "function",
        out: Value | tuple[Value, ...] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Add a node and return its results, as a call of the operator does.

        Lists of results have one entry; a pass that needs more makes a `Node` itself.

        Args:
            op: the operator with its overload.
            args: its arguments; those that are missing have their defaults.
            before: the node to insert it before; None: at the end.
            form: ``function`` or ``inplace``.
            out: the values to write to, in the form ``out``.
            kwargs: its arguments by name.

        Raises: ArgumentError if there is no such operator; TypeError if the arguments do not fit.

        Example:
            >>> from plait_graph import Graph, Value
            >>> x = Value("x", "float32", (8, 3))
            >>> graph = Graph([x])
            >>> values, indices = graph.call("max.dim", x, 1)
            >>> graph.call("add", values, 1.0, form="inplace") == values
            True
            >>> print(graph)
            inputs   %x float32[8, 3]
            %1, %2 = max.dim(%x, 1, False)
            %1 = add_(%1, 1.0, 1)
            outputs
        """
        definition = definition_of(op)
        bound = definition.schema.bind(args, kwargs)
        arguments = [
            to_argument(bound[parameter.name], parameter)
            for parameter in definition.schema.arguments
        ]
        results: list[Result]
        if out is not None:
            form, results = "out", list(out) if isinstance(out, tuple) else [out]
        elif form == "inplace":
            results = [next(values_in(arguments[0]), None)]
        else:
            results = [
                _written(parameter.alias, arguments, definition)
                if parameter.writes
                else (self.new_value(),)
                if parameter.type == "Tensor[]"
                else self.new_value()
                for parameter in definition.schema.results
            ]
        self.insert(Node(op, arguments, results, form), before)
        return results[0] if len(results) == 1 else tuple(results)

    def insert(self, node: Node, before: Node | None = None) -> None:
        """Insert a node before another one, or at the end.

        Raises: ArgumentError if `before` is no node of the graph.

        Args:
            node: The new node.

        Example:
            >>> from plait_graph import Graph, Node, Value
            >>> graph = Graph([Value("x", "float32", (2,))])
            >>> graph.insert(Node("neg", [graph.inputs[0]], [graph.new_value()]))
            >>> len(graph.nodes)
            1
        """
        self.nodes.insert(len(self.nodes) if before is None else self._at(before), node)

    def new_value(self) -> Value:
        """Return a value with a name that the graph does not have.

        Example:
            >>> from plait_graph import Graph, Value
            >>> print(Graph([Value("1", "float32", (2,))]).new_value())
            %2
        """
        if not self._last_name:
            names = [value.name for value in self.values()] + [n.name for n in self.numbers]
            numbers = [int(name) for name in names if name.isascii() and name.isdecimal()]
            self._last_name = max(numbers, default=0)
        self._last_name += 1
        return Value(str(self._last_name))

    def replace(self, old: Value, new: Value) -> None:
        """Put a value in the place of another one in all nodes and the outputs.

        The node that makes `old` stays, so that nobody reads its result.

        Args:
            new: The node that takes its place.

        Example:
            >>> from plait_graph import Graph, Value
            >>> graph = Graph([Value("x", "float32", (2,))])
            >>> graph.outputs = [graph.call("positive", graph.inputs[0])]
            >>> graph.replace(graph.outputs[0], graph.inputs[0])
            >>> graph.outputs[0].name
            'x'
        """
        self.replace_all({old: new})

    def replace_all(self, values: Mapping[Value, Value]) -> None:
        """Do what `replace` does for several values at once.

        Args:
            values: For each value the one that takes its place.

        Example:
            >>> from plait_graph import Graph, Value
            >>> x, y = Value("x", "float32", (2,)), Value("y", "float32", (2,))
            >>> graph = Graph([x, y], outputs=[x, y])
            >>> graph.replace_all({x: y, y: x})
            >>> [value.name for value in graph.outputs]
            ['y', 'x']
        """
        for node in self.nodes:
            node.replace(values)
        self.outputs = [values.get(value, value) for value in self.outputs]

    def remove(self, node: Node) -> None:
        """Remove a node whose results nobody reads.

        Raises: ArgumentError if one is read, or if the node is not in the graph.

        Args:
            node: The node.

        Example:
            >>> from plait_graph import Graph, Value
            >>> graph = Graph([Value("x", "float32", (2,))])
            >>> y = graph.call("neg", graph.inputs[0])
            >>> graph.remove(graph.nodes[0])
            >>> graph.nodes
            []
        """
        at, made = self._at(node), set(node.defines())
        for other in self.nodes:
            if other is not node and not made.isdisjoint(
                [*other.reads(), *values_in(other.outputs)]
            ):
                raise plait_abi.ArgumentError(f"Graph.remove: `{other}` reads what `{node}` makes")
        if not made.isdisjoint(self.outputs):
            raise plait_abi.ArgumentError(f"Graph.remove: the graph returns what `{node}` makes")
        del self.nodes[at]

    def _at(self, node: Node) -> int:
        for at, other in enumerate(self.nodes):
            if other is node:
                return at
        raise plait_abi.ArgumentError(f"Graph: `{node}` is not a node of this graph")

    # ---- checking --------------------------------------------------------------------------------

    def check(self) -> None:
        """Check names, order, operators, and the number and kinds of arguments.

        Shapes and dtypes are checked when the graph runs, by the operators.

        Raises: ArgumentError, which names the node, the operator and the argument.

        Example:
            >>> from plait_graph import Graph, Node, Value
            >>> x = Value("x", "float32", (2,))
            >>> Graph([x], nodes=[Node("relu", [1.0], [Value("1")])]).check()
            Traceback (most recent call last):
            ...
            plait_abi.ArgumentError: graph, node 0, relu: `self` must be a tensor, got 1.0
        """
        _Check("graph").graph(self, 0)
        check_sizes(self)

    # ---- JSON ------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return the graph in JSON, as docs/design/0051 defines it.

        Example:
            >>> from plait_graph import Graph, Value
            >>> graph = Graph([Value("x", "float32", (2,), device="cpu")])
            >>> graph.outputs = [graph.call("add", graph.inputs[0], 1.0)]
            >>> print(graph.to_json())
            {"plait_graph": 1,
             "inputs": [{"name": "x", "dtype": "float32", "shape": [2], "device": "cpu"}],
             "weights": [],
             "numbers": [],
             "nodes": [{"op": "add", "in": ["%x", 1.0, 1], "out": ["%1"]}],
             "outputs": ["%1"]}
        """
        parts = [f'{{"plait_graph": {_VERSION}']
        parts += [f' "{key}": {json.dumps(form)}' for key, form in sizes_json(self).items()]
        for name, entries in self._json().items():
            gap = ", " if name == "outputs" else ",\n     " + " " * len(name)
            parts.append(f' "{name}": [{gap.join(json.dumps(entry) for entry in entries)}]')
        return ",\n".join(parts) + "}"

    def _json(self) -> dict[str, list[Any]]:
        return {
            "inputs": [_tensor_json(value) for value in self.inputs],
            "weights": [_tensor_json(value) for value in self.weights],
            "numbers": [
                {"name": n.name, "value": encode(n.value), "step": encode(n.step)}
                for n in self.numbers
            ],
            "nodes": [_node_json(node) for node in self.nodes],
            "outputs": [encode(value) for value in self.outputs],
        }

    @classmethod
    def from_json(cls, text: str) -> Graph:
        """Return the graph that a text in JSON describes; `check` is called.

        Raises: ArgumentError if it describes none, or one of a later version.

        Args:
            text: What `to_json` returned.

        Example:
            >>> from plait_graph import Graph, Value
            >>> graph = Graph([Value("x", "float32", (2,), device="cpu")])
            >>> Graph.from_json(graph.to_json()).inputs == graph.inputs
            True
        """
        try:
            form = json.loads(
                text, parse_constant=_refuse_constant, object_pairs_hook=_without_repetition
            )
        except RecursionError:
            raise plait_abi.ArgumentError("Graph.from_json: the text is nested too deep") from None
        except plait_abi.ArgumentError as error:
            raise plait_abi.ArgumentError(f"Graph.from_json: {error}") from None
        except (TypeError, ValueError) as error:
            raise plait_abi.ArgumentError(f"Graph.from_json: this is not JSON: {error}") from None
        version = form.get("plait_graph") if isinstance(form, dict) else None
        if type(version) is not int:
            raise plait_abi.ArgumentError(
                "Graph.from_json: an object with `plait_graph`, a version, is required"
            )
        if version != _VERSION:
            raise plait_abi.ArgumentError(
                f"Graph.from_json: the graph has version {version}, this package reads version "
                f"{_VERSION}"
            )
        del form["plait_graph"]
        try:
            sizes = read_sizes(form)
        except plait_abi.ArgumentError as error:
            raise plait_abi.ArgumentError(f"Graph.from_json: {error}") from None
        graph = _Reader("graph").graph(form, 0)
        graph.sizes, graph.guards, graph.shapes = sizes
        graph.check()
        return graph

    # ---- a picture -------------------------------------------------------------------------------

    def picture(self) -> str:
        """Return a drawing of the graph in SVG: a box for each input, node and output, top down.

        Weights are named in the boxes that read them, and so is what comes from far above. The box
        of a node with regions has a line for each node in them.

        Example:
            >>> from plait_graph import Graph, Value
            >>> graph = Graph([Value("x", "float32", (2,))])
            >>> graph.outputs = [graph.call("relu", graph.inputs[0])]
            >>> graph.picture().count("<rect")
            4
        """
        makers = {value: at for at, value in enumerate(self.inputs)}
        boxes = [Box([f"%{x.name}", x.description], {}, "input") for x in self.inputs]
        weights = set(self.weights)
        for node in self.nodes:
            read = dict.fromkeys([*node.reads(), *values_in(node.outputs)])
            lines = [node.name, *(f"%{value.name}" for value in read if value in weights)]
            lines += [str(value) for value in values_in(node.outputs)]
            lines += _region_lines(node)
            sources = {makers[value]: f"%{value.name}" for value in read if value in makers}
            makers.update(dict.fromkeys(values_in(node.outputs), len(boxes)))
            boxes.append(Box(lines, sources))
        for value in self.outputs:
            sources = {makers[value]: f"%{value.name}"} if value in makers else {}
            boxes.append(Box(["output", f"%{value.name}"], sources, "output"))
        return draw(boxes)


# ---- parts of nodes ------------------------------------------------------------------------------


def _region_titles(node: Node) -> tuple[str, str]:
    return ("while", "do") if node.op == "while_loop" else ("if true", "else")


def _region_lines(node: Node, depth: int = 1) -> Iterator[str]:
    """Yield the names of the nodes in regions, for a picture."""
    for title, region in zip(_region_titles(node), node.regions, strict=False):
        yield f"{'· ' * (depth - 1)}{title}"
        for each in region.nodes:
            yield f"{'· ' * depth}{each.name}"
            yield from _region_lines(each, depth + 1)


def _written(alias: str | None, args: list[Argument], definition: Definition) -> Result:
    """Return the argument that a result with the mark ``!`` is."""
    for parameter, argument in zip(definition.schema.arguments, args, strict=True):
        if parameter.alias == alias:
            return next(values_in(argument), None)
    return None


def _result_text(result: Result) -> str:
    if isinstance(result, tuple):
        return f"[{', '.join(map(_result_text, result))}]"
    return "_" if result is None else str(result)


def _replaced(
    argument: Any, values: Mapping[Value, Value], kept: Collection[Value] = frozenset()
) -> Any:
    """Return an argument or a result with other values, except for those in `kept`."""
    if isinstance(argument, tuple):
        return tuple(_replaced(each, values, kept) for each in argument)
    if not isinstance(argument, Value) or argument in kept:
        return argument
    return values.get(argument, argument)


# ---- checks --------------------------------------------------------------------------------------


class _Check:
    """Checks a graph; `where` is what errors begin with."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.defined: dict[str, Value | Number] = {}

    def fail(self, text: str) -> plait_abi.ArgumentError:
        return plait_abi.ArgumentError(f"{self.where}: {text}")

    def define(self, entry: Value | Number) -> None:
        if entry.name in self.defined:
            raise self.fail(f"%{entry.name} is defined twice")
        self.defined[entry.name] = entry

    def require(self, entry: Value | Number) -> None:
        known = self.defined.get(entry.name)
        if known is None:
            raise self.fail(f"%{entry.name} is not defined before it is used")
        if known != entry:
            raise self.fail(f"%{entry.name} is `{entry}` here and `{known}` where it is defined")

    def graph(self, graph: Graph, depth: int) -> None:
        if depth > _DEEPEST:
            raise self.fail(f"regions are nested deeper than {_DEEPEST}")
        for value in [*graph.inputs, *graph.weights]:
            if value.dtype is None or value.shape is None:
                raise self.fail(f"%{value.name} needs a dtype and a shape")
            self.define(value)
        for number in graph.numbers:
            self.define(number)
        where = self.where
        for at, node in enumerate(graph.nodes):
            self.where = f"{where}, node {at}, {node.op}"
            self.node(node, depth)
        self.where = where
        for value in graph.outputs:
            self.require(value)

    def node(self, node: Node, depth: int) -> None:
        try:
            definition = node.definition
        except plait_abi.ArgumentError as error:
            raise self.fail(str(error).removeprefix("graph: ")) from None
        parameters = definition.schema.arguments
        if len(node.args) != len(parameters):
            raise self.fail(
                f"{len(parameters)} arguments are required ({definition.schema.text}), got "
                f"{len(node.args)}"
            )
        for parameter, argument in zip(parameters, node.args, strict=True):
            if not fits(argument, parameter):
                raise self.fail(
                    f"`{parameter.name}` must be {kind_text(parameter)}, got "
                    f"{argument_text(argument)}"
                )
            for entry in _names_in(argument):
                self.require(entry)
        self.results(node, definition)
        if len(node.regions) != definition.regions:
            raise self.fail(f"{definition.regions} regions are required, got {len(node.regions)}")
        for at, region in enumerate(node.regions):
            inner = _Check(f"{self.where}, region {at}")
            inner.region(region, node, at)
            inner.graph(region, depth + 1)

    def region(self, region: Graph, node: Node, at: int) -> None:
        if region.weights or region.numbers:
            raise self.fail("a region has inputs, nodes and outputs only")
        operands = len(node.operands())
        if len(region.inputs) != operands:
            raise self.fail(f"{operands} inputs are required, got {len(region.inputs)}")
        result = node.outputs[0]
        results = len(result if isinstance(result, tuple) else node.regions[-1].outputs)
        if node.op == "while_loop" and results != len(list(values_in(node.args[0]))):
            raise self.fail(f"there are as many carried values as results, {results}")
        required = 1 if node.op == "while_loop" and at == 0 else results
        if len(region.outputs) != required:
            raise self.fail(f"{required} outputs are required, got {len(region.outputs)}")

    def results(self, node: Node, definition: Definition) -> None:
        results = definition.schema.results
        if node.form not in FORMS:
            raise self.fail(f"`form` must be one of {', '.join(FORMS)}, got {node.form!r}")
        if len(node.outputs) != len(results):
            raise self.fail(f"{len(results)} results are required, got {len(node.outputs)}")
        if node.form == "inplace":
            if not has_inplace_form(node.op):
                raise self.fail("the operator has no form `inplace`")
            if list(node.outputs) != [node.args[0]]:
                raise self.fail("the result of the form `inplace` must be the first argument")
        if node.form == "out" and not has_out_form(definition.schema):
            raise self.fail("the operator has no form `out`")
        for at, (result, output) in enumerate(zip(results, node.outputs, strict=True)):
            if output is None and node.form != "out":
                continue
            if isinstance(output, tuple) != (result.type == "Tensor[]") or output is None:
                kind = "a list of values" if result.type == "Tensor[]" else "a value"
                raise self.fail(f"result {at} must be {kind}")
            if node.form == "out":
                for value in values_in(output):
                    self.require(value)
        for value in node.defines():
            self.define(value)


def _names_in(argument: Argument) -> Iterator[Value | Number]:
    if isinstance(argument, (Value, Number)):
        yield argument
    elif isinstance(argument, tuple):
        for each in argument:
            yield from _names_in(each)


# ---- JSON ----------------------------------------------------------------------------------------


def _tensor_json(value: Value) -> dict[str, Any]:
    if value.dtype is None or value.shape is None:
        raise plait_abi.ArgumentError(f"Graph.to_json: %{value.name} needs a dtype and a shape")
    result: dict[str, Any] = {"name": value.name, "dtype": value.dtype.name}
    result["shape"] = list(value.shape)
    if value.strides is not None:
        result["strides"] = list(value.strides)
    if value.device is not None:
        result["device"] = str(value.device)
    return result


def _node_json(node: Node) -> dict[str, Any]:
    result: dict[str, Any] = {"op": node.op}
    if node.form != "function":
        result["form"] = node.form
    result["in"] = [encode(argument) for argument in node.args]
    result["out"] = [encode(output) for output in node.outputs]
    if node.regions:
        result["regions"] = [region._json() for region in node.regions]
    return result


def _refuse_constant(name: str) -> Any:
    raise plait_abi.ArgumentError(f'{name} is not JSON; it is written {{"float": ...}}')


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        again = next(key for key in keys if keys.count(key) > 1)
        raise plait_abi.ArgumentError(f"the key {again!r} stands twice in an object")
    return result


class _Reader:
    """Reads the parts of a graph's JSON; `where` is what errors begin with."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.names: dict[str, Value | Number] = {}

    def fail(self, text: object) -> plait_abi.ArgumentError:
        return plait_abi.ArgumentError(f"Graph.from_json: {self.where}: {text}")

    def fields(self, form: Any, required: Iterable[str], optional: Iterable[str] = ()) -> Any:
        """Return an object that has all keys in `required`, and no others but `optional`."""
        if not isinstance(form, dict):
            raise self.fail("an object is required")
        for key in required:
            if key not in form:
                raise self.fail(f"`{key}` is missing")
        for key in form:
            if key not in required and key not in optional:
                raise self.fail(f"there is no key {key!r}")
        return form

    def entries(self, form: Any, key: str) -> list[Any]:
        entries = form.get(key, [])
        if not isinstance(entries, list):
            raise self.fail(f"`{key}` must be a list")
        return entries

    def graph(self, form: Any, depth: int) -> Graph:
        if depth > _DEEPEST:
            raise self.fail(f"regions are nested deeper than {_DEEPEST}")
        parts = ("inputs", "weights", "numbers", "nodes", "outputs")
        self.fields(form, ("inputs", "nodes", "outputs"), parts)
        where = self.where
        inputs, weights = (
            [self.tensor(entry, f"{where}, {key} {at}") for at, entry in enumerate(entries)]
            for key, entries in ((k, self.entries(form, k)) for k in ("inputs", "weights"))
        )
        numbers = [
            self.number(entry, f"{where}, numbers {at}")
            for at, entry in enumerate(self.entries(form, "numbers"))
        ]
        nodes = []
        for at, entry in enumerate(self.entries(form, "nodes")):
            self.where = f"{where}, node {at}"
            nodes.append(self.node(entry, depth))
        self.where = f"{where}, outputs"
        outputs = [self.value(entry) for entry in self.entries(form, "outputs")]
        return Graph(inputs, weights, numbers, nodes, outputs)

    def define(self, entry: Value | Number) -> None:
        if entry.name in self.names:
            raise self.fail(f"%{entry.name} is defined twice")
        self.names[entry.name] = entry

    def tensor(self, form: Any, where: str) -> Value:
        self.where = where
        self.fields(form, ("name", "dtype", "shape"), ("strides", "device"))
        if not isinstance(form["dtype"], str) or not isinstance(form.get("device", "cpu"), str):
            raise self.fail("`dtype` and `device` must be strings")
        try:
            value = Value(
                form["name"],
                form["dtype"],  # type: ignore[arg-type]
                form["shape"],
                form.get("strides"),
                form.get("device", "cpu"),
            )
        except (TypeError, ValueError, RuntimeError) as error:
            raise self.fail(error) from None
        self.define(value)
        return value

    def number(self, form: Any, where: str) -> Number:
        self.where = where
        self.fields(form, ("name", "value"), ("step",))
        try:
            value, step = (decode(form.get(key, 0), {}) for key in ("value", "step"))
            number = Number(form["name"], value, step)  # type: ignore[arg-type]
        except ValueError as error:
            raise self.fail(error) from None
        self.define(number)
        return number

    def value(self, form: Any) -> Value:
        value = self.argument(form)
        if not isinstance(value, Value):
            raise self.fail(f"the name of a tensor is required, got {form!r}")
        return value

    def argument(self, form: Any) -> Argument:
        try:
            return decode(form, self.names)
        except (TypeError, ValueError, RuntimeError) as error:
            raise self.fail(error) from None

    def node(self, form: Any, depth: int) -> Node:
        self.fields(form, ("op", "in", "out"), ("form", "regions"))
        op = form["op"]
        if not isinstance(op, str):
            raise self.fail("`op` must be the name of an operator")
        self.where = where = f"{self.where}, {op}"
        node = Node(op, [self.argument(entry) for entry in self.entries(form, "in")], [])
        node.form = form.get("form", "function")
        if node.form not in FORMS:
            raise self.fail(f"`form` must be one of {', '.join(FORMS)}, got {node.form!r}")
        before = {value.name for value in node.reads()}
        node.outputs = [
            self.result(entry, node.form == "function", before)
            for entry in self.entries(form, "out")
        ]
        for at, region in enumerate(self.entries(form, "regions")):
            node.regions.append(_Reader(f"{where}, region {at}").graph(region, depth + 1))
        return node

    def result(self, form: Any, defines: bool, before: set[str]) -> Result:
        if form is None:
            return None
        if isinstance(form, list):
            results = [self.result(each, defines, before) for each in form]
            if any(isinstance(each, tuple) for each in results):
                raise self.fail("a list of results must hold names and null")
            return tuple(results)  # type: ignore[arg-type]
        if not isinstance(form, str) or len(form) < 2 or form[0] != "%":
            raise self.fail(f"a result must be null, '%name' or a list of names, got {form!r}")
        if defines and form[1:] not in before:
            self.define(Value(form[1:]))
        return self.value(form)
