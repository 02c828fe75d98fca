"""Copies that a program leaves out: nobody can tell, and the others are made."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import plait_core as pc
import plait_nn as nn
import plait_optim as optim
from plait_graph import _graph, compile

sys.path.insert(0, str(Path(__file__).parent))

from same_bits import assert_same


def unchanged(x: Any) -> Any:
    return (x @ x).clone() @ x


def source_is_dead(x: Any) -> Any:
    y = (x @ x).clone()
    y += x
    return y


def twice(x: Any) -> Any:
    y = (x @ x).clone().clone()
    return y.t() @ y


def both_returned(x: Any) -> Any:
    y = x @ x
    return y, y.clone()


def source_written(x: Any) -> Any:
    y = x @ x
    z = y.clone()
    y += 1
    return y @ z


def copy_written(x: Any) -> Any:
    y = x @ x
    z = y.clone()
    z += 1
    return y @ z


def of_an_argument(x: Any) -> Any:
    return x.clone()


def of_a_part(x: Any) -> Any:
    return (x @ x)[1:].clone()


@pytest.mark.parametrize(
    ("function", "left_out"),
    [
        (unchanged, 1),
        (source_is_dead, 1),
        (twice, 2),
        (both_returned, 0),
        (source_written, 0),
        (copy_written, 0),
        (of_an_argument, 0),
        (of_a_part, 0),
    ],
)
def test_copies(function: Callable[..., Any], left_out: int) -> None:
    compiled = compile(function, frozen=True)
    for k in range(4):
        x = pc.randn(5, 5) + k
        got = compiled(x)
        assert_same(got, function(x))
        if function is both_returned:
            got[0].zero_()
            assert_same(got[1], function(x)[1])
    (graph,) = compiled.graphs()
    memories = dict(_graph.Program(graph.to_json()).memories())
    copies = [node for node in graph.nodes if node.op == "clone"]
    same = [memories[n.args[0].name] == memories[n.outputs[0].name] for n in copies]
    assert sum(same) == left_out


def test_gradients_are_not_copied() -> None:
    model = nn.Linear(5, 3)
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    compiled = compile(step, frozen=True)
    for _ in range(3):
        compiled(pc.randn(2, 5))
    profiler = pytest.importorskip("plait_profiler")
    with profiler.profile() as profile:
        compiled(pc.randn(2, 5))
    assert "clone" not in {row.key for row in profile.key_averages()}
    grad = model.weight.grad
    assert grad is not None
    before = grad.clone()
    compiled(pc.randn(2, 5))
    assert_same(grad, before)
