"""Reading and writing by indices and masks on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from on_both import assert_same, check, numbers, wait_for

import plait_core as pc

SIZES = ["bool", "int16", "float32", "float64", "complex128"]
SUMS = ["uint8", "int8", "int16", "int32", "int64", "uint64"]
SUMS += ["float16", "bfloat16", "float32", "float64", "complex64"]


def indices(shape: tuple[int, ...], n: int, seed: int = 0, low: int | None = None) -> Any:
    """Return indices in [-n, n)."""
    random = np.random.default_rng(seed)
    return pc.tensor(random.integers(-n if low is None else low, n, shape))


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("width", [1, 3, 16, 257])
def test_slices(dtype: str, width: int) -> None:
    x, i = numbers((9, width), dtype), indices((33,), 9)
    check(lambda t, i: pc.index_select(t, 0, i), x, i)
    check(lambda t, i: pc.index_select(t.t(), 1, i), x, i)
    check(lambda t, i: pc.index_select(t, 1, i % width), x, i)
    check(lambda t, i: pc.embedding(t, i.reshape(3, 11) % 9), x, i)


@pytest.mark.parametrize("dtype", SIZES)
def test_advanced_indexing(dtype: str) -> None:
    x = numbers((5, 6, 7, 4), dtype)
    i, j = indices((3, 1), 5), indices((8,), 6, 1)
    check(lambda t, i, j: t[i, j], x, i, j)
    check(lambda t, i, j: t[:, j], x, i, j)
    check(lambda t, i, j: t[i, :, j], x, i, j)
    check(lambda t, i, j: t.transpose(0, 3)[:, j, :, i], x, i, j)
    check(lambda t, i, j: t[i, j, i, :2], x, i % 4, j % 4)
    check(lambda t, i, j: t[i[:0], j], x, i[:0], j)
    check(lambda t, i, j: t[..., i, j % 4], x, i, j)


@pytest.mark.parametrize("dtype", SIZES)
def test_gather_and_scatter(dtype: str) -> None:
    x, source = numbers((6, 33), dtype), numbers((6, 40), dtype, 1)
    for dim, shape in ((0, (4, 33)), (1, (6, 40)), (1, (2, 1))):
        i = indices(shape, x.shape[dim], dim)
        check(lambda t, i, d=dim: pc.gather(t, d, i), x, i)
        check(lambda t, i, s, d=dim: pc.scatter(t, d, i, s), x, i, source)
        check(lambda t, i, d=dim: pc.scatter(t, d, i, 1), x, i)
    column = indices((6, 1), 33)
    check(lambda t, i: pc.gather(t, 1, i.expand(6, 5)), x, column)
    check(lambda t, i, s: t.t().scatter(0, i.expand(6, 5).t(), s.t()), x, column, source)


@pytest.mark.parametrize("dtype", SUMS)
@pytest.mark.parametrize("shape", [(300,), (40, 3), (20, 33)])
def test_sums(dtype: str, shape: tuple[int, ...]) -> None:
    x, source = numbers((7, *shape[1:]), dtype), numbers(shape, dtype, 1)
    i = indices((shape[0],), 7)
    expanded = i.reshape(-1, *[1] * (len(shape) - 1))
    wide = expanded.expand(*shape).contiguous()
    check(lambda t, i, s: pc.index_add(t, 0, i, s, alpha=2), x, i, source)
    check(lambda t, i, s: pc.scatter_add(t, 0, i, s), x, wide, source)
    check(lambda t, i, s: pc.scatter_add(t, 0, i.expand(*s.shape), s), x, expanded, source)
    check(lambda t, i, s: t.clone().index_put_((i,), s, accumulate=True), x, i, source)
    check(lambda t, i, s: t.clone().index_put_((i,), s[0], accumulate=True), x, i, source)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("dtype", ["bool", *SUMS[:-1]])
@pytest.mark.parametrize("include_self", [True, False])
def test_reductions(reduce: str, dtype: str, include_self: bool) -> None:
    x, source, i = numbers((4, 9), dtype), numbers((11, 9), dtype, 1), indices((11, 9), 4)
    if dtype == "float32":
        source[3, 2] = np.nan
    check(
        lambda t, i, s: pc.scatter_reduce(t, 0, i, s, reduce, include_self=include_self),
        *(x, i, source),
    )


@pytest.mark.parametrize("n", [3, 3000])
@pytest.mark.parametrize("size", [5, 200_000])
def test_the_last_of_several_writes_is_kept(n: int, size: int) -> None:
    """By the owners of places, and by a sort where there would be too many places."""
    i, values = indices((n,), min(size, 50)), pc.arange(n, dtype=pc.float32)
    check(lambda i, v: pc.zeros(size, device=v.device).index_put_((i,), v), i, values)
    check(lambda i, v: pc.scatter(pc.zeros(size, device=v.device), 0, i, v), i, values)

    def rows(i: Any, v: Any) -> Any:
        table = pc.zeros(size, 3, device=v.device)
        table[i] = v.unsqueeze(1).expand(-1, 3)
        return table.sum(), table[i]

    check(rows, i, values)


def test_writes_with_strides() -> None:
    x, i, j = numbers((6, 7, 5), "float32"), indices((4,), 6), indices((3, 1), 5, 1)

    def write(t: Any, i: Any, j: Any) -> Any:
        made = t.clone()
        made.permute(2, 0, 1)[j, i] = t[0, 0, 0]
        made[:, ::2].transpose(0, 1)[:, i] = t[:4, 1] * 2
        made[i, :, j] = 3
        return made

    check(write, x, i, j)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("padding", [-1, 2])
def test_derivatives_of_rows(dtype: str, padding: int) -> None:
    table, i = numbers((6, 20), dtype), indices((9, 5), 6, low=0)

    def derivative(t: Any, i: Any) -> Any:
        t = t.detach().requires_grad_()
        pc.embedding(t, i, padding).sum().backward()
        return t.grad

    check(derivative, table, i)


@pytest.mark.parametrize("n", [0, 1, 31, 256, 257, 4095, 4096, 4097, 20_000])
def test_masks(n: int) -> None:
    x, mask = numbers((n,), "float32"), numbers((n,), "bool", 1)
    check(lambda t, m: t[m], x, mask)
    check(lambda m: pc.nonzero(m), mask)
    check(lambda t, m: t.clone().masked_scatter_(m, t * 2), x, mask)
    check(lambda t, m: t[::2][m[::2]], x, mask)
    check(lambda t, m: t[m & False], x, mask)
    check(lambda t, m: t[m | True], x, mask)


@pytest.mark.parametrize("dtype", SIZES)
def test_masks_of_dimensions(dtype: str) -> None:
    x, mask = numbers((6, 1, 40), dtype), numbers((6, 3, 40), "bool", 1)
    check(lambda t, m: pc.masked_select(t, m), x, mask)
    check(lambda t, m: pc.masked_select(t.transpose(0, 2), m.transpose(0, 2)), x, mask)
    check(lambda t, m: pc.nonzero(t.expand(6, 3, 40)), x, mask)
    check(lambda t, m: t.expand(6, 3, 40).clone().masked_scatter_(m, t.expand(6, 3, 40)), x, mask)


def test_an_infinite_part_of_complex_sums_leaves_the_other() -> None:
    x, i = numbers((3,), "complex64"), pc.tensor([0, 2, 0, 1])
    source = pc.tensor([complex(np.inf, 2), complex(1, np.nan), 3 + 1j, complex(-np.inf, 1)])
    check(lambda t, i, s: pc.scatter_add(t, 0, i, s), x, i, source.to(pc.complex64))


def test_a_call_reports_one_wrong_index() -> None:
    """Many threads read wrong indices, some of them after the first one was reported."""
    x, i = pc.zeros(3, 200, device="cuda"), pc.full((3000,), 9, device="cuda")
    for _ in range(20):
        errors = 0
        pc.index_select(x, 0, i)
        for _ in range(100):
            try:
                pc.zeros(1, device="cuda").cpu()
            except IndexError:
                errors += 1
        assert errors == 1


def test_an_index_out_of_range_is_reported() -> None:
    x = pc.zeros(3, 4, device="cuda")
    calls = [
        lambda i: pc.index_select(x, 0, i),
        lambda i: pc.gather(x, 0, i.reshape(-1, 1)),
        lambda i: pc.scatter(x, 0, i.reshape(-1, 1), 1),
        lambda i: pc.scatter_add(x, 0, i.reshape(-1, 1), x),
        lambda i: pc.index_add(x, 0, i, x[:1]),
        lambda i: x[i],
        lambda i: x[i, i],
        lambda i: x.clone().index_put_((i,), x[:1]),
        lambda i: pc.embedding(x, i),
    ]
    for call in calls:
        for value in (3, -4):
            with pytest.raises(IndexError, match=f"index {value} is out of"):
                wait_for(call, pc.tensor([value], device="cuda"))
    assert_same(pc.index_select(x, 0, pc.tensor([2, -3], device="cuda")), pc.zeros(2, 4))


def test_sums_are_the_same_in_deterministic_mode() -> None:
    """Float32 in narrow rows is added by atomic operations unless the setting is on."""
    x, i = numbers((5000,), "float32"), indices((5000,), 3)
    want = pc.scatter_add(pc.zeros(3), 0, i, x)
    pc.accelerator.set_deterministic(True)
    try:
        got = pc.scatter_add(pc.zeros(3, device="cuda"), 0, i.cuda(), x.cuda())
    finally:
        pc.accelerator.set_deterministic(False)
    assert_same(got, want, tolerance=0)
