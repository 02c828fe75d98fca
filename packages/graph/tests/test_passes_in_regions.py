"""Passes change the regions of nodes, too."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import plait_core as pc
import plait_nn as nn
from plait_graph import Graph, Loaded, Node, Value, cond, export, load, while_loop
from plait_graph._memory import writes
from plait_graph.interpreter import run_graph
from plait_graph.passes import fold_batch_norm, fold_constants, infer_shapes, remove_dead_nodes

sys.path.insert(0, str(Path(__file__).parent))

from same_bits import assert_same

X, P = Value("x", "float32", (3, 4)), Value("p", "bool", ())


def exported(function: Callable[..., Any], x: Any, folder: Path) -> Loaded:
    export(function, (x,), folder / "file")
    return load(folder / "file")


def operators(graph: Graph) -> list[str]:
    return [node.name for node in graph.nodes]


def test_constants(tmp_path: Path) -> None:
    w, shift = pc.rand(3, 4) + 1, pc.randn(3, 4)

    def function(x: Any) -> Any:
        y = cond(x.sum() > 0, lambda x: x * (w.exp() + w), lambda x: x + shift.exp(), (x,))
        return while_loop(
            lambda y, n: n < 3,
            lambda y, n: (cond(n > 1, lambda y: y * w.log(), lambda y: y - n, (y,)), n + 1),
            (y, pc.tensor(0)),
        )[0]

    run = exported(function, pc.ones(3, 4), tmp_path)
    text, weights = str(run.graph), dict(run.weights)
    folded = fold_constants(run.graph, weights)
    assert str(run.graph) == text
    folded.check()
    branches, loop = (node.regions for node in folded.nodes if node.regions)
    assert [operators(region) for region in branches] == [["mul"], ["add"]]
    assert [operators(region) for region in loop[1].nodes[1].regions] == [["mul"], ["sub"]]
    assert all(
        weights[value.name].data_ptr() not in (w.data_ptr(), shift.data_ptr())
        for value in folded.weights
    )
    assert len(folded.weights) == 4  # w.exp() + w, shift.exp(), w.log(), 0
    for x in (pc.ones(3, 4), -pc.ones(3, 4)):
        assert_same(run_graph(folded, [x], weights)[0], function(x))


def test_batch_norms(tmp_path: Path) -> None:
    pc.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)).eval()
    model[1].running_mean.normal_()

    def function(x: Any) -> Any:
        return cond(x.sum() > 0, model, lambda x: model(x).relu(), (x,))

    x = pc.randn(1, 2, 5, 5)
    run = exported(function, x, tmp_path)
    weights = dict(run.weights)
    folded = fold_batch_norm(fold_constants(run.graph, weights), weights)
    folded.check()
    ops = [operators(region) for region in folded.nodes[-1].regions]
    assert ops == [["conv2d"], ["conv2d", "relu"]]
    for sign in (1, -1):
        (result,) = run_graph(folded, [sign * x], weights)
        assert pc.allclose(result, function(sign * x), atol=1e-5)


def test_shapes_and_a_picture() -> None:
    a = Value("a", "float32", (3, 4))
    inner = Graph([a])
    inner.outputs = [inner.call("sum", inner.call("neg", a), (1,))]
    node = Node("cond", [P, (X,)], [(Value("1"),)], regions=[inner, inner.copy()])
    graph = Graph([X, P], nodes=[node])
    graph.outputs = [graph.call("neg", Value("1"))]
    known = infer_shapes(graph)
    assert [str(value) for value in known.outputs] == ["%2 float32[3]"]
    assert str(known).splitlines()[2:7] == [
        "[%1 float32[3]] = cond(%p, [%x])",
        "  if true",
        "    inputs   %a float32[3, 4]",
        "    %1 float32[3, 4] = neg(%a)",
        "    %2 float32[3] = sum(%1, [1], False, None)",
    ]
    drawing = graph.picture()
    assert all(text in drawing for text in (">if true<", ">else<", ">· sum<"))


def test_a_branch_that_writes_is_a_barrier_and_a_loop_is_none() -> None:
    a = Value("a", "float32", (3, 4))
    inner = Graph([a])
    inner.call("add", a, 1.0, form="inplace")
    inner.outputs = [inner.call("lt", inner.call("sum", a), 0.0)]
    branch = Node("cond", [P, (X,)], [(Value("1"),)], regions=[inner, inner.copy()])
    assert writes(branch) == [X]
    body = inner.copy()
    body.outputs = [a]
    for args in ([(X,), ()], [(), (X,)]):
        loop = Node("while_loop", args, [(Value("1"),)], regions=[inner.copy(), body])
        assert writes(loop) == ([] if args[0] else [X])


def test_operands_that_no_region_reads() -> None:
    a, b, w = (Value(name, "float32", (3, 4)) for name in "abw")
    inner = Graph([a, b])
    inner.call("exp", a)
    inner.outputs = [inner.call("neg", b)]
    node = Node("cond", [P, (w, X)], [(Value("1"),)], regions=[inner, inner.copy()])
    graph = remove_dead_nodes(Graph([X, P], [w], nodes=[node], outputs=[Value("1")]))
    graph.check()
    assert not graph.weights
    assert [value.name for value in graph.nodes[0].operands()] == ["x"]
