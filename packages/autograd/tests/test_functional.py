"""Jacobians, Hessians and products with them, against formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_autograd as pa
import plait_core as pc
from plait_autograd import functional as F


def t(*values: float) -> pc.Tensor:
    return pc.tensor(list(values), dtype=pc.float64)


A = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def test_jacobian_of_a_linear_map_is_its_matrix() -> None:
    matrix = pc.tensor(A)
    found = F.jacobian(lambda x: matrix @ x, t(1.0, 2.0))
    assert found.tolist() == A.tolist()
    assert not found.requires_grad


def test_several_inputs_and_results() -> None:
    def f(x: pc.Tensor, y: pc.Tensor) -> tuple[pc.Tensor, pc.Tensor]:
        return x * y.sum(), y * 2

    (xx, xy), (yx, yy) = F.jacobian(f, (t(1.0, 2.0), t(3.0, 4.0, 5.0)))
    assert xx.tolist() == (12 * np.eye(2)).tolist()
    assert xy.tolist() == np.outer([1.0, 2.0], np.ones(3)).tolist()
    assert yx.tolist() == np.zeros((3, 2)).tolist()
    assert yy.tolist() == (2 * np.eye(3)).tolist()


def test_products_agree_with_the_jacobian() -> None:
    def f(x: pc.Tensor) -> pc.Tensor:
        return pc.stack([x[0] * x[1], x[0].exp(), x[1].sin() * x[0]])

    x, u, v = t(0.3, 0.7), t(1.0, -2.0), t(0.5, 1.5, -1.0)
    jacobian = np.array(F.jacobian(f, x).tolist())
    value, product = F.jvp(f, x, u)
    assert value.tolist() == f(x).tolist()
    np.testing.assert_allclose(product.tolist(), jacobian @ np.array([1.0, -2.0]), rtol=1e-12)
    _, product = F.vjp(f, x, v)
    np.testing.assert_allclose(product.tolist(), np.array([0.5, 1.5, -1.0]) @ jacobian, rtol=1e-12)


def test_hessians_agree_with_the_formula() -> None:
    def f(x: pc.Tensor, y: pc.Tensor) -> pc.Tensor:
        return (x * x * y).sum() + (x**3).sum()

    x, y = t(1.0, 2.0), t(3.0, 4.0)
    (xx, xy), (yx, yy) = F.hessian(f, (x, y))
    np.testing.assert_allclose(xx.tolist(), np.diag([2 * 3 + 6 * 1.0, 2 * 4 + 6 * 2.0]))
    np.testing.assert_allclose(xy.tolist(), np.diag([2.0, 4.0]))
    np.testing.assert_allclose(yx.tolist(), np.diag([2.0, 4.0]))
    np.testing.assert_allclose(yy.tolist(), np.zeros((2, 2)))
    for product in (F.hvp, F.vhp):
        value, (hx, hy) = product(f, (x, y), (t(1.0, 1.0), t(1.0, 0.0)))
        assert value.shape == ()
        np.testing.assert_allclose(hx.tolist(), [12.0 + 2.0, 20.0])
        np.testing.assert_allclose(hy.tolist(), [2.0, 4.0])


def test_create_graph_connects_and_the_default_does_not() -> None:
    x = t(2.0, 3.0).requires_grad_()
    product: Any
    for product in (F.vjp, F.jvp):
        _, first = product(lambda x: x**3, x, t(1.0, 1.0))
        assert not first.requires_grad
        _, first = product(lambda x: x**3, x, t(1.0, 1.0), create_graph=True)
        (second,) = pa.grad(first.sum(), x)
        assert second.tolist() == [12.0, 18.0]
    (third,) = pa.grad(F.hessian(lambda x: (x**3).sum(), x, create_graph=True).sum(), x)
    assert third.tolist() == [6.0, 6.0]
    assert x.grad is None


def test_what_takes_no_part_is_zero_or_an_error() -> None:
    x, y = t(1.0, 2.0), t(3.0)

    def f(x: pc.Tensor, y: pc.Tensor) -> pc.Tensor:
        return (x * x).sum()

    assert F.vjp(f, (x, y))[1][1].tolist() == [0.0]
    assert F.jacobian(f, (x, y))[1].tolist() == [0.0]
    assert F.hvp(f, (x, y), (x, y))[1][1].tolist() == [0.0]
    assert F.jvp(lambda x: t(1.0), x, x)[1].tolist() == [0.0]
    for call in (
        lambda: F.vjp(f, (x, y), strict=True),
        lambda: F.jacobian(f, (x, y), strict=True),
        lambda: F.hvp(f, (x, y), (x, y), strict=True),
        lambda: F.jvp(lambda x: t(1.0), x, x, strict=True),
        lambda: F.hessian(lambda x: x.sum(), x, strict=True),
    ):
        with pytest.raises(RuntimeError, match="strict=True"):
            call()


def test_empty_and_0d() -> None:
    assert F.jacobian(lambda x: x * 2, pc.zeros(0, dtype=pc.float64)).shape == (0, 0)
    assert F.jacobian(lambda x: x * x, pc.tensor(3.0)).item() == 6.0
    assert F.hessian(lambda x: x * x, pc.tensor(3.0)).item() == 2.0
    assert F.jvp(lambda x: x * x, pc.tensor(3.0))[1].item() == 6.0


def test_errors() -> None:
    x = t(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"`v` 0 must have shape \(2,\).*got \(1,\)"):
        F.vjp(lambda x: x * 2, x, t(1.0))
    with pytest.raises(RuntimeError, match="`v` may be left out only"):
        F.vjp(lambda x: x * 2, x)
    with pytest.raises(RuntimeError, match="must have 1 tensors"):
        F.jvp(lambda x: x * 2, x, (x, x))
    with pytest.raises(TypeError, match="result of `func` must be a tensor"):
        F.jacobian(lambda x: 3, x)
    with pytest.raises(TypeError, match="`inputs` must be a tensor"):
        F.jacobian(lambda x: x, 3)
    with pytest.raises(RuntimeError, match=r"`func` must return one number; got \(2,\)"):
        F.hessian(lambda x: x * 2, x)


def test_is_grads_batched_is_a_loop() -> None:
    x = t(1.0, 2.0).requires_grad_()
    unused = t(1.0).requires_grad_()
    y = x * x
    rows, none = pa.grad(
        y, [x, unused], pc.eye(2, dtype=pc.float64), is_grads_batched=True, allow_unused=True
    )
    assert rows.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert none is None
    with pytest.raises(RuntimeError, match="freed"):
        pa.grad(y, x, pc.ones(2, dtype=pc.float64))
    _, zeros = pa.grad(
        x * x, [x, unused], pc.eye(2, dtype=pc.float64), is_grads_batched=True,
        materialize_grads=True,
    )  # fmt: skip
    assert zeros.tolist() == [[0.0], [0.0]]
    with pytest.raises(ValueError, match="is_grads_batched"):
        pa.grad((x * x).sum(), x, is_grads_batched=True)
    with pytest.raises(ValueError, match="must not be empty"):
        pa.grad(x * x, x, pc.zeros((0, 2), dtype=pc.float64), is_grads_batched=True)
