"""Copies of any layout and dtype, fills, joining and sequences on the device."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from on_both import assert_same, check, numbers

import plait_core as pc
from plait_abi import operator

REAL = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
REAL += ["float16", "bfloat16", "float32", "float64"]
DTYPES = [*REAL, "complex64", "complex128"]
SIZES = ["bool", "int16", "float32", "float64", "complex128"]
"""A dtype for each size of an element."""


@pytest.mark.parametrize("source", DTYPES)
def test_every_pair_of_dtypes(source: str) -> None:
    """Dense, in pieces that no vector fits, and with strides."""
    dense = numbers((1025,), source)
    if source == "uint64":
        dense = pc.cat([pc.tensor(np.array([2**63 + 2048], dtype=np.uint64)), dense])
    for target in DTYPES:
        to = getattr(pc, target)
        check(lambda t, to=to: t.to(to), dense, tolerance=0)
        check(lambda t, to=to: t[::3].to(to), dense, tolerance=0)
        check(lambda t, to=to: t[1:].to(to), dense, tolerance=0)


def test_halves_are_rounded_once() -> None:
    """A float64 just above the middle of two halves is not rounded to float32 first."""
    x = pc.tensor(np.array([1 + 2**-11 + 2**-40, 1 + 2**-8 + 2**-40, 65519.99, np.nan, -np.inf]))
    for half in (pc.float16, pc.bfloat16):
        check(lambda t, half=half: t.to(half), x, tolerance=0)


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("shape", [(1, 1), (31, 33), (32, 64), (65, 130), (3, 257), (300, 2)])
def test_transposes(dtype: str, shape: tuple[int, int]) -> None:
    x = numbers(shape, dtype)
    check(lambda t: t.t().contiguous(), x)
    check(lambda t: t.t()[1:].contiguous(), x)


@pytest.mark.parametrize("dtype", SIZES)
def test_permuted_dimensions(dtype: str) -> None:
    x = numbers((3, 17, 2, 20), dtype)
    for order in itertools.permutations(range(4)):
        check(lambda t, order=order: t.permute(*order).contiguous(), x)


@pytest.mark.parametrize("dtype", SIZES)
def test_writes_with_strides(dtype: str) -> None:
    x = numbers((6, 40), dtype)

    def write(to: Any) -> Any:
        made = pc.zeros(6, 80, dtype=to.dtype, device=to.device)
        made[:, ::2].copy_(to)
        made[1:3, 1::2].fill_(1)
        made[:, 40:48].copy_(to[0, :8])  # broadcasts
        return made

    check(write, x)


def test_what_cannot_be_merged() -> None:
    x = numbers((2,) * 11, "float32")
    check(lambda t: t.permute(*reversed(range(11))).contiguous(), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 15, 16, 255, 1025])
def test_fills(dtype: str, n: int) -> None:
    d = getattr(pc, dtype)
    for value in (0, 1, 1.5 if dtype.startswith(("float", "complex", "bfloat")) else 3):
        value = bool(value) if dtype == "bool" else value
        want = pc.full((n,), value, dtype=d)
        assert_same(pc.full((n,), value, dtype=d, device="cuda"), want)
        assert_same(pc.empty(n, dtype=d, device="cuda").fill_(pc.tensor(value, dtype=d)), want)


@pytest.mark.parametrize("dtype", SIZES)
def test_joining(dtype: str) -> None:
    a, b, c = numbers((3, 4, 5), dtype), numbers((3, 1, 5), dtype, 1), numbers((3, 40, 5), dtype, 2)
    check(lambda *t: pc.cat(list(t), 1), a, b, c)
    check(lambda *t: pc.cat([t[0].transpose(0, 2), t[1].transpose(0, 2)], 1), a, b)
    check(lambda t: pc.cat([t, pc.zeros(0, dtype=t.dtype, device=t.device), t[:1]]), a[0, 0])
    check(lambda *t: pc.cat([t[0][:, :0], t[1]], 1), a, b)
    assert_same(pc.cat([a.cuda()] * 300, 2), pc.cat([a] * 300, 2))


@pytest.mark.parametrize("dtype", REAL[1:])
def test_sequences(dtype: str) -> None:
    d = getattr(pc, dtype)
    for call in (
        lambda device: pc.arange(3, 90, 2, dtype=d, device=device),
        lambda device: pc.linspace(0, 100, 33, dtype=d, device=device),
        lambda device: pc.logspace(0, 2, 5, dtype=d, device=device),
        lambda device: pc.eye(5, 7, dtype=d, device=device),
        lambda device: pc.eye(33, dtype=d, device=device),
    ):
        assert_same(call("cuda"), call("cpu"))
    assert_same(pc.arange(0.5, 1000, 0.25, device="cuda"), pc.arange(0.5, 1000, 0.25), tolerance=0)


@pytest.mark.parametrize("dtype", SIZES)
@pytest.mark.parametrize("diagonal", [-40, -1, 0, 3, 2**62])
def test_triangles(dtype: str, diagonal: int) -> None:
    for shape in [(5, 7), (2, 3, 33, 31), (0, 4)]:
        x = numbers(shape, dtype)
        check(lambda t: pc.tril(t, diagonal), x)
        check(lambda t: pc.triu(t.transpose(-1, -2), diagonal), x)


def test_numbers_of_the_host_are_operands() -> None:
    x = pc.zeros(3, device="cuda")
    assert_same(x.copy_(pc.tensor(2, dtype=pc.int64)), pc.full((3,), 2.0))
    assert_same(x.fill_(pc.tensor(True)), pc.ones(3))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_complex_views_that_are_not_aligned(dtype: str) -> None:
    """A view of real numbers may begin between the multiples of a complex number's size; compared
    with a copy on the CPU that does not.
    """
    x, other = numbers((41,), dtype), numbers((5,), "complex64", 1)

    def calls(t: Any, other: Any) -> Any:
        base = t.clone()
        z = pc.view_as_complex(base[1:].reshape(20, 2))
        if t.device.type == "cpu":
            z = pc.complex(base[1::2], base[2::2])
        other = other.to(z.dtype)
        read = [z.clone(), pc.cat([z, z]), z[[3, 1]], pc.tril(z.reshape(4, 5)), z[z.real > 0]]
        z[:5].copy_(other)
        z[5:7].fill_(2 - 1j)
        z[pc.tensor([9, 8], device=t.device)] = other[:2]
        z[10:15].masked_scatter_(other.real > 0, other)
        z[:].scatter_(0, pc.tensor([0, 17], device=t.device), other[3:])
        return [*read, z.clone()]

    check(calls, x, other)


def test_a_sequence_is_made_where_its_ends_are() -> None:
    ends = [pc.tensor(x, device="cuda") for x in (0.0, 4.0)]
    for make in (operator("linspace.tensors"), operator("logspace.tensors")):
        with pytest.raises(ValueError, match="`start` must be on cpu, where the call runs; it is"):
            make(*ends, 5, device="cpu")
        on_cpu = [end.cpu() for end in ends]
        assert make(*on_cpu, 5, device="cuda").device.type == "cuda"
        assert make(*ends, 5, device="meta").device.type == "meta"
    assert pc.linspace(*ends, 5, device="cpu").tolist() == [0, 1, 2, 3, 4]  # it reads the ends
