"""Sums, products, counts, extremes: sizes around those of warps and blocks, strides, dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from on_both import check, numbers

import plait_core as pc

REAL = ["float32", "float64", "float16", "bfloat16", "bool", "uint8", "int8", "uint16", "int16"]
REAL += ["uint32", "int32", "uint64", "int64"]
COMPLEX = ["complex64", "complex128"]
SIZES = [1, 2, 31, 32, 33, 255, 256, 257, 1025, 5000]
NAMES = ["sum", "prod", "any", "all", "count_nonzero", "amax", "amin", "argmax", "argmin"]


def function(name: str) -> Callable[..., Any]:
    return getattr(pc, name)


def is_served(name: str, dtype: str) -> bool:
    return not (dtype in COMPLEX and name in ("amax", "amin", "argmax", "argmin"))


@pytest.mark.parametrize("dtype", REAL + COMPLEX)
@pytest.mark.parametrize("name", NAMES)
def test_rows_and_columns_of_all_dtypes(name: str, dtype: str) -> None:
    if not is_served(name, dtype):
        pytest.skip("complex numbers have no order")
    x = numbers((37, 65), dtype)
    call = function(name)
    for dim in (0, 1):
        check(lambda t, dim=dim: call(t, dim), x)
        check(lambda t, dim=dim: call(t[:, ::2], dim), x)
    if name not in ("prod",):
        check(lambda t: call(t), x)


@pytest.mark.parametrize("n", SIZES)
def test_sizes_around_those_of_blocks(n: int) -> None:
    for shape in ((n,), (3, n), (n, 3), (n, 40), (65, n)):
        x = numbers(shape, "float32", n)
        for dim in range(len(shape)):
            for name in ("sum", "amax", "argmin"):
                check(lambda t, name=name, dim=dim: function(name)(t, dim), x)


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "complex128"])
def test_long_rows_are_cut_into_pieces(dtype: str) -> None:
    x = numbers((100_003,), dtype)
    for name in ("sum", "argmax", "count_nonzero", "amin"):
        if not is_served(name, dtype):
            continue
        tolerance = 0.5 if dtype == "float16" and name == "sum" else None
        check(lambda t, name=name: function(name)(t), x, tolerance=tolerance)
        check(lambda t, name=name: function(name)(t[3:]), x, tolerance=tolerance)
    rows = numbers((2, 50_000), dtype)
    check(lambda t: function("sum")(t, 1), rows, tolerance=0.5 if dtype == "float16" else None)


def test_long_columns_are_cut_into_pieces() -> None:
    x = numbers((20_000, 5), "float32")
    for name in ("sum", "amax", "argmax"):
        check(lambda t, name=name: function(name)(t, 0), x, tolerance=1e-4)


@pytest.mark.parametrize("dims", [[0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2], [3], [0, 3]])
def test_any_dimensions_and_strides(dims: list[int]) -> None:
    x = numbers((6, 5, 8, 12), "float32")
    views: list[Callable[[Any], Any]] = [
        lambda t: t,
        lambda t: t.permute(3, 1, 0, 2),
        lambda t: t[:, 1:, ::2],
        lambda t: t[:, :1].expand(6, 5, 8, 12),
    ]
    for view in views:
        check(lambda t, view=view: function("sum")(view(t), dims, keepdim=True), x)
        check(lambda t, view=view: function("mean")(view(t), dims), x)
        check(lambda t, view=view: function("amax")(view(t), dims), x)
        check(lambda t, view=view: function("count_nonzero")(view(t), dims), x)


def test_places_count_in_c_order_for_any_strides() -> None:
    x = numbers((40, 33), "int32")
    for view in (lambda t: t, lambda t: t.t(), lambda t: t[::3]):
        check(lambda t, view=view: function("argmax")(view(t)), x)
        check(lambda t, view=view: function("argmin")(view(t)), x)
        check(lambda t, view=view: tuple(pc.max(view(t), 0)), x)
        check(lambda t, view=view: tuple(pc.min(view(t), 1)), x)


def test_nan_counts_as_an_extreme_and_the_first_place_is_taken() -> None:
    values = np.zeros((3, 300), np.float32)
    values[0, [70, 200]] = np.nan
    values[1, [5, 299]] = 7
    values[2, [0, 1]] = -np.inf
    x = pc.tensor(values)
    for name in ("amax", "amin", "argmax", "argmin", "max", "min"):
        for dim in (0, 1):
            call = function(name)
            check(lambda t, call=call, dim=dim: call(t, dim), x)
        check(lambda t, call=call: call(t), x)


def test_reductions_of_nothing() -> None:
    x = pc.zeros((0, 4))
    for name in ("sum", "prod", "any", "all", "count_nonzero"):
        call = function(name)
        check(lambda t, call=call: call(t, 0), x)
        check(lambda t, call=call: call(t), x)
    check(lambda t: t.sum(1), x)
    check(lambda t: t.mean(0), x)
    check(lambda t: t.any([]), pc.ones((2, 3)))


def test_sums_in_another_dtype_and_0_dimensions() -> None:
    x = numbers((5, 70), "int8")
    check(lambda t: t.sum(1), x)
    check(lambda t: t.sum(1, dtype=pc.int8), x)
    check(lambda t: t.prod(1, dtype=pc.int64), x)
    check(lambda t: t[0, 0].sum(), x)
    check(lambda t: tuple(pc.max(t[0, 0], 0)), x)


def test_sums_have_the_same_bits_each_time() -> None:
    x = numbers((300_000,), "float32").to("cuda")
    first = x.sum().item()
    assert all(x.sum().item() == first for _ in range(3))


def test_sums_of_many_numbers_are_exact_to_the_last_places() -> None:
    x = numbers((200_000,), "float32")
    exact = float(np.sum(x.numpy().astype(np.float64)))
    assert abs(x.to("cuda").sum().item() - exact) <= 1e-4
