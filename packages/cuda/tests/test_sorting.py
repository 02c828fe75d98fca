"""Sorting, the largest elements, ranks and searches on the device: the same as on the CPU, with
equal elements and nan.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from on_both import check, numbers

import plait_core as pc
from plait_abi import operator

DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
DTYPES += ["float16", "bfloat16", "float32", "float64"]
LENGTHS = [1, 2, 31, 32, 33, 255, 256, 257, 1025, 2048, 2049, 5000]
SPECIAL = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40]


def line(n: int, dtype: str = "float32", seed: int = 0) -> Any:
    """Return a line with equal elements and, of floating-point dtypes, with special numbers."""
    x = numbers((n,), dtype, seed)
    if dtype.startswith(("float", "bfloat")):
        random = np.random.default_rng(seed)
        for value in SPECIAL:
            x[random.integers(0, n, 1 + n // 50).tolist()] = value
    return x


@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n: int) -> None:
    for descending in (False, True):
        check(lambda t, d=descending: pc.sort(t, descending=d), line(n), tolerance=0)
    check(lambda t: pc.sort(t), line(n, "int64"))
    check(lambda t: pc.kthvalue(t, (n + 1) // 2), line(n), tolerance=0)
    check(lambda t: pc.median(t, 0), line(n, "int64"))
    check(lambda t: pc.nanmedian(t, 0), line(n), tolerance=0)
    check(lambda t: pc.mode(t), line(n), tolerance=0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str) -> None:
    for n in (100, 4100):
        x = line(n, dtype)
        check(lambda t: pc.sort(t), x, tolerance=0)
        check(lambda t: pc.sort(t, descending=True), x, tolerance=0)
        check(lambda t, n=n: pc.topk(t, n // 10), x, tolerance=0)
        check(lambda t: pc.topk(t, 3, largest=False), x, tolerance=0)
        check(lambda t: pc.kthvalue(t, 7), x, tolerance=0)
        check(lambda t: pc.median(t, 0), x, tolerance=0)
        check(lambda t: pc.mode(t), x, tolerance=0)
        check(lambda t: pc.searchsorted(pc.sort(t)[0], t), x)
        check(lambda t: pc.searchsorted(pc.sort(t)[0], t, right=True), x)


def test_numbers_of_all_bits() -> None:
    random = np.random.default_rng(0)
    for dtype in ("int64", "uint64", "int32", "float64"):
        bits = random.integers(-(2**63), 2**63 - 1, 4500, dtype=np.int64)
        x = pc.tensor(np.frombuffer(bits.tobytes(), dtype=dtype).copy())
        check(lambda t: pc.sort(t), x, tolerance=0)
        check(lambda t: pc.topk(t, 1000), x, tolerance=0)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_lines_of_any_dimension(dim: int) -> None:
    x = numbers((5, 37, 12), "int8").to(pc.float32)
    for view in (lambda t: t, lambda t: t.permute(2, 0, 1), lambda t: t[:, ::2]):
        check(lambda t, v=view: pc.sort(v(t), dim, descending=True), x)
        check(lambda t, v=view: pc.topk(v(t), 3, dim), x)
        check(lambda t, v=view: pc.kthvalue(v(t), 2, dim), x)
        check(lambda t, v=view: pc.median(v(t), dim, keepdim=True), x)
        check(lambda t, v=view: pc.mode(v(t), dim), x)


@pytest.mark.parametrize("shape", [(3, 2100), (2, 5000), (2100, 3)])
def test_several_long_lines(shape: tuple[int, int]) -> None:
    x = numbers(shape, "int16")
    for dim in (0, 1):
        check(lambda t, dim=dim: pc.sort(t, dim), x)
        check(lambda t, dim=dim: pc.topk(t, 2, dim, largest=False), x)


def test_chosen_elements_with_equal_ones_at_the_border() -> None:
    x = pc.tensor(np.repeat(np.arange(4), 1024)[np.random.default_rng(1).permutation(4096)])
    for k in (1, 100, 1000, 1024):
        check(lambda t, k=k: pc.topk(t, k), x)
    check(lambda t: pc.topk(t, 900), pc.full((4096,), np.nan))


def test_empty_and_scalar() -> None:
    check(lambda t: pc.sort(t), pc.zeros(0))
    check(lambda t: pc.sort(t, 0), pc.zeros(0, 3))
    check(lambda t: pc.sort(t), pc.tensor(2.0))
    check(lambda t: pc.topk(t, 0), pc.ones(3))
    check(lambda t: pc.searchsorted(t, pc.ones(2, device=t.device)), pc.zeros(0))


@pytest.mark.parametrize("rows", [1, 2, 33, 300])
def test_rows(rows: int) -> None:
    for dtype in ("int8", "float32"):
        x = (numbers((rows, 3), "int8") % 3).to(getattr(pc, dtype))
        check(operator("argsort_rows"), x)
        check(lambda t: operator("argsort_rows")(t[:, ::2]), x)


def test_searches_in_several_sequences() -> None:
    sequences = pc.sort(numbers((4, 100), "float32"))[0]
    values = numbers((4, 9), "float32", 1)
    check(lambda s, v: pc.searchsorted(s, v), sequences, values)
    check(lambda s, v: pc.bucketize(v, s[0]), sequences, values)
