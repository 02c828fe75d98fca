"""Graphs run node by node."""

from __future__ import annotations

import pytest

import plait_core as pc
from plait_abi import ArgumentError
from plait_graph import Graph, Node, Number, Value
from plait_graph.interpreter import run_graph, run_node

X, W = Value("x", "float32", (8, 3)), Value("w", "float32", (4, 3))


def test_control_flow_runs() -> None:
    a, n = Value("a", "float32", ()), Value("n", "float32", ())
    condition = Graph([a, n])
    condition.outputs = [condition.call("lt", a, n)]
    body = Graph([a, n])
    body.outputs = [body.call("mul", a, 2.0)]
    node = Node("while_loop", [(a,), (n,)], [(Value("1"),)], regions=[condition, body])
    graph = Graph([a, n], nodes=[node], outputs=[Value("1")])
    graph = Graph.from_json(graph.to_json())
    assert run_graph(graph, [pc.tensor(1.0), pc.tensor(100.0)])[0].item() == 128.0
    assert "    %1 = mul(%a, 2.0)" in str(graph).splitlines()


def test_numbers_of_a_run() -> None:
    graph = Graph([X], [W], [Number("n", 2.0)])
    graph.call("mul", W, graph.numbers[0], form="inplace")
    weights = {"w": pc.ones(4, 3)}
    assert run_graph(graph, [X], weights) == []
    assert run_graph(graph, [X], weights, {"n": 5.0}) == []
    assert weights["w"].tolist() == [[10.0] * 3] * 4


def test_what_is_missing_for_a_run() -> None:
    graph = Graph([X], [W])
    graph.call("linear", X, W)
    with pytest.raises(ArgumentError, match="run_graph: `inputs` must be 1 tensors, got 0"):
        run_graph(graph, [])
    with pytest.raises(ArgumentError, match="run_graph: `weights` has no 'w'"):
        run_graph(graph, [pc.ones(8, 3)])
    with pytest.raises(ArgumentError, match="run_node: there is no value for %x"):
        run_node(graph.nodes[0], {})
