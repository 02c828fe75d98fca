"""Groups of pointwise nodes that run block by block: the bits of eager calls, and their memory."""

from __future__ import annotations

import importlib.resources
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import plait_abi
import plait_autograd as autograd
import plait_core as pc
import plait_nn as nn
from plait_graph import _graph, compile

sys.path.insert(0, str(Path(__file__).parent))

from random_programs import draw_program
from same_bits import assert_same
from test_random_programs import check as check_random_program

LARGE = 40_011  # elements: several blocks, of which the last is shorter, for two threads


@pytest.fixture(params=[False, True], ids=["default", "reproducible"])
def reproducible(request: Any) -> Iterator[None]:
    """Run in both modes."""
    before = pc.is_reproducible()
    pc.set_reproducible(request.param)
    yield
    pc.set_reproducible(before)


@pytest.fixture
def tiny_blocks() -> Iterator[None]:
    """Let blocks have five elements, so that small tensors are fused."""
    before = _graph.set_fewest_elements(5)
    yield
    _graph.set_fewest_elements(before)


def groups(function: Any) -> list[list[str]]:
    """Return the operators of each group of a compiled function's programs."""
    result = []
    for graph in function.graphs():
        program = _graph.Program(graph.to_json())
        result += [[graph.nodes[i].op for i in group] for group in program.groups]
    return result


def check(function: Callable[..., Any], *args: Any) -> list[list[str]]:
    """Compare a compiled function with the function; return its groups."""
    compiled = compile(function, frozen=True)
    with autograd.no_grad():
        expected = function(*args)
        for _ in range(3):
            assert_same(compiled(*args), expected)
    return groups(compiled)


def chain(x: Any, y: Any) -> Any:
    """Ten operators."""
    z = (x * 1.5 + y).relu_() * x - 1.0
    return -pc.maximum(z.abs().sqrt() + y, x)


@pytest.mark.parametrize("shape", [(LARGE,), (3, LARGE), (7, 11, 13, 31), (5, 1, 4001, 1)])
@pytest.mark.parametrize("dtype", [pc.float32, pc.float64])
def test_chain(shape: tuple[int, ...], dtype: Any, reproducible: None) -> None:
    x, y = (pc.randn(*shape, dtype=pc.float32).to(dtype) for _ in range(2))
    assert [len(group) for group in check(chain, x, y)] == [10]


@pytest.mark.parametrize(
    "shape",
    [(1,), (), (61,), (97, 1), (9, 1, 1), (1, 97, 61), (9, 1, 61)],
    ids=str,
)
def test_broadcast_operands(shape: tuple[int, ...]) -> None:
    x, y = pc.randn(9, 97, 61), pc.randn(*shape)
    assert check(lambda x, y: (x * y).sigmoid() - y, x, y) == [["mul", "sigmoid", "sub"]]


def test_strided_operands() -> None:
    x, y = pc.randn(2, 8, 40, 40).to(memory_format=pc.channels_last), pc.randn(40, 80)
    assert check(lambda x, y: (x + y[:, ::2]).relu() * x, x, y) == [["add", "relu", "mul"]]
    # the result of a transposed operand lies as the operand
    z = pc.randn(150, 201).t()
    assert check(lambda z: (z * 2).exp() + z, z) == [["mul", "exp", "add"]]


def test_views_of_what_a_group_writes() -> None:
    def function(x: Any) -> Any:
        y = x * 2
        z = y + 1
        return z + y.flip(0) + y.t()  # other elements of y

    assert check(function, pc.randn(150, 150))[-1:] == [["add", "add"]]

    def later(x: Any) -> Any:
        y = (x * 2).relu_()
        z = y.t()
        y += 1
        return z * 2, y

    check(later, pc.randn(150, 150))


def test_dtypes_and_conditions() -> None:
    def function(x: Any, n: Any) -> Any:
        y = pc.where((x > 0) & (n < 3), x.to(pc.float64), n.to(pc.float64))
        return (y * 2).to(pc.int32) // 3

    (group,) = check(function, pc.randn(LARGE), pc.randint(0, 6, (LARGE,)))
    assert len(group) == 9
    half = pc.randn(LARGE).to(pc.bfloat16)
    assert check(lambda x: (x * 2 + 1).relu(), half) == []


def test_values_that_are_used_later() -> None:
    def function(x: Any) -> Any:
        y = x * 2
        z = y.exp()
        w = z + y
        return w, y, z.sum()

    x = pc.randn(LARGE)
    assert check(function, x) == [["mul", "exp", "add"]]
    compiled = compile(function, frozen=True)
    kept = [compiled(x) for _ in range(3)]
    assert_same(kept[1], function(x))
    kept[0][1].zero_()
    assert_same(kept[2], function(x))


