"""Nodes, edges and the picture of a graph."""

from __future__ import annotations

from typing import Any

import pytest

import plait_autograd as pa
import plait_core as pc


def test_next_functions_lead_to_the_leaves() -> None:
    x = pc.ones(2, requires_grad=True)
    y = (x * 2).exp()
    node = y.grad_fn
    assert node.name() == "ExpBackward"
    (mul, index), *_ = node.next_functions
    assert (mul.name(), index) == ("MulBackward", 0)
    ends = [to.name() for to, _ in mul.next_functions if to is not None]
    assert ends == ["AccumulateGrad"]


class Pair(pa.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2, x * 3

    @staticmethod
    def backward(ctx: Any, a: Any, b: Any) -> Any:
        return 2 * a + 3 * b


def test_leaves_and_results_have_gradient_edges() -> None:
    x = pc.ones(3, requires_grad=True)
    first, second = (pa.graph.get_gradient_edge(y) for y in Pair.apply(x))
    assert pa.graph.get_gradient_edge(x).node.name() == "AccumulateGrad"
    assert first.node == second.node
    assert (first.output_nr, second.output_nr) == (0, 1)
    with pytest.raises(RuntimeError, match="must require grad"):
        pa.graph.get_gradient_edge(pc.ones(1))


def test_hooks_of_the_second_output() -> None:
    x = pc.ones(1, requires_grad=True)
    a, b = Pair.apply(x)
    b.register_hook(lambda g: g * 10)
    a.grad_fn.register_prehook(lambda gs: (gs[0], gs[1] * 100))
    (a + b).backward()
    assert x.grad.tolist() == [3002.0]


def test_the_picture_is_the_same_each_time_and_names_parameters() -> None:
    def picture() -> str:
        w, b = pc.ones(2, requires_grad=True), pc.ones(2, requires_grad=True)
        return pa.graph.to_dot((w * 3 + b).sum(), {'w"x': w, "b": b})

    text = picture()
    assert text == picture()
    assert text.splitlines() == [
        "digraph {",
        '  n0 [label="SumBackward" shape=box];',
        '  n1 [label="AddBackward" shape=box];',
        '  n2 [label="MulBackward" shape=box];',
        '  n3 [label="w\\"x" shape=box style=rounded];',
        '  n4 [label="b" shape=box style=rounded];',
        "  n0 -> n1;",
        "  n1 -> n2;",
        "  n1 -> n4;",
        "  n2 -> n3;",
        "}",
    ]
    with pytest.raises(RuntimeError, match="result 0 must require grad"):
        pa.graph.to_dot(pc.ones(1))


def test_a_deep_graph_has_a_picture() -> None:
    x = pc.ones(1, requires_grad=True)
    y = x
    for _ in range(5000):
        y = y + 1
    assert pa.graph.to_dot([y]).count("AddBackward") == 5000


def test_increment_version_invalidates_saved_values() -> None:
    x = pc.ones(2, requires_grad=True)
    y = x.exp()
    pa.graph.increment_version([y])
    with pytest.raises(RuntimeError, match="overwritten"):
        y.sum().backward()


def test_passes_begin_and_end_at_gradient_edges() -> None:
    x = pc.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    parts = (x * 2).unbind(0)
    edge = pa.graph.get_gradient_edge(parts[1])
    leaf = pa.graph.get_gradient_edge(x)
    z = (parts[1] ** 2).sum() + parts[0].sum()
    del parts
    at_edge, at_leaf = pa.grad(z, [edge, leaf], retain_graph=True)
    assert at_edge.tolist() == [12.0, 16.0]
    assert at_leaf.tolist() == [[2.0, 2.0], [24.0, 32.0]]
    (g,) = pa.grad(edge, x, pc.ones(2), retain_graph=True)
    assert g.tolist() == [[0.0, 0.0], [2.0, 2.0]]
    pa.backward([edge], [pc.ones(2)], inputs=[x], retain_graph=True)
    z.backward()
    assert x.grad.tolist() == [[2.0, 2.0], [26.0, 34.0]]
    with pytest.raises(ValueError, match="the node has 1 outputs; got 1"):
        pa.grad(z, pa.graph.GradientEdge(leaf.node, 1))


def test_a_picture_of_no_tensor_is_an_error() -> None:
    with pytest.raises(TypeError, match="to_dot: `tensors` must be a tensor or a sequence"):
        pa.graph.to_dot(3)
