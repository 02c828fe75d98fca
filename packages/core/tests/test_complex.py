"""Complex numbers: views of their parts, special values, promotion, products, errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import plait_core as pc

BOTH = pytest.mark.parametrize("dtype", ["complex64", "complex128"])


def drawn(*shape: int, dtype: str = "complex64", seed: int = 0) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    result = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return result.astype(dtype)


@BOTH
def test_parts_are_views(dtype: str) -> None:
    z = pc.from_numpy(drawn(3, 4, dtype=dtype))
    pairs = pc.view_as_real(z)
    assert pairs.data_ptr() == z.data_ptr() and tuple(pairs.shape) == (3, 4, 2)
    pairs[..., 1] = 0
    assert z.imag.abs().sum().item() == 0
    z.imag[0] = 7
    assert z[0].imag.tolist() == [7.0] * 4
    back = pc.view_as_complex(pairs)
    assert back.dtype is z.dtype and back.data_ptr() == z.data_ptr()
    assert pc.equal(z.real, pc.real(z)) and pc.equal(z.T.imag, z.imag.T)


def test_parts_can_be_assigned() -> None:
    z = pc.zeros(2, dtype=pc.complex64)
    z.real = pc.tensor([1.0, 2.0])
    z.imag = -1
    assert z.tolist() == [1 - 1j, 2 - 1j]


def test_real_tensors_have_no_imaginary_part() -> None:
    x = pc.tensor([1.0, 2.0])
    assert x.real.data_ptr() == x.data_ptr()
    with pytest.raises(pc.DTypeError, match=r"imag: `self` must be complex; got float32"):
        _ = x.imag


def test_promotion() -> None:
    whole, real, z = pc.tensor([1]), pc.tensor([1.0], dtype=pc.float64), pc.tensor([1j])
    assert (whole + 1j).dtype is pc.complex64
    assert (real + 1j).dtype is pc.complex128
    assert (real + z).dtype is pc.complex128
    assert (z + pc.tensor(1.0, dtype=pc.float64)).dtype is pc.complex64  # a 0-d tensor is weak
    assert (z + 1).dtype is (z * 2.5).dtype is pc.complex64
    assert pc.true_divide(pc.tensor([True]), 2j).dtype is pc.complex64


@BOTH
@pytest.mark.parametrize(
    "name",
    [
        "exp",
        "log",
        "sqrt",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
    ],
)  # fmt: skip
def test_special_values_follow_the_c_library(name: str, dtype: str) -> None:
    edges = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-30, 0.5]
    z = np.array([complex(a, b) for a in edges for b in edges], dtype)
    # C leaves signs open beside NaN, or changed its mind: releases of NumPy differ
    half = np.isnan(z.real) != np.isnan(z.imag)
    z = z[~(half & ((z.real == 0) | np.isinf(z.real) | np.isinf(z.imag)))]
    numpy = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}
    numpy |= {"asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"}
    with np.errstate(all="ignore"):
        want = getattr(np, numpy.get(name, name))(z)
    got = getattr(pc, name)(pc.from_numpy(z)).numpy()
    for a, b in ((got.real, want.real), (got.imag, want.imag)):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_quotients_do_not_overflow() -> None:
    big = pc.tensor([1e38 + 1e38j])
    assert (big / big).tolist() == [1 + 0j]
    quotient = pc.tensor([1 + 1j, 0j]) / 0
    assert math.isinf(abs(quotient[0].item())) and math.isnan(quotient[1].item().real)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5, 1.5 - 1j])
def test_powers(exponent: Any) -> None:
    z = drawn(5, dtype="complex128")
    np.testing.assert_allclose((pc.from_numpy(z) ** exponent).numpy(), z**exponent, rtol=1e-12)
    assert (pc.tensor([0j]) ** 2).tolist() == [0j]


@BOTH
def test_products(dtype: str) -> None:
    bound = 1e-4 if dtype == "complex64" else 1e-11
    for shapes in [((40, 70), (70, 30)), ((5, 3, 4), (5, 4, 2)), ((3, 4), (4,)), ((4,), (4,))]:
        a, b = drawn(*shapes[0], dtype=dtype), drawn(*shapes[1], dtype=dtype, seed=1)
        got = (pc.from_numpy(a) @ pc.from_numpy(b)).numpy()
        np.testing.assert_allclose(got, a @ b, rtol=bound, atol=bound)
    a, b = drawn(30, 40, dtype=dtype), drawn(30, 20, dtype=dtype, seed=1)
    got = (pc.from_numpy(a).T @ pc.from_numpy(b)[::-1, ::2]).numpy()
    np.testing.assert_allclose(got, a.T @ b[::-1, ::2], rtol=bound, atol=bound)
    hermitian = pc.from_numpy(a).mH @ pc.from_numpy(a)
    np.testing.assert_allclose(hermitian.numpy(), a.conj().T @ a, rtol=bound, atol=bound)


@BOTH
def test_reductions(dtype: str) -> None:
    z = drawn(50, 60, dtype=dtype)
    x, bound = pc.from_numpy(z), 2e-5 if dtype == "complex64" else 1e-12
    for got, want in [
        (x.sum(), z.sum()),
        (x.sum((0,), True), z.sum(0, keepdims=True)),
        (x.T.mean(0), z.T.mean(0)),
        (x[:4, :5].prod(), z[:4, :5].prod()),
        (x[:4, :5].prod(0), z[:4, :5].prod(0)),
        (x.cumsum(-1), z.cumsum(-1)),
        (x[:5].cumprod(0), z[:5].cumprod(0)),
        (x.var(correction=0), z.var()),
        (x.std(1), z.std(1, ddof=1)),
        (pc.norm(x), np.linalg.norm(z)),
        (x.abs().max(), abs(z).max()),
    ]:
        np.testing.assert_allclose(got.numpy(), want, rtol=bound, atol=bound)
    assert x.std().dtype is pc.real(x).dtype
    assert x.any().item() and not (x * 0).any().item()


def test_comparisons() -> None:
    z = pc.tensor([1 + 1j, 1 - 1j])
    assert (z == pc.tensor([1 + 1j, 1 + 1j])).tolist() == [True, False]
    assert (z != (1 - 1j)).tolist() == [True, False]
    assert pc.allclose(z, z + 1e-9) and pc.equal(z, z.clone())
    assert pc.logical_not(pc.tensor([0j, 1j])).tolist() == [True, False]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("lt", (2,)), ("ge", (2,)), ("clamp", (0, 1)), ("floor", ()), ("round", ()), ("sort", ()),
        ("max", ()), ("argmin", ()), ("amax", ()), ("sign", ()), ("relu", ()), ("softmax", (0,)),
        ("maximum", (pc.tensor([1j]),)), ("floor_divide", (2,)), ("remainder", (2,)),
        ("topk", (1,)),
    ],
)  # fmt: skip
def test_what_orders_elements_stays_real(name: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(pc.DTypeError, match=rf"{name}.*complex64"):
        getattr(pc, name)(pc.tensor([1j, 2.0]), *arguments)


def test_complex_numbers_do_not_lose_their_imaginary_part_in_parameters() -> None:
    x = pc.ones(2)
    with pytest.raises(pc.DTypeError, match=r"add: `alpha` must be a real number.*float32"):
        pc.add(x, x, alpha=1j)
    z = x + 0j
    assert pc.add(z, z, alpha=1j).tolist() == [1 + 1j, 1 + 1j]
    assert pc.addcmul(z, z, z, value=2j).tolist() == [1 + 2j, 1 + 2j]
    with pytest.raises(pc.DTypeError, match=r"fill_: `value` must be a real number.*1-2j"):
        x.fill_(1 - 2j)
    with pytest.raises(RuntimeError, match=r"norm: a real number is required"):
        pc.norm(x, 1j)
    with pytest.raises(pc.DTypeError, match=r"var: `correction` must be a real number"):
        pc.var(x, correction=1j)
    with pytest.raises(pc.DTypeError, match=r"sum: `dtype` must be complex.*float32"):
        z.sum(dtype=pc.float32)


@pytest.mark.parametrize("shape", [(2, 5, 3), (2, 5, 4, 3), (2, 5, 4, 3, 2)])
@pytest.mark.parametrize("make", [pc.complex, pc.polar], ids=["complex", "polar"])
def test_numbers_are_made_of_parts_in_any_order_of_dimensions(
    make: Any, shape: tuple[int, ...]
) -> None:
    x, y = (pc.from_numpy(drawn(*shape, seed=seed).real.copy()) for seed in (0, 1))
    expected = make(x, y).movedim(-1, 1)
    result = make(x.movedim(-1, 1), y.movedim(-1, 1))  # images in channels_last are such tensors
    assert result.tolist() == expected.tolist()


def test_scalars() -> None:
    z = pc.tensor(1.5 - 2j)
    assert z.item() == 1.5 - 2j and complex(z) == 1.5 - 2j and z.tolist() == 1.5 - 2j
    assert "1.+2.0000j" in repr(pc.tensor([1 + 2j, -0.5j]))
    assert pc.full((2,), 1j).dtype is pc.complex64
    assert pc.where(pc.tensor([True, False]), 1j, pc.tensor([2j, 3j])).tolist() == [1j, 3j]
    assert pc.tensor([1j, 2j]).masked_fill(pc.tensor([True, False]), 0).tolist() == [0j, 2j]


def test_casts() -> None:
    z = pc.tensor([1 + 2j, 0j])
    assert z.to(pc.complex128).tolist() == [1 + 2j, 0j]
    assert z.to(pc.float32).tolist() == [1.0, 0.0] and z.to(pc.bool_).tolist() == [True, False]
    assert pc.tensor([1, 2]).to(pc.complex64).tolist() == [1 + 0j, 2 + 0j]


def test_complex32_is_not_supported() -> None:
    assert not hasattr(pc, "complex32")
    with pytest.raises((TypeError, ValueError), match="complex32"):
        pc.zeros(2, dtype="complex32")


@pytest.mark.parametrize(
    "assign",
    [
        lambda x, c: x.__setitem__(0, c),
        lambda x, c: x.__setitem__((0, 0), c),
        lambda x, c: x.__setitem__(..., c),
        lambda x, c: x.__setitem__(slice(0, 1), c),
        lambda x, c: x.__setitem__(pc.tensor([0]), c),
        lambda x, c: x.__setitem__(x.real == 0, c),
        lambda x, c: x.__setitem__(0, [c, c]),
        lambda x, c: x.fill_(c),
        lambda x, c: x.add_(c),
        lambda x, c: x.masked_fill_(x.real == 0, c),
        lambda x, c: x.index_fill_(0, pc.tensor([0]), c),
        lambda x, c: x.copy_(pc.where(x.real == 0, c, x)),
        lambda x, c: x.copy_(pc.tensor(c, dtype=pc.complex128)),
    ],
)
def test_a_number_of_python_keeps_its_digits_in_complex128(assign: Any) -> None:
    number = complex(0.1, 1 / 3)  # neither part is a float32
    x = pc.zeros(2, 2, dtype=pc.complex128)
    assign(x, number)
    assert x[0, 0].item() == number