def test_in_place_on_what_another_node_made() -> None:
    w = pc.randn(64, 64)

    def function(x: Any) -> Any:
        y = x @ w
        y += x
        y.relu_()
        return y * 2, y

    assert check(function, pc.randn(640, 64)) == [["add", "relu", "mul"]]


def test_every_function_of_one_operand() -> None:
    operators = json.loads((importlib.resources.files("plait_ops") / "ops.json").read_text())
    x = pc.randn(LARGE)
    x[:5] = pc.tensor([float("nan"), float("inf"), -0.0, 1e-40, 0.0])
    x[15_000] = 3e9  # some functions have another form for blocks of small numbers
    fused = 0
    for entry in operators["operators"]:
        required = [a for a in entry["arguments"] if "default" not in a]
        if entry["kind"] != "pointwise" or len(required) != 1 or not hasattr(pc, entry["name"]):
            continue
        operator = getattr(pc, entry["name"])

        def function(x: Any, operator: Any = operator) -> Any:
            return operator(operator(x) * 1.0)

        try:
            function(x)
        except TypeError:  # for integers
            continue
        fused += bool(check(function, x))
    assert fused > 30


def test_more_threads_than_before() -> None:
    compiled = compile(chain, frozen=True)
    x = pc.randn(LARGE)
    before = pc.get_num_threads()
    try:
        for threads in (1, 2, 1):
            pc.set_num_threads(threads)
            for _ in range(3):
                assert_same(compiled(x, x), chain(x, x))
    finally:
        pc.set_num_threads(before)


def test_small_values_are_no_group() -> None:
    assert check(lambda x: (x * 2).relu() + x, pc.randn(500)) == []


def test_values_of_a_group_need_no_memory() -> None:
    compiled = compile(chain, frozen=True)
    x = pc.randn(1 << 18)
    with autograd.no_grad():
        for _ in range(2):
            compiled(x, x)
    program = _graph.Program(compiled.graphs()[0].to_json())
    assert program.planned_bytes < x.nbytes  # of nine such values


def test_result_takes_the_place_of_an_operand() -> None:
    w = pc.randn(512, 512)

    def function(x: Any) -> Any:
        y = (x @ w).exp()
        return ((y + 1) * 2) @ w

    x = pc.randn(512, 512)
    assert check(function, x) == [["exp", "add", "mul"]]
    compiled = compile(function, frozen=True)
    with autograd.no_grad():
        for _ in range(2):
            compiled(x)
    program = _graph.Program(compiled.graphs()[0].to_json())
    assert program.planned_bytes < 3 * x.nbytes // 2


def test_error_of_a_value() -> None:
    def function(x: Any, y: Any) -> Any:
        return nn.functional.binary_cross_entropy(x * 1, y, reduction="none") + 1

    compiled = compile(function, frozen=True)
    x, y = pc.rand(LARGE), pc.rand(LARGE)
    with autograd.no_grad():
        assert_same(compiled(x, y), function(x, y))
        x[-1] = 3
        with pytest.raises(ValueError, match=r"`input` must be in \[0, 1\]; got 3"):
            compiled(x, y)
        x[-1] = 0.5
        assert_same(compiled(x, y), function(x, y))


def test_an_observer_sees_each_operator() -> None:
    profiler = pytest.importorskip("plait_profiler")
    compiled = compile(chain, frozen=True)
    x = pc.randn(LARGE)
    with autograd.no_grad():
        expected = chain(x, x)
        for _ in range(2):
            compiled(x, x)
        with profiler.profile() as profile:
            assert_same(compiled(x, x), expected)
        assert_same(compiled(x, x), expected)
    names = {row.key for row in profile.key_averages()}
    assert {"mul", "add", "relu_", "sqrt", "maximum", "neg"} <= names


def test_a_new_kernel_runs() -> None:
    compiled = compile(lambda x: (x * 2).relu() + 1, frozen=True)
    x = pc.randn(LARGE)

    def relu(x: Any, out: Any) -> None:
        out.fill_(3)

    with autograd.no_grad():
        for _ in range(2):
            expected = compiled(x)
        with plait_abi.kernel("relu", relu):
            assert_same(compiled(x), pc.full((LARGE,), 4.0))
        assert_same(compiled(x), expected)


@pytest.mark.parametrize("seed", [12, 37, 81, 611, 652, 700])
def test_random_programs_in_tiny_blocks(seed: int, tiny_blocks: None) -> None:
    check_random_program(draw_program(seed))
