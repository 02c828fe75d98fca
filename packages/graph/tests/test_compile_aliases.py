"""Compiled functions whose arguments, captured tensors and results share memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import plait_core as pc
from plait_graph import compile

sys.path.insert(0, str(Path(__file__).parent))

from same_bits import assert_same

T = pc.tensor


def frozen(function: Callable[..., Any]) -> Any:
    return compile(function, frozen=True)


def test_a_captured_tensor_as_an_argument() -> None:
    w = T([1.0, 2.0])
    compiled = frozen(lambda x: x + w)
    for _ in range(3):
        assert_same(compiled(w), T([2.0, 4.0]))
    assert_same(compiled(T([10.0, 10.0])), T([11.0, 12.0]))


@pytest.mark.parametrize("alias", ["the same", "a view"])
def test_arguments_that_are_one_tensor_at_first(alias: str) -> None:
    compiled = frozen(lambda x, y: x * 10 + y)
    for _ in range(3):
        x = T([1.0, 2.0])
        assert_same(compiled(x, x if alias == "the same" else x.detach()), x * 11)
    assert_same(compiled(T([1.0, 1.0]), T([5.0, 5.0])), T([15.0, 15.0]))


def test_an_argument_is_returned() -> None:
    compiled = frozen(lambda x: (x, [x]))
    for _ in range(4):
        x = T([1.0])
        one, (other,) = compiled(x)
        assert one is x
        assert other is x


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.detach(),
        lambda x: x.view(2),
        lambda x: x[:],
        lambda x: x.reshape(-1),
        lambda x: x.expand(2),
        lambda x: x.transpose(0, 0),
    ],
)
def test_views_with_the_same_shape_are_other_tensors(view: Callable[..., Any]) -> None:
    compiled = frozen(view)
    for _ in range(4):
        x = T([1.0, 2.0])
        y = compiled(x)
        assert y is not x
        y.unsqueeze_(0)
        assert x.shape == (2,)
        y.zero_()
        assert_same(x, T([0.0, 0.0]))


def test_detached_argument() -> None:
    compiled = frozen(lambda x: x.detach())
    for _ in range(4):
        x = T([1.0], requires_grad=True)
        assert not compiled(x).requires_grad


def test_results_that_share_memory() -> None:
    def function(x: Any) -> Any:
        y = x * 2
        return y, y[:1], y

    compiled = frozen(function)
    for _ in range(4):
        whole, part, same = compiled(T([1.0, 2.0]))
        part.zero_()
        assert_same((whole, same), (T([0.0, 4.0]),) * 2)


def test_writes_through_views_of_arguments_and_captured_tensors() -> None:
    kept = pc.zeros(2, 3)

    def function(x: Any) -> Any:
        x.T[1].mul_(10)
        kept[:, 1] += x[:, 0]
        return x[0]

    compiled = frozen(function)
    for k in range(4):
        x = pc.ones(2, 3)
        first = compiled(x)
        assert_same(x, T([[1.0, 10.0, 1.0]] * 2))
        assert_same(kept, T([[0.0, k + 1.0, 0.0]] * 2))
        first.fill_(7)
        assert_same(x[0], T([7.0, 7.0, 7.0]))


def test_versions_of_what_is_written() -> None:
    kept = pc.zeros(2)

    def function(x: Any, y: Any) -> Any:
        x.add_(1)
        x[:1].mul_(2)
        kept.add_(x)
        return y * 2

    compiled = frozen(function)
    for _ in range(4):
        x, y = T([1.0, 2.0]), T([3.0, 4.0])
        before = x._version, y._version, kept._version
        compiled(x, y)
        after = x._version, y._version, kept._version
        assert [b - a for a, b in zip(before, after, strict=True)] == [2, 0, 1]


def test_out() -> None:
    def function(x: Any, out: Any) -> Any:
        return pc.add(x, 1, out=out)

    compiled = frozen(function)
    for _ in range(4):
        out = pc.zeros(2)
        result = compiled(T([1.0, 2.0]), out)
        result.mul_(2)
        assert_same(out, T([4.0, 6.0]))


def in_place(name: str, *args: Any) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        getattr(x, name)(*args)
        return x * 2

    return function


def in_place_of_a_value(name: str, *args: Any) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        y = x * 3
        getattr(y, name)(*args)
        return y * 2, y

    return function


@pytest.mark.parametrize("make", [in_place, in_place_of_a_value])
@pytest.mark.parametrize(
    "change", [("unsqueeze_", 0), ("squeeze_",), ("t_",), ("resize_", (1, 2)), ("transpose_", 0, 1)]
)
def test_shapes_that_change_in_place(make: Callable[..., Any], change: tuple[Any, ...]) -> None:
    function = make(*change)
    compiled = frozen(function)
    try:
        for _ in range(4):
            x, y = (pc.arange(3.0).view(1, 3) for _ in range(2))
            assert_same((compiled(x), x), (function(y), y))
    except NotImplementedError as error:
        assert "compile" in str(error)


def test_an_empty_out_gets_a_shape() -> None:
    def function(x: Any, out: Any) -> Any:
        return pc.add(x, 1, out=out) * 1

    compiled = frozen(function)
    try:
        for _ in range(4):
            out = pc.zeros(0)
            assert_same(compiled(T([1.0, 2.0]), out), T([2.0, 3.0]))
            assert_same(out, T([2.0, 3.0]))
    except NotImplementedError as error:
        assert "in place" in str(error)


def test_constants_of_operators_that_are_written() -> None:
    def function(x: Any) -> Any:
        c = pc.zeros(2) + 1
        c.add_(x)
        return c

    compiled = frozen(function)
    for k in range(6):
        x = T([1.0, max(3.0, k)])
        assert_same(compiled(x), function(x))


def test_constants_from_python_that_are_written() -> None:
    def function(x: Any) -> Any:
        total = T(0.0)
        total += x.sum()
        return total

    compiled = frozen(function)
    assert_same(compiled(T([1.0, 2.0])), T(3.0))
    with pytest.raises(NotImplementedError, match="from Python data and writes to it in place"):
        compiled(T([1.0, 2.0]))


def test_constants_that_are_results() -> None:
    compiled = frozen(lambda x: (T([1.0, 2.0]), x * 2))
    for k in range(6):
        c, _ = compiled(T([1.0, 1.0]))
        assert_same(c, T([1.0, 2.0]))
        if k > 2:
            c.add_(7)
