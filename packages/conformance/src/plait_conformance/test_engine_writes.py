"""Role ``engine``: writes in place, views, and derivatives of derivatives.

A program is differentiated as if nothing were written in place, or raises NotImplementedError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait_abi
from plait_conformance._engine import CREATE, backward, gradients, leaf, no_grad, right_or_refused

POINT = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]])


# ---- what was saved and is overwritten -----------------------------------------------------------
def argument(x: Any) -> tuple[Any, Any]:
    y = x * 2
    return y * y, y


def result(x: Any) -> tuple[Any, Any]:
    y = x.exp()
    return y * 1, y


def part(x: Any) -> tuple[Any, Any]:
    y = x * 2
    return y * y, y.detach()[:1]


@pytest.mark.parametrize("saved", [argument, result, part])
@pytest.mark.parametrize("recorded", [True, False])
def test_an_overwritten_value_is_an_error(saved: Callable[..., Any], recorded: bool) -> None:
    x = leaf(POINT)
    z, y = saved(x)
    if recorded:
        y.mul_(3)
    else:
        with no_grad():
            y.mul_(3)
    with pytest.raises(RuntimeError, match=r"in.?place|overwritten|modified"):
        backward(z.sum())
    assert x.grad is None


def test_a_leaf_s_new_value_is_noticed() -> None:
    x = leaf(POINT)
    z = x * x
    with no_grad():
        x.mul_(2)
    with pytest.raises(RuntimeError):
        backward(z.sum())


def test_what_no_derivative_reads_may_be_overwritten() -> None:
    x = leaf(POINT)
    y = x * 2
    z = y + 1
    y.mul_(3)
    backward(z.sum())
    np.testing.assert_allclose(x.grad.numpy(), np.full(POINT.shape, 2.0))


# ---- leaves are not written ----------------------------------------------------------------------
def test_a_leaf_is_not_written() -> None:
    x, y = leaf(POINT), leaf(POINT)
    for target, value in ((x, y * 2), (x, y.detach()), (x[0], 5.0), (x.view(-1), 5.0)):
        with pytest.raises(RuntimeError, match="leaf"):
            target.mul_(value)
    np.testing.assert_array_equal(x.detach().numpy(), POINT)


def test_out_has_no_derivative() -> None:
    x = leaf(POINT)
    target = plait_abi.require("core").zeros(2, 3, dtype="float64")
    with pytest.raises(RuntimeError, match="out"):
        plait_abi.operator("exp")(x, out=target)
    with no_grad():
        plait_abi.operator("exp")(x, out=target)
    assert not target.requires_grad


# ---- programs that write -------------------------------------------------------------------------
def scaled(x: Any) -> Any:
    y = x * 2
    y.mul_(x)
    y.add_(1)
    return (y * x).sum()


def by_itself(x: Any) -> Any:
    y = x * 2
    y.mul_(y)
    return y.sum()


def through_its_result(x: Any) -> Any:
    y = x * 2
    y.exp_()
    return (y * x).sum()


def constant_first(x: Any) -> Any:
    y = x.detach() * 0 + 1
    y.mul_(x)
    return (y * y).sum()


def forgotten(x: Any) -> Any:
    y = x * 2
    z = y * 3
    y.zero_()
    return (z + y).sum()


def composite(x: Any) -> Any:
    y = x * 2
    y.addcmul_(y, x)
    y.clamp_(-1, 3)
    return (y * x).sum()


def copied(x: Any) -> Any:
    y = x * 0
    y.copy_(x * x)
    return (y * 2).sum()


@pytest.mark.parametrize(
    "program", [scaled, by_itself, through_its_result, constant_first, forgotten, composite, copied]
)
def test_writes_of_results_are_differentiated(program: Callable[..., Any]) -> None:
    assert right_or_refused(program, POINT), "this much every engine must differentiate"


def element(x: Any) -> Any:
    y = x * 2
    y[0, 1] = x[1, 1] * 3
    return (y * y).sum()


def rows_of_a_constant(x: Any) -> Any:
    y = x.detach() * 0
    for i in range(2):
        y[i] = x[1 - i] * (i + 2)
    return (y * y).sum()


def view_before_the_base(x: Any) -> Any:
    y = x * 2
    v = y[0]
    y.mul_(x)
    return (v * v).sum() + y.sum()


def base_after_the_view(x: Any) -> Any:
    y = x * 2
    v = y.t()
    w = v[1:]
    w.mul_(x.t()[1:])
    return (y * y).sum() + (v * 3).sum()


def neighbours(x: Any) -> Any:
    y = x * 2
    y[:, 1:].mul_(y[:, :-1])
    return (y * x).sum()


def view_of_a_constant(x: Any) -> Any:
    y = x.detach() * 0 + 2
    v = y[0]
    y.mul_(x)
    return (v * v).sum()


def strided(x: Any) -> Any:
    y = x * 2
    v = y.as_strided((2, 2), (3, 1), 1)
    v.mul_(v)
    return (y * y).sum()


def in_other_order(x: Any) -> Any:
    y = x.t() * 2
    y[0] = x[:, 2] * x[:, 1]
    return (y * y).sum()


@pytest.mark.parametrize(
    "program",
    [
        element,
        rows_of_a_constant,
        view_before_the_base,
        base_after_the_view,
        neighbours,
        view_of_a_constant,
        strided,
        in_other_order,
    ],
)
def test_writes_into_views_are_right_or_refused(program: Callable[..., Any]) -> None:
    right_or_refused(program, POINT)


def test_views_are_differentiated() -> None:
    def program(x: Any) -> Any:
        y = x * 2
        return (y.t()[1:] * y[:, :2].reshape(2, 2)).sum() + y.view(-1)[::2].exp().sum()

    assert right_or_refused(program, POINT)


def test_a_write_within_no_grad_is_not_part_of_the_graph() -> None:
    x = leaf(POINT)
    y = x + 1
    with no_grad():
        y[0] = 5
    backward(y.sum())
    np.testing.assert_allclose(x.grad.numpy(), np.ones(POINT.shape))


# ---- derivatives of derivatives ------------------------------------------------------------------
@pytest.mark.parametrize("name", ["exp", "tanh", "square", "sigmoid", "sin"])
def test_recorded_passes_are_right_or_refused(name: str) -> None:
    def program(x: Any) -> Any:
        y = plait_abi.operator(name)(x * 2)
        if not x.requires_grad:  # finite differences of the derivative itself
            x = x.detach().requires_grad_()
            y = plait_abi.operator(name)(x * 2)
            return gradients((y * x).sum(), x, flags=0)[0].sum()
        return gradients((y * x).sum(), x, flags=CREATE)[0].sum()

    right_or_refused(program, POINT)


def test_a_recorded_gradient_of_a_leaf_is_right_or_refused() -> None:
    x = leaf([2.0])
    try:
        backward((x * x * x).sum(), flags=CREATE)
    except NotImplementedError as error:
        assert str(error)
        return
    (second,) = gradients(x.grad.sum(), x)
    assert second.tolist() == [12]
