"""Gradients of complex numbers: the conjugate Wirtinger derivative, and views of parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait_autograd as pa
import plait_core as pc


def leaf(*values: complex, dtype: str = "complex128") -> Any:
    return pc.from_numpy(np.array(values, dtype)).requires_grad_()


def test_the_gradient_of_a_holomorphic_function_is_g_times_the_conjugate_of_its_slope() -> None:
    z = leaf(1 + 2j, -0.5j)
    g = pc.tensor([2 - 1j, 3j], dtype=pc.complex128)
    (result,) = pa.grad(z * z * z, z, g)
    np.testing.assert_allclose(result.numpy(), g.numpy() * np.conj(3 * z.detach().numpy() ** 2))


def test_the_gradient_of_a_real_loss_points_where_it_grows() -> None:
    z = leaf(3 + 4j, 1j)
    pc.abs(z).square().sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), 2 * z.detach().numpy())
    step = z.detach() - 0.1 * z.grad
    assert pc.abs(step).square().sum().item() < 26


def test_the_gradient_of_conj_is_the_conjugate_of_g() -> None:
    z, g = leaf(1 + 2j), pc.tensor([3 + 1j], dtype=pc.complex128)
    (result,) = pa.grad(pc.conj(z), z, g)
    assert result.tolist() == [3 - 1j]


def test_real_inputs_of_complex_results_take_the_real_part() -> None:
    x = leaf(2.0, -1.0, dtype="float64")
    (x * (1 + 2j)).backward(pc.tensor([1j, 1 - 1j], dtype=pc.complex128))
    assert x.grad.dtype is pc.float64
    np.testing.assert_allclose(x.grad.numpy(), np.real([1j * (1 - 2j), (1 - 1j) * (1 - 2j)]))


def test_products_of_real_and_complex_broadcast() -> None:
    x = pc.from_numpy(np.array([[1.0], [2.0]])).requires_grad_()
    z = leaf(1 + 1j, 2j, -3)
    assert pa.gradcheck(lambda x, z: x * z / (x + z), [x, z])
    assert pa.gradgradcheck(lambda x, z: x * z / (x + z), [x, z])


@pytest.mark.parametrize("to", [pc.complex64, pc.complex128], ids=str)
def test_casts_between_real_and_complex(to: Any) -> None:
    x = leaf(1.0, 2.0, dtype="float64")
    x.to(to).backward(pc.tensor([1 + 5j, 2j], dtype=to))
    assert x.grad.dtype is pc.float64 and x.grad.tolist() == [1.0, 0.0]


def test_no_gradient_is_made_up_for_a_complex_result() -> None:
    z = leaf(1 + 2j)
    with pytest.raises(RuntimeError, match=r"real result.*complex128.*real part"):
        (z * z).sum().backward()
    with pytest.raises(pc.DTypeError, match=r"complex128.*float64"):
        (z * z).backward(pc.ones(1, dtype=pc.float64))


def test_gradients_accumulate() -> None:
    z = leaf(1 + 2j, 3j)
    for _ in range(2):
        (z * 2j).backward(pc.ones(2, dtype=pc.complex128))
    assert z.grad.tolist() == [-4j, -4j]


def writes_real(z: Any) -> Any:
    y = z * 1
    y.real.mul_(y.imag)
    reference = y.imag
    y.mul_(2j)
    return y * reference


def writes_imaginary(z: Any) -> Any:
    y = z * (1 + 1j)
    y.imag[1:] = y.real[:1]
    return y * y


def writes_pairs(z: Any) -> Any:
    y = z * 1
    pairs = pc.view_as_real(y)
    pairs[:, 0] *= 3.0
    pairs[0] = pairs[1] * 2.0
    return y * y


def writes_slices(z: Any) -> Any:
    y = z * 1
    late = y[1:].real
    y *= y
    return late * y.imag[:1]


@pytest.mark.parametrize("function", [writes_real, writes_imaginary, writes_pairs, writes_slices])
def test_parts_are_written_in_place(function: Callable[..., Any]) -> None:
    z = leaf(1 + 2j, 0.5 - 1j)
    assert pa.gradcheck(function, [z])
    assert pa.gradgradcheck(function, [z])


def test_complex_views_of_real_pairs_are_written_in_place() -> None:
    def function(x: Any) -> Any:
        y = x * 1
        pc.view_as_complex(y)[1:].mul_(1 + 2j)
        return y * y

    x = pc.from_numpy(np.arange(4.0).reshape(2, 2) + 1).requires_grad_()
    assert pa.gradcheck(function, [x])


def test_a_wrong_formula_is_found_and_named() -> None:
    class Forgetful(pa.Function):
        @staticmethod
        def forward(ctx: Any, z: Any) -> Any:
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (z,) = ctx.saved_tensors
            return g * z * 2  # not conjugated

    with pytest.raises(pa.GradcheckError, match=r"input 0\[0, imaginary part\]"):
        pa.gradcheck(Forgetful.apply, [leaf(1 + 2j)])


def test_functions_between_real_and_complex() -> None:
    class Lift(pa.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * (1 + 2j)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * (1 - 2j)

    x = leaf(1.0, 2.0, dtype="float64")
    assert pa.gradcheck(Lift.apply, [x])
