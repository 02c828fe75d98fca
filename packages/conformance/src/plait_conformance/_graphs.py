"""Graphs of the kit, the compiler under test, and what its programs should compute."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import plait_core
import plait_graph
from plait_conformance._tables import CompilerTable, table_in_force

Array: TypeAlias = "npt.NDArray[Any]"
Results: TypeAlias = "tuple[list[Array], dict[str, Array]]"


@dataclasses.dataclass(frozen=True)
class GraphSpec:
    """A graph, and a function of NumPy that does the same.

    Args:
        name: of the graph.
        inputs, weights: shapes by name; all are float32.
        nodes: as a graph's JSON has them.
        outputs: names.
        reference: gives the outputs, and the weights that it changes, for inputs, weights, and the
            number of the run.
        numbers: as the JSON has them.
    """

    name: str
    inputs: dict[str, list[int]]
    weights: dict[str, list[int]]
    nodes: list[dict[str, Any]]
    outputs: list[str]
    reference: Callable[[list[Array], dict[str, Array], int], Results]
    numbers: tuple[dict[str, Any], ...] = ()

    def __str__(self) -> str:
        return self.name

    def to_json(self) -> str:
        """Return the graph's text."""

        def entries(shapes: dict[str, list[int]]) -> list[dict[str, Any]]:
            return [{"name": n, "dtype": "float32", "shape": s} for n, s in shapes.items()]

        return json.dumps(
            {
                "plait_graph": 1,
                "inputs": entries(self.inputs),
                "weights": entries(self.weights),
                "numbers": list(self.numbers),
                "nodes": self.nodes,
                "outputs": self.outputs,
            }
        )


def _node(op: str, given: list[Any], *results: str, form: str = "function") -> dict[str, Any]:
    node = {"op": op, "in": given, "out": list(results)}
    return node if form == "function" else {**node, "form": form}


def _network(x: list[Array], w: dict[str, Array], run: int) -> Results:
    hidden = np.tanh(x[0] @ w["0.weight"].T + w["0.bias"])
    scores = hidden @ w["1.weight"].T
    scores = np.exp(scores - scores.max(1, keepdims=True))
    return [scores / scores.sum(1, keepdims=True), hidden], {}


def _views(x: list[Array], w: dict[str, Array], run: int) -> Results:
    result = x[0].T.copy()
    result[1] *= 2  # a write through a view
    return [result + 1, x[1] - x[0].sum()], {}


def _training(x: list[Array], w: dict[str, Array], run: int) -> Results:
    weight = w["w"]
    return [x[0] * weight + run], {"w": weight - np.float32(0.5) * (weight - x[0])}


GRAPHS = (
    GraphSpec(
        "network",
        {"x": [4, 3]},
        {"0.weight": [5, 3], "0.bias": [5], "1.weight": [2, 5]},
        [
            _node("linear", ["%x", "%0.weight", "%0.bias"], "%0"),
            _node("tanh", ["%0"], "%hidden"),
            _node("linear", ["%hidden", "%1.weight", None], "%2"),
            _node("softmax", ["%2", 1, None], "%y"),
        ],
        ["%y", "%hidden"],
        _network,
    ),
    GraphSpec(
        "views",
        {"x": [3, 2], "y": [2]},
        {},
        [
            _node("transpose", ["%x", 0, 1], "%t"),
            _node("clone", ["%t", {"string": "preserve_format"}], "%c"),
            _node("select", ["%c", 0, 1], "%row"),
            _node("mul", ["%row", 2.0], "%row", form="inplace"),
            _node("add", ["%c", 1.0, 1], "%a"),
            _node("sum", ["%x", None, False, None], "%s"),
            _node("sub", ["%y", "%s", 1], "%b"),
        ],
        ["%a", "%b"],
        _views,
    ),
    GraphSpec(
        "training",
        {"x": [3]},
        {"w": [3]},
        [
            _node("mul", ["%x", "%w"], "%product"),
            _node("add", ["%product", "%step", 1], "%y"),
            _node("sub", ["%w", "%x", 1], "%gradient"),
            _node("mul", ["%gradient", "%lr"], "%change"),
            _node("sub", ["%w", "%change", 1], "%w", form="inplace"),
        ],
        ["%y"],
        _training,
        numbers=(
            {"name": "lr", "value": 0.5, "step": 0.0},
            {"name": "step", "value": 0, "step": 1},
        ),
    ),
)


class Compiler:
    """The compiler in force."""

    def __init__(self) -> None:
        table = table_in_force(CompilerTable, "compiler")
        assert table is not None, "the role `compiler` is not filled"
        self.name = str(table.name.decode())

    def __str__(self) -> str:
        return self.name

    def weights(self, graph: GraphSpec) -> dict[str, Any]:
        """Return new tensors for the weights of a graph."""
        return {
            name: plait_core.tensor(value) for name, value in _values(graph.weights, 99).items()
        }


def _values(shapes: dict[str, list[int]], seed: int) -> dict[str, Array]:
    chance = np.random.default_rng(seed)
    return {
        name: chance.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()
    }


class GraphProgram:
    """A program of the compiler, and its weights as NumPy has them."""

    def __init__(self, compiler: Compiler, graph: GraphSpec) -> None:
        self._compiler, self._graph = compiler, graph
        self.writes = bool(graph.numbers)
        self.reset()

    def reset(self) -> None:
        """Make the program again, with the weights of the begin."""
        tensors = self._compiler.weights(self._graph)
        text = self._graph.to_json()
        self.run = plait_graph.Loaded(text, tensors, "the kit")
        self.weights = _values(self._graph.weights, 99)
        self._runs = 0

    def inputs(self, seed: int) -> list[Array]:
        """Return inputs; equal seeds give equal ones."""
        return list(_values(self._graph.inputs, seed).values())

    def call(self, inputs: list[Array]) -> list[Array]:
        """Run the program."""
        result = self.run(*[plait_core.tensor(each) for each in inputs])
        results = result if isinstance(result, tuple) else (result,)
        return [each.numpy() for each in results]

    def check(
        self, results: list[Array], inputs: list[Array], *, advance: bool = True, shift: float = 0
    ) -> None:
        """Compare results, and then the weights, with those of NumPy.

        Args:
            results, inputs: of a run.
            advance: it was the next run: the weights are now those behind it.
            shift: what was added to all weights.
        """
        weights = {name: value + np.float32(shift) for name, value in self.weights.items()}
        expected, changed = self._graph.reference(inputs, weights, self._runs)
        for name, result, value in zip(self._graph.outputs, results, expected, strict=True):
            np.testing.assert_allclose(result, value, 1e-5, 1e-6, err_msg=f"output {name}")
        if not advance:
            return
        self._runs += 1
        self.weights = {**weights, **changed}
        for name, weight in self.run.weights.items():
            np.testing.assert_allclose(weight.numpy(), self.weights[name], 1e-5, 1e-6, err_msg=name)
