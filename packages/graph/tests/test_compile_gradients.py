"""Compiled functions with gradients: one node of the engine, beside what eager calls do."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import plait_autograd
import plait_core as pc
import plait_nn as nn
from plait_autograd import no_grad
from plait_graph import compile

sys.path.insert(0, str(Path(__file__).parent))

from same_bits import assert_same

T = pc.tensor
CALLS = 4


def frozen(function: Callable[..., Any]) -> Any:
    return compile(function, frozen=True)


def weight(*values: float) -> Any:
    return nn.Parameter(T(list(values)))


def slopes(loss: Any, *sources: Any) -> Any:
    return plait_autograd.grad(loss, list(sources), allow_unused=True)


@pytest.mark.parametrize(
    "loss_of",
    [
        lambda y: y.sum(),
        lambda y: (y.T * T([[1.0, 2.0], [3.0, 4.0]])).sum(),
        lambda y: y[0].mean(),
        lambda y: y.max(),
        lambda y: y.diagonal().prod(),
        lambda y: y.expand(3, 2, 2).square().sum(),
    ],
)
def test_tangents_of_any_layout(loss_of: Callable[..., Any]) -> None:
    w = nn.Parameter(T([[1.0, 2.0], [3.0, 4.0]]))
    compiled = frozen(lambda x: w * x)
    for k in range(CALLS):
        x = T([[1.0 + k, 2.0], [3.0, 5.0]])
        assert_same(slopes(loss_of(compiled(x)), w), slopes(loss_of(w * x), w))


def test_losses_of_one_call_in_turns() -> None:
    w = weight(1.0, 2.0)
    compiled = frozen(lambda x: w * x)
    for k in range(6):
        y = compiled(T([3.0, 4.0]))
        loss = y.sum() if k % 2 else (y * T([1.0, 2.0])).sum()
        assert_same(slopes(loss, w)[0], T([3.0, 4.0]) if k % 2 else T([3.0, 8.0]))


def test_an_unused_result_has_no_gradient() -> None:
    w, v = weight(2.0), weight(3.0)
    compiled = frozen(lambda x: (w * x, v * x))
    for _ in range(CALLS):
        one, _other = compiled(T([1.0]))
        w.grad = v.grad = None
        one.backward()
        assert_same(w.grad, T([1.0]))
        assert v.grad is None


def test_results_without_gradients() -> None:
    w = weight(2.0, 3.0)

    def function(x: Any) -> Any:
        y = w * x
        with no_grad():
            z = w * x
        return y, y.detach(), z, y.max(0), y > 3

    compiled = frozen(function)
    for _ in range(CALLS):
        y, detached, z, (largest, at), mask = compiled(T([1.0, 2.0]))
        flags = [t.requires_grad for t in (y, detached, z, largest, at, mask)]
        assert flags == [True, False, False, True, False, False]
        assert_same(slopes(y.sum() + largest, w)[0], T([1.0, 4.0]))


def test_one_result_without_a_derivative() -> None:
    w = weight(1.0, 2.0)

    def function(x: Any) -> Any:
        y = w * x
        z = y.exp()
        z.zero_()  # exp's derivative reads z
        return y * 2, z

    compiled = frozen(function)
    for _ in range(CALLS):
        good, bad = compiled(T([1.0, 1.0]))
        assert_same(slopes(good.sum(), w)[0], T([2.0, 2.0]))
        good, bad = compiled(T([1.0, 1.0]))
        with pytest.raises(RuntimeError):
            slopes(bad.sum(), w)


def test_two_calls_then_one_backward_pass() -> None:
    w = weight(2.0)
    compiled = frozen(lambda x: (w * w * x).sum())
    for _ in range(CALLS):
        total = compiled(T([1.0])) + compiled(T([10.0]))
        assert_same(slopes(total, w)[0], T([44.0]))


def test_a_backward_pass_again() -> None:
    w = weight(2.0)
    compiled = frozen(lambda: (w * w).sum())
    for _ in range(CALLS):
        loss = compiled()
        w.grad = None
        loss.backward(retain_graph=True)
        loss.backward()
        assert_same(w.grad, T([8.0]))
        with pytest.raises(RuntimeError):
            loss.backward()


def test_higher_derivatives() -> None:
    w = weight(2.0)
    compiled = frozen(lambda x: (w * w * w * x).sum())
    for _ in range(CALLS):
        loss = compiled(T([1.0]))
        try:
            (slope,) = plait_autograd.grad(loss, [w], create_graph=True)
            assert_same(slopes(slope.sum(), w)[0], T([12.0]))
        except NotImplementedError as error:
            assert "derivatives of derivatives are not compiled" in str(error)


def test_derivatives_inside() -> None:
    w = weight(2.0)

    def function(x: Any) -> Any:
        (slope,) = plait_autograd.grad((w**3 * x).sum(), [w], create_graph=True)
        return (slope * slope).sum()

    compiled = frozen(function)
    for _ in range(CALLS):
        assert_same(slopes(compiled(T([1.0])), w)[0], T([288.0]))


def write_between(what: Any, value: Any, loss: Any) -> None:
    with no_grad():
        what.copy_(value)
    with pytest.raises(RuntimeError, match=r"written|modified|version"):
        loss.backward()


@pytest.mark.parametrize("what", ["weight", "buffer", "argument", "result"])
def test_writes_between_forward_and_backward(what: str) -> None:
    w, buffer = weight(1.0, 2.0), T([1.0, 1.0])
    compiled = frozen(lambda x: (w * w * x * buffer).exp())
    for k in range(CALLS):
        x = T([3.0 + k, 4.0])
        y = compiled(x)
        written = {"weight": w, "buffer": buffer, "argument": x, "result": y}[what]
        write_between(written, T([0.5, 0.25 * k]), y.sum())


def test_a_write_to_what_no_derivative_reads() -> None:
    w = weight(1.0, 2.0)
    compiled = frozen(lambda x: w * 3 + x)
    for _ in range(CALLS):
        x = T([3.0, 4.0])
        y = compiled(x)
        x.zero_()
        y.mul_(2)
        assert_same(slopes(y.sum(), w)[0], T([6.0, 6.0]))


def test_writes_to_views_of_results() -> None:
    w = weight(2.0, 3.0)

    def function() -> Any:
        y = w * 1
        return y, y[:1]

    compiled = frozen(function)
    for _ in range(CALLS):
        try:
            whole, part = compiled()
        except NotImplementedError as error:
            assert "two results share memory" in str(error)
            return
        part.mul_(10)
        assert_same(slopes(whole.sum(), w)[0], T([10.0, 1.0]))


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y[::2].add_(1),
        lambda y: y.view(-1)[::2].mul_(2),
        lambda y: y.view(2, 2).T.mul_(2),
        lambda y: y.transpose(-1, 0).mul_(2),
        lambda y: y.view(2, 2).diagonal().fill_(3),
        lambda y: y[1:].clamp_(-1, 1),
        lambda y: y.index_put_((T([0, 2]),), T(5.0)),
    ],
)
def test_writes_inside(write: Callable[..., Any]) -> None:
    w = weight(1.0, 2.0, 3.0, 4.0)

    def function(x: Any) -> Any:
        y = w * x
        write(y)
        return (y * y).sum()

    compiled = frozen(function)
    for k in range(CALLS):
        x = T([1.0 + k, -2.0, 3.0, 4.0])
        assert_same(slopes(compiled(x), w), slopes(function(x), w))


def test_writes_to_arguments_with_history() -> None:
    compiled = frozen(lambda x: x.mul_(2).sum())
    for _ in range(CALLS):
        leaf = T([1.0, 2.0], requires_grad=True)
        x = leaf * 1
        try:
            compiled(x)
        except NotImplementedError as error:
            assert "history" in str(error)
            return
        assert_same(slopes((x * x).sum(), leaf)[0], T([8.0, 16.0]))


def test_writes_that_give_an_argument_a_history() -> None:
    w = weight(2.0)

    def function(x: Any) -> None:
        x.mul_(w)

    compiled = frozen(function)
    for _ in range(CALLS):
        x = T([3.0])
        try:
            compiled(x)
        except NotImplementedError as error:
            assert "history" in str(error)
            return
        assert_same(slopes(x.sum(), w)[0], T([3.0]))


def test_returned_weight() -> None:
    w = weight(1.0)
    compiled = frozen(lambda x: (w * x, w))
    for _ in range(CALLS):
        product, same = compiled(T([2.0]))
        assert same is w
        assert_same(slopes((product + same).sum(), w)[0], T([3.0]))


def test_returned_argument() -> None:
    compiled = frozen(lambda x: (x * 2, x))
    for _ in range(CALLS):
        x = T([1.0], requires_grad=True)
        product, same = compiled(x)
        assert same is x
        assert_same(slopes((product + same).sum(), x)[0], T([3.0]))


def test_returned_view() -> None:
    compiled = frozen(lambda x: x.view(2, 1))
    for _ in range(CALLS):
        leaf = T([1.0, 2.0], requires_grad=True)
        x = leaf * 1
        view = compiled(x)
        assert view.data_ptr() == x.data_ptr()
        assert_same(slopes(view.sum(), leaf)[0], T([1.0, 1.0]))


@pytest.mark.parametrize("place", ["weight", "argument", "captured"])
def test_hooks(place: str) -> None:
    w = weight(2.0)
    captured = w * 1
    count = [0]

    def double(g: Any) -> Any:
        count[0] += 1
        return g * 2

    if place != "argument":
        (w if place == "weight" else captured).register_hook(double)
    compiled = frozen(lambda x: (captured if place == "captured" else w) * x)
    for k in range(6):
        x = T([3.0], requires_grad=True)
        if place == "argument":
            x.register_hook(double)
        y = compiled(x)
        before = count[0]
        at_w, at_x = plait_autograd.grad(y.sum(), [w, x], retain_graph=True)
        factors = (1.0, 2.0) if place == "argument" else (2.0, 1.0)
        assert_same((at_w, at_x), (T([3.0 * factors[0]]), T([2.0 * factors[1]])))
        assert count[0] == before + 1, k


def test_hooks_of_results_and_of_values_inside() -> None:
    w = weight(2.0)

    def function(x: Any) -> Any:
        y = w * x
        y.register_hook(lambda g: g * 2)
        return y * 1

    compiled = frozen(function)
    for _ in range(CALLS):
        y = compiled(T([3.0]))
        y.register_hook(lambda g: g * 5)
        assert_same(slopes(y.sum(), w)[0], T([30.0]))


def test_custom_functions() -> None:
    class Square(plait_autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 3 * x

    w = weight(2.0)
    compiled = frozen(lambda x: Square.apply(w * x).sum())
    for k in range(CALLS):
        assert_same(slopes(compiled(T([1.0 + k])), w)[0], T([6.0 * (1 + k) ** 2]))


def test_complex_gradients() -> None:
    w = nn.Parameter(pc.randn(3, dtype=pc.complex64))

    def function(x: Any) -> Any:
        return ((w * x).abs() ** 2).sum()

    compiled = frozen(function)
    for _ in range(CALLS):
        x = pc.randn(3, dtype=pc.complex64)
        assert_same(slopes(compiled(x), w), slopes(function(x), w))


def test_detached_weight_first() -> None:
    w = weight(1.0, 2.0)
    compiled = frozen(lambda x: w.detach().sum() + (w * x).sum())
    for _ in range(CALLS):
        assert_same(slopes(compiled(T([3.0, 4.0])), w)[0], T([3.0, 4.0]))


def test_gradients_of_arguments_by_a_pass_inside() -> None:
    def function(x: Any) -> None:
        (x * x).sum().backward()

    compiled = frozen(function)
    for k in range(5):
        x = T([1.0, 2.0 + k], requires_grad=True)
        compiled(x)
        assert_same(x.grad, T([2.0, 4.0 + 2 * k]))


def test_gradients_that_were_there() -> None:
    w = weight(1.0, 2.0)

    def function(x: Any) -> None:
        (w * x).sum().backward()

    compiled = frozen(function)
    expected = 0.0
    for k in range(12):
        if k < 3 or k in (5, 8, 9, 10):
            w.grad = None
            expected = 0.0
        compiled(T([1.0, 1.0]))
        expected += 1
        assert_same(w.grad, T([expected, expected]))


def test_gradients_that_the_caller_keeps() -> None:
    w = weight(1.0)

    def function(x: Any) -> None:
        w.grad = None
        (w * x).sum().backward()

    compiled = frozen(function)
    grads = []
    for k in range(6):
        compiled(T([1.0 + k]))
        grads.append(w.grad)
    assert [g.item() for g in grads] == [1, 2, 3, 4, 5, 6]


def test_gradient_set_by_the_caller() -> None:
    w = weight(2.0)

    def function(x: Any) -> None:
        (w * x).sum().backward()
        with no_grad():
            w.sub_(w.grad, alpha=0.5)
        w.grad = None

    compiled = frozen(function)
    for _ in range(5):
        compiled(T([1.0]))
        assert w.grad is None
    w.grad = T([100.0])
    compiled(T([1.0]))
    assert_same(w.detach(), T([2.0 - 2.5 - 50.5]))


def test_captured_history() -> None:
    w = weight(2.0)
    h = w * 3
    compiled = frozen(lambda x: (h * x).sum())
    for _ in range(CALLS):
        (slope,) = plait_autograd.grad(compiled(T([5.0])), [w], retain_graph=True)
        assert_same(slope, T([15.0]))
