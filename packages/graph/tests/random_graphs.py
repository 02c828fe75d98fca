"""Random graphs with views, writes, equal nodes, lists and random numbers, for tests of passes."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import plait_core as pc
from plait_graph import Graph, Node, Number, Value
from plait_graph.interpreter import results_of, run_graph, run_node

UNARY = ("exp", "neg", "sin", "relu", "positive")
BINARY = ("add", "mul", "sub", "maximum")
VIEWS: tuple[tuple[str, Any], ...] = (
    ("t", ()),
    ("select", (0, 1)),
    ("narrow", (1, 0, 2)),
    ("reshape", ((-1,),)),
    ("unsqueeze", (0,)),
    ("contiguous", ()),
    ("detach", ()),
)


class Generator:
    """Draws nodes; `tensors` has what each value is when the node has just run."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        x, y = Value("x", "float32", (3, 4)), Value("y", "float32", (3, 4))
        w, b = Value("w", "float32", (3, 4)), Value("b", "float32", (4,))
        self.graph = Graph([x, y], [w, b], [Number("n", 0.5)])
        self.start = {v: pc.randn(v.shape) for v in (x, y, w, b)}
        self.tensors: dict[Any, Any] = {v: t.clone() for v, t in self.start.items()}
        self.tensors[self.graph.numbers[0]] = 0.5

    def value(self, like: Any = None) -> Value:
        """Return a value, one of the same shape and dtype as a tensor if that is given."""
        values = [
            value
            for value, tensor in self.tensors.items()
            if isinstance(value, Value)
            and tensor.dtype == pc.float32
            and (like is None or tensor.shape == like.shape)
        ]
        return self.random.choice(values[-8:] if self.random.random() < 0.7 else values)

    def add(self, op: str, *args: Any, form: str = "function", out: Value | None = None) -> None:
        self.graph.call(op, *args, form=form, out=out)
        node = self.graph.nodes[-1]
        self.tensors.update(results_of(node, run_node(node, self.tensors)))

    def node(self) -> None:
        """Add a node of a kind that is drawn."""
        kinds = (
            [self.unary] * 3 + [self.binary] * 3 + [self.view] * 3 + [self.again] * 5
            + [self.in_place] * 2 + [self.to_out, self.copy, self.create, self.draw, self.parts]
        )  # fmt: skip
        self.random.choice(kinds)()

    def unary(self) -> None:
        self.add(self.random.choice(UNARY), self.value())

    def binary(self) -> None:
        one = self.value()
        other = self.value(self.tensors[one])
        choices = [other, other, 0.5, 2, self.graph.numbers[0]]
        self.add(self.random.choice(BINARY[:-1]), one, self.random.choice(choices))

    def view(self) -> None:
        value = self.value()
        fits = [(op, args) for op, args in VIEWS if op == "reshape" or self._fits(op, value)]
        op, args = self.random.choice(fits)
        self.add(op, value, *args)

    def _fits(self, op: str, value: Value) -> bool:
        shape = self.tensors[value].shape
        ndims = {"t": 2, "select": 2, "narrow": 2}.get(op, 0)
        return len(shape) == ndims and min(shape) >= 2 if ndims else len(shape) < 3

    def again(self) -> None:
        """Repeat a call that makes one new tensor."""
        nodes = [
            node
            for node in self.graph.nodes
            if node.form == "function" and len(list(node.defines())) == 1
        ]
        if nodes:
            node = self.random.choice(nodes)
            new = Node(node.op, list(node.args), [self.graph.new_value()])
            if isinstance(node.outputs[0], tuple):
                new.outputs = [(self.graph.new_value(),)]
            self.graph.insert(new)
            self.tensors.update(results_of(new, run_node(new, self.tensors)))

    def in_place(self) -> None:
        value = self.value()
        if self.random.random() < 0.5:
            self.add("mul", value, 0.5, form="inplace")
        else:
            self.add("add", value, self.value(self.tensors[value]), form="inplace")

    def to_out(self) -> None:
        value = self.value()
        target = self.value(self.tensors[value])
        self.add("neg", value, out=target)

    def copy(self) -> None:
        target = self.value()
        self.add("copy_", target, self.value(self.tensors[target]))

    def create(self) -> None:
        self.add("full", (3, 4), self.random.choice([0.0, 1.0, -0.0]))

    def draw(self) -> None:
        self.add("rand", (3, 4))

    def parts(self) -> None:
        value = self.value()
        if len(self.tensors[value].shape) == 2:
            self.graph.call("chunk", value, 1, 0)
            self.tensors.update(
                results_of(
                    self.graph.nodes[-1], [[self.tensors[value].view_as(self.tensors[value])]]
                )
            )


def random_graph(seed: int, size: int = 25) -> tuple[Graph, dict[Value, Any]]:
    """Return a graph and tensors for its inputs and weights."""
    pc.manual_seed(seed)
    generator = Generator(seed)
    for _ in range(size):
        generator.node()
    graph = generator.graph
    graph.outputs = [generator.value() for _ in range(3)]
    graph.check()
    return graph, generator.start


@dataclasses.dataclass
class Run:
    """What a run leaves: all tensors that a caller holds, and which of them share memory."""

    tensors: list[Any]
    shared: list[int]


def run(graph: Graph, start: dict[Value, Any]) -> Run:
    """Run a graph with copies of the tensors in `start`; weights that it lost are not read."""
    copies = {value: tensor.clone() for value, tensor in start.items()}
    inputs = [copies[value] for value in graph.inputs]
    weights = {value.name: tensor for value, tensor in copies.items() if value not in graph.inputs}
    pc.manual_seed(1)
    outputs = run_graph(graph, inputs, weights)
    follows = pc.rand(2)  # the state of the generator
    tensors = [*outputs, *copies.values(), *weights.values(), follows]
    places = [tensor.untyped_storage().data_ptr() for tensor in tensors]
    return Run(tensors, [places.index(place) for place in places])


def same_bits(one: Any, two: Any) -> bool:
    """Return whether two tensors have the same dtype, shape and bits."""
    return (
        one.dtype == two.dtype
        and one.shape == two.shape
        and one.numpy().tobytes() == two.numpy().tobytes()
    )
