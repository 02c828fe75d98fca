"""Calls of kernels without the dispatcher: what it does besides still happens."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import plait_abi
import plait_autograd as autograd
import plait_core as pc
import plait_nn as nn
from plait_graph import compile

sys.path.insert(0, str(Path(__file__).parent))

from same_bits import assert_same


def test_a_new_kernel_runs() -> None:
    compiled = compile(lambda x: x.cumsum(0), frozen=True)
    x = pc.tensor([1.0, 2.0, 3.0])
    for _ in range(2):
        compiled(x)
    calls = []

    def cumsum(x: Any, dim: int, *rest: Any) -> Any:
        calls.append(dim)
        if len(calls) > 1:
            return NotImplemented  # then the kernel of before runs
        rest[-1].fill_(7)
        return None

    with plait_abi.kernel("cumsum", cumsum):
        assert compiled(x).tolist() == [7, 7, 7]
        assert compiled(x).tolist() == [1, 3, 6]
    assert compiled(x).tolist() == [1, 3, 6]
    assert calls == [0, 0]


def test_an_error_of_a_kernel() -> None:
    compiled = compile(lambda x: x.cumsum(0) + 1, frozen=True)
    x = pc.tensor([1.0, 2.0, 3.0])
    for _ in range(2):
        compiled(x)

    def cumsum(*args: Any) -> None:
        raise KeyError("a kernel of a user")

    with plait_abi.kernel("cumsum", cumsum), pytest.raises(KeyError, match="a kernel of a user"):
        compiled(x)
    assert compiled(x).tolist() == [2, 4, 7]


def test_indices_are_checked_at_each_run() -> None:
    table = pc.randn(4, 3)
    compiled = compile(lambda i: pc.embedding(table, i) * 2, frozen=True)
    for i in ([0, 3], [1, 2], [2, 2]):
        assert_same(compiled(pc.tensor(i)), table[i] * 2)
    with pytest.raises(IndexError, match="embedding"):
        compiled(pc.tensor([0, 4]))
    assert_same(compiled(pc.tensor([0, 1])), table[:2] * 2)


def test_weights_that_each_run_computes_are_packed_anew() -> None:
    w = pc.randn(300, 300)

    def function(x: Any, scale: Any) -> Any:
        return nn.functional.linear(x, w * scale)

    compiled = compile(function, frozen=True)
    x = pc.randn(64, 300)
    with autograd.no_grad():
        for k in range(5):
            scale = pc.tensor(float(k))
            assert_same(compiled(x, scale), function(x, scale))


def test_versions_count_writes() -> None:
    state = pc.zeros(3)

    def function(x: Any) -> Any:
        state.mul_(0.5)
        state.add_(x)
        return state * 2

    compiled = compile(function, frozen=True)
    for _ in range(2):
        compiled(pc.ones(3))
    before = state._version
    assert_same(compiled(pc.ones(3)), state * 2)
    assert state._version == before + 2


def test_an_argument_may_be_a_weight() -> None:
    state = pc.zeros(6)

    def function(x: Any) -> Any:
        state[1:].add_(x[:-1])
        return state * 1

    compiled = compile(function, frozen=True)
    for x in (pc.ones(6), pc.ones(6), pc.ones(6)):
        compiled(x)
    expected = state.clone()
    expected[1:] += expected[:-1].clone()
    assert_same(compiled(state), expected)
