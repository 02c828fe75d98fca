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
    result = F.jacobian(lambda x: matrix @ x, t(1.0, 2.0))
    assert result.tolist() == A.tolist()
    assert not result.requires_grad


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
        lambda: F.jvp(f, (x, y), (x, y), strict=True),
        lambda: F.hessian(lambda x: x.sum(), x, strict=True),
    ):
        with pytest.raises(RuntimeError, match="strict=True"):
            call()


def test_empty_and_0d() -> None:
    assert F.jacobian(lambda x: x * 2, pc.zeros(0, dtype=pc.float64)).shape == (0, 0)
    assert F.jacobian(lambda x: x * x, pc.tensor(3.0)).item() == 6.0
    assert F.hessian(lambda x: x * x, pc.tensor(3.0)).item() == 2.0
    assert F.jvp(lambda x: x * x, pc.tensor(3.0))[1].item() == 6.0


class Square(pa.Function):
    """Has no forward derivative."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * g


def test_jvp_runs_the_function_once_in_forward_mode() -> None:
    runs = []

    def f(x: Any, y: Any) -> Any:
        runs.append(pa.forward_ad.unpack_dual(x).tangent is not None)
        return (x * y).sin(), y.exp()

    x, y = t(0.3, 0.7), t(1.0, -2.0)
    F.jvp(f, (x, y), (y, x))
    assert runs == [True]


def test_jvp_without_a_forward_derivative_takes_two_passes() -> None:
    x, v = t(0.3, 0.7), t(1.0, -2.0)
    value, product = F.jvp(Square.apply, x, v)
    assert value.tolist() == (x * x).tolist() and product.tolist() == (2 * x * v).tolist()


def test_a_jvp_of_a_jvp() -> None:
    """Forward mode has one level at a time: the inner jvp takes two backward passes, on dual
    tensors.
    """
    x, one = t(0.3, 0.7), t(1.0, 1.0)

    def slope(x: Any) -> Any:
        return F.jvp(lambda z: z**4, x, one, create_graph=True)[1]

    _, second = F.jvp(slope, x, one)
    np.testing.assert_allclose(second.tolist(), [12 * 0.3**2, 12 * 0.7**2])


def test_a_jvp_of_a_gradient() -> None:
    def gradient(x: Any) -> Any:
        return pa.grad((x.exp() * x.sum()).sum(), x, create_graph=True)[0]

    x, v = t(0.3, 0.7), t(1.0, -2.0)
    want = F.hvp(lambda x: (x.exp() * x.sum()).sum(), x, v)[1]
    np.testing.assert_allclose(F.jvp(gradient, x, v)[1].tolist(), want.tolist())


def test_jvp_of_complex_numbers_is_that_of_two_passes() -> None:
    z = pc.tensor([1 + 2j, -0.5 + 0.1j], dtype=pc.complex128)
    v = pc.tensor([0.3 - 1j, 2 + 1j], dtype=pc.complex128)
    for f in (lambda z: z * z.exp(), lambda z: z.abs(), lambda z: z.conj() * z[0]):
        forward = F.jvp(f, z, v)[1]
        with pa.forward_ad.dual_level():
            backward = F.jvp(f, z, v)[1]
        np.testing.assert_allclose(forward.numpy(), backward.numpy(), rtol=1e-12)


def test_an_error_in_the_function_leaves_no_level() -> None:
    def fails(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        F.jvp(fails, t(1.0), t(1.0))
    with pa.forward_ad.dual_level():
        pass


def test_strategies_agree() -> None:
    def f(x: Any, y: Any) -> Any:
        return x.sin() * y, pc.outer(x, y).sum(0, keepdim=True), t(1.0)

    x, y = t(0.3, 0.7), t(1.5, -2.0)
    reverse = F.jacobian(f, (x, y))
    forward = F.jacobian(f, (x, y), strategy="forward-mode", vectorize=True)
    for row, other in zip(reverse, forward, strict=True):
        for a, b in zip(row, other, strict=True):
            assert a.shape == b.shape and not b.requires_grad
            np.testing.assert_allclose(a.tolist(), b.tolist(), rtol=1e-12)
    g = lambda x, y: (x.exp() * y * y).sum()  # noqa: E731
    reverse = F.hessian(g, (x, y))
    forward = F.hessian(g, (x, y), outer_jacobian_strategy="forward-mode")
    for row, other in zip(reverse, forward, strict=True):
        for a, b in zip(row, other, strict=True):
            np.testing.assert_allclose(a.tolist(), b.tolist(), rtol=1e-12)


def test_a_forward_jacobian_can_be_differentiated_and_be_empty() -> None:
    x = t(2.0, 3.0).requires_grad_()
    result = F.jacobian(lambda x: x**3, x, create_graph=True, strategy="forward-mode")
    assert pa.grad(result.sum(), x)[0].tolist() == [12.0, 18.0]
    empty = pc.zeros(0, dtype=pc.float64)
    assert F.jacobian(lambda x: x.sum(), empty, strategy="forward-mode").shape == (0,)
    with pytest.raises(RuntimeError, match="needs strategy"):
        F.jacobian(lambda x: x, x, strict=True, strategy="forward-mode")
    with pytest.raises(ValueError, match=r"`strategy` must be .* got 'both'"):
        F.jacobian(lambda x: x, x, strategy="both")
    with pytest.raises(ValueError, match="`outer_jacobian_strategy` must be"):
        F.hessian(lambda x: x.sum(), x, outer_jacobian_strategy="both")


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
