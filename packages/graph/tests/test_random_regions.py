"""Random programs with branches and loops: the bits, draws and gradients of the function itself."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest

import plait_core as pc
from plait_graph import Graph, _graph, compile, cond, export, load, while_loop
from plait_graph.interpreter import run_graph
from plait_graph.passes import (
    fold_constants,
    infer_shapes,
    merge_equal_nodes,
    remove_dead_nodes,
)

sys.path.insert(0, str(Path(__file__).parent))

from same_bits import assert_same

EXPRESSIONS = (
    "{x} + {y}", "{x}.T * 0.5", "({x} @ {y}).tanh()", "{x}.flip(0) - {y}", "-{x}.relu()",
    "pc.where({x} > {y}, {x}, {y} * 2)", "{x}.sum(0, keepdim=True).expand(3, 3).sin()",
    "({x} * {y}).clamp(-2, 2)", "{x}[pc.tensor([2, 0, 1])]", "{x}", "{x}.T", "pc.eye(3) * {x}",
    "pc.cat([{x}[:1], {y}[1:]])", "{x}.softmax(1) + pc.full((3, 3), 0.25)", "{x}.exp().log1p()",
)  # fmt: skip
DRAWS = ("pc.rand(3, 3) + {x}", "pc.dropout({x}, 0.5, True)", "{x} + pc.tensor([1.0, 2.0, 3.0])")


class Writer:
    """Writes a function of matrices, with functions for branches and loops in it."""

    def __init__(self, seed: int, *, gradients: bool) -> None:
        self.draw, self.gradients = random.Random(seed), gradients
        self.lines: list[str] = []
        self.count = 0
        names = self.block(["a", "b", "c"], ["c"], 1, 0)
        results = ", ".join(self.draw.sample(names, 2))
        self.lines = ["def function(a, b):", *self.lines, f"    return {results}"]

    def new(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def add(self, indent: int, line: str) -> None:
        self.lines.append("    " * indent + line)

    def block(self, names: list[str], leaves: list[str], indent: int, depth: int) -> list[str]:
        """Write lines; return the names behind them. `leaves` may be read by functions within."""
        names = list(names)
        for _ in range(self.draw.randint(1, 3 if depth else 4)):
            kind = self.draw.random()
            if depth < 2 and kind < 0.3:
                names.append(self.branch(names, leaves, indent, depth))
            elif depth < 2 and kind < 0.5 and not self.gradients:
                names.append(self.loop(names, leaves, indent, depth))
            elif kind < 0.6 and not self.gradients:
                name = self.new("v")
                self.add(indent, f"{name} = {self.draw.choice(names)}.clone()")
                self.add(indent, f"{name}[1:].mul_({self.draw.choice(names)}[0])")
                names.append(name)
            else:
                name = self.new("v")
                self.add(indent, f"{name} = {self.expression(names)}")
                names.append(name)
        return names

    def expression(self, names: list[str]) -> str:
        choices = EXPRESSIONS if self.gradients else EXPRESSIONS + DRAWS
        return self.draw.choice(choices).format(
            x=self.draw.choice(names), y=self.draw.choice(names)
        )

    def function(
        self, letter: str, names: list[str], leaves: list[str], indent: int, depth: int, end: str
    ) -> str:
        name, arguments = self.new(letter), ["p", "q"]
        own = [self.new("p"), self.new("q")]
        self.add(indent, f"def {name}({', '.join((['n'] if letter == 'b' else []) + own)}):")
        seen = leaves if self.gradients else names
        names = self.block([*own, *seen], leaves if self.gradients else [*names, *own], indent + 1,
                           depth + 1)  # fmt: skip
        values = [self.draw.choice(names) for _ in arguments]
        self.add(indent + 1, end.format(*values))
        return name

    def branch(self, names: list[str], leaves: list[str], indent: int, depth: int) -> str:
        end = "return {0}, {1}"
        functions = [self.function("f", names, leaves, indent, depth, end) for _ in range(2)]
        x, y, z = (self.draw.choice(names) for _ in range(3))
        self.add(indent, f"{self.new('u')}, {self.new('v')} = cond({z}.sum() > {y}.mean(), "
                 f"{functions[0]}, {functions[1]}, ({x}, {y}))")  # fmt: skip
        return f"v{self.count}"

    def loop(self, names: list[str], leaves: list[str], indent: int, depth: int) -> str:
        end = "return n + 1, {0}.clamp(-9, 9), {1} * 0.5"
        body = self.function("b", names, leaves, indent, depth, end)
        x, y, z = (self.draw.choice(names) for _ in range(3))
        self.add(indent, f"_, {self.new('u')}, {self.new('v')} = while_loop(lambda n, p, q: (n < "
                 f"{self.draw.randint(1, 4)}) & (p.sum() > {z}.sum() - 5), {body}, "
                 f"(({y}.sum() > 0).long(), {x}, {y}))")  # fmt: skip
        return f"v{self.count}"

    def compiled_text(self, constant: Any) -> Any:
        space = {"pc": pc, "cond": cond, "while_loop": while_loop, "c": constant}
        exec("\n".join(self.lines), space)
        return space["function"]


def matrices(seed: int, count: int) -> list[Any]:
    pc.manual_seed(seed)
    return [pc.randn(3, 3) for _ in range(count)]


def check_passes(run: Any, seed: int, inputs: list[Any], expected: list[Any]) -> None:
    """Run graphs that passes changed: one by one, and as a program."""
    weights = dict(run.weights)
    graph = fold_constants(run.graph, weights)
    graph = infer_shapes(remove_dead_nodes(merge_equal_nodes(graph)))
    assert all(value.dtype for value in graph.values())
    graph = Graph.from_json(graph.to_json())
    program = _graph.Program(graph.to_json())
    program.bind([weights[value.name] for value in graph.weights])
    for function in (program.run, lambda inputs: run_graph(graph, inputs, weights)):
        pc.manual_seed(seed)
        assert_same([*function(inputs), pc.rand(1)], expected)
    assert "<svg" in graph.picture()


@pytest.mark.parametrize("seed", range(100))
def test_values(seed: int, tmp_path: Path) -> None:
    writer = Writer(seed, gradients=False)
    (constant,) = matrices(seed, 1)
    function = writer.compiled_text(constant)
    compiled = compile(function, frozen=True)
    exported = None
    for k in range(4):
        inputs = matrices(1000 * seed + k, 2)
        before = [tensor.clone() for tensor in inputs]
        outcomes = []
        for run in (function, compiled, exported):
            if run is None:
                continue
            pc.manual_seed(k)
            outcomes.append([*run(*inputs), pc.rand(1)])
            assert_same(inputs, before)
        for outcome in outcomes[1:]:
            assert_same(outcome, outcomes[0])
        if k == 0 and seed % 4 == 0:
            export(function, tuple(inputs), tmp_path / "file")
            exported = load(tmp_path / "file")
        if exported is not None:
            check_passes(exported, k, inputs, outcomes[0])
    assert len(compiled.graphs()) == 1


@pytest.mark.parametrize("seed", range(30))
def test_gradients(seed: int) -> None:
    writer = Writer(seed, gradients=True)
    constant = matrices(seed, 1)[0].requires_grad_()
    function = writer.compiled_text(constant)
    compiled = compile(function, frozen=True)
    for k in range(4):
        values = matrices(1000 * seed + k, 2)
        results = []
        for run in (function, compiled):
            inputs = [tensor.clone().requires_grad_() for tensor in values]
            constant.grad = None
            outputs = run(*inputs)
            if any(output.requires_grad for output in outputs):
                sum((output * output).sum() for output in outputs).backward()
            grads = [t.grad if t.grad is not None else pc.zeros(3, 3) for t in [*inputs, constant]]
            results.append([*outputs, *grads])
        # a sum of several parts of a gradient is in another order
        for one, other in zip(results[1], results[0], strict=True):
            assert pc.allclose(one, other, rtol=1e-4, atol=1e-5)
