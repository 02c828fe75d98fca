"""Pointwise kernels: sizes around vectors and blocks, layouts, broadcasting, numbers, dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from on_both import assert_same, check, numbers

import plait_core as pc
from plait_abi import operator

add = operator("add")
exp = operator("exp")
lt = operator("lt")
pow_ = operator("pow")
where = operator("where")
masked_fill = operator("masked_fill")
addcmul = operator("addcmul")

FLOATS = ("float16", "bfloat16", "float32", "float64")
DTYPES: tuple[str, ...] = (*FLOATS, "complex64", "complex128", "bool")
DTYPES += ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
COMPLEX = ["exp", "log", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan"]
COMPLEX += ["sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "log1p", "expm1", "log2", "log10"]
SIZES = (0, 1, 3, 4, 7, 8, 9, 31, 33, 255, 257, 1025, 2049, 100_003)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sizes(dtype: str) -> None:
    for n in SIZES:
        check(lambda x, y: add(x, y), numbers((n,), dtype), numbers((n,), dtype, seed=1))


@pytest.mark.parametrize("dtype", FLOATS)
def test_addresses_between_vectors(dtype: str) -> None:
    for start in range(9):
        check(lambda x, s=start: exp(x[s:]), numbers((50,), dtype))
        check(
            lambda x, y, s=start: add(x[s : s + 40], y),
            numbers((50,), dtype),
            numbers((40,), dtype),
        )


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "complex128"])
@pytest.mark.parametrize(
    "shapes",
    [
        ((5, 16), (16,)),
        ((5, 16), (5, 1)),
        ((5, 17), (17,)),
        ((5, 17), (5, 1)),
        ((5, 16), (1, 1)),
        ((5, 16), ()),
        ((3, 1, 8), (1, 7, 8)),
        ((3, 1, 9), (4, 1)),
        ((2, 3, 1, 5, 1, 2), (3, 4, 1, 3, 2)),
    ],
    ids=str,
)
def test_broadcasting(dtype: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    check(lambda x, y: add(x, y), numbers(shapes[0], dtype), numbers(shapes[1], dtype, seed=1))
    check(lambda x, y: add(y, x), numbers(shapes[0], dtype), numbers(shapes[1], dtype, seed=1))


@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "float32", "float64"])
def test_layouts(dtype: str) -> None:
    x, y = numbers((6, 8, 10), dtype), numbers((6, 8, 10), dtype, seed=1)
    for view in (
        lambda t: operator("permute")(t, [2, 0, 1]),
        lambda t: t[:, ::2],
        lambda t: t[:, :, ::2],
        lambda t: t[:, 1:, 2:],
        lambda t: t[..., 3],
    ):
        check(lambda a, b, v=view: add(v(a), v(b)), x, y)
    check(
        lambda a, b: add(operator("permute")(a, [1, 0, 2]), b[:, :6].reshape(8, 6, 10)[:8]),
        x,
        numbers((8, 8, 10), dtype),
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_and_tensors_of_the_cpu(dtype: str) -> None:
    x = numbers((37,), dtype)
    number = True if dtype == "bool" else 3
    check(lambda t: add(t, number), x)
    zero_d = numbers((), dtype, seed=2)
    want = add(x, zero_d)
    assert_same(add(x.to("cuda"), zero_d), want)
    flags = numbers((37,), "bool")
    assert_same(where(flags.to("cuda"), x.to("cuda"), zero_d), where(flags, x, zero_d))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_comparisons_round_numbers_of_half_precision(dtype: str) -> None:
    x = pc.tensor([0.1, 0.2, 0.3]).to(getattr(pc, dtype))
    for compare in (lt, operator("eq"), operator("ge")):
        check(lambda t, f=compare: f(t, 0.1), x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_where_and_masked_fill(dtype: str) -> None:
    for shape in ((9,), (4, 16), (3, 1, 5)):
        flags = numbers(shape, "bool", seed=3)
        x, y = numbers(shape, dtype), numbers(shape, dtype, seed=1)
        check(where, flags, x, y)
        check(lambda c, a, b: where(c, a[..., :1], b), flags, x, y)
        check(lambda c, a: masked_fill(a, c, 1), flags, x)
        check(lambda c, a: where(c[..., :1], a, 0), flags, x)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("exponent", [2, 3, 0.5, -1, -0.5, -2, 1.5])
def test_powers(dtype: str, exponent: float) -> None:
    x = pc.tensor([0.0, -0.0, 1.0, 2.5, -3.0, float("inf"), -float("inf"), float("nan"), 7.0])
    check(lambda t: pow_(t, exponent), x.to(getattr(pc, dtype)))


def test_results_in_place_and_out() -> None:
    x, y = numbers((33, 5), "float32"), numbers((33, 5), "float32", seed=1)
    want = add(x, y)
    there = x.to("cuda")
    assert operator("add_")(there, y.to("cuda")) is there
    assert_same(there, want)
    out = operator("zeros")([33, 10]).to("cuda")[:, ::2]
    add(x.to("cuda"), y.to("cuda"), out=out)
    assert_same(out, want)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_functions(name: str, dtype: str) -> None:
    special = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 1e-30, float("inf"), -float("inf"), float("nan")]
    z = np.array([complex(x, y) for x in special[:7] for y in special[:7]])
    z = np.concatenate([z, numbers((500,), "complex128").numpy() * 3])
    check(
        operator(name),
        pc.tensor(z).to(getattr(pc, dtype)),
        tolerance=1e-5 if dtype == "complex64" else 1e-13,
    )
    if name in ("log1p", "expm1", "log2", "log10"):
        return
    ends = pc.tensor(np.array([complex(x, y) for x in special for y in special]))
    got, want = operator(name)(ends.to("cuda")).cpu().numpy(), operator(name)(ends).numpy()
    for one, other in ((got.real, want.real), (got.imag, want.imag)):  # signs may be unspecified
        np.testing.assert_allclose(np.abs(one), np.abs(other), rtol=1e-13)


def test_bounds_are_checked() -> None:
    target = pc.tensor([1.0, 0.0])
    with pytest.raises(ValueError, match="2"):
        operator("binary_cross_entropy")(pc.tensor([0.5, 2.0]).to("cuda"), target.to("cuda")).cpu()


def test_many_dimensions() -> None:
    x: Any = numbers((2,) * 11, "float32")
    order = [10, 0, 8, 2, 6, 4, 5, 3, 7, 1, 9]
    check(lambda t: add(operator("permute")(t, order), t), x)
    check(lambda a, b, c: addcmul(a, b, c), x, x[0], x[..., :1])
