"""Copies and casts: every pair of dtypes, every order of dimensions, sizes that use threads."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import plait_core as pc

RNG = np.random.default_rng(1)
DTYPES = [
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


def values(dtype: str, target: str) -> Any:
    """Draw numbers that both dtypes represent."""
    x = RNG.standard_normal((7, 300)) * 50
    if np.dtype(dtype).kind in "ub" or np.dtype(target).kind in "ub":
        x = np.abs(x)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * RNG.standard_normal(x.shape)
    return x.astype(dtype)


@pytest.mark.parametrize(("source", "target"), list(itertools.product(DTYPES, DTYPES)))
@pytest.mark.filterwarnings("ignore:Casting complex")
def test_casts(source: str, target: str) -> None:
    x = values(source, target)
    for view in (x, x.T, x[:, ::-2], np.broadcast_to(x[:1], x.shape)):
        got = pc.from_numpy(view).to(getattr(pc, target)).numpy()
        np.testing.assert_array_equal(got, view.astype(target))
        written = np.zeros(view.shape[::-1], target).T
        pc.from_numpy(written).copy_(pc.from_numpy(view))
        np.testing.assert_array_equal(written, view.astype(target))


def test_every_float16() -> None:
    x = np.arange(65536, dtype=np.uint16).view(np.float16)
    wide = pc.from_numpy(x).float().numpy()
    np.testing.assert_array_equal(wide, x.astype(np.float32))
    back = pc.from_numpy(wide).to(pc.float16).numpy()
    np.testing.assert_array_equal(back, x)
    np.testing.assert_array_equal(np.signbit(back), np.signbit(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_to_float16_happens_once(dtype: Any) -> None:
    exact = np.arange(31744, dtype=np.uint16).view(np.float16).astype(np.float64)
    halfway = exact[:-1] + np.diff(exact) / 2
    for x in (halfway, np.nextafter(halfway, np.inf), np.nextafter(halfway, 0)):
        x = x.astype(dtype)
        np.testing.assert_array_equal(pc.from_numpy(x).to(pc.float16).numpy(), x.astype(np.float16))
    edge = np.array([65504, 65519.99, 65520, 1e9, np.inf, -np.inf, np.nan, 3e-8, 2.9e-8], dtype)
    with np.errstate(all="ignore"):
        want = edge.astype(np.float16)
    np.testing.assert_array_equal(pc.from_numpy(edge).to(pc.float16).numpy(), want)


def test_bfloat16_rounds_to_nearest_even() -> None:
    x = (RNG.standard_normal(50_000) * np.exp(RNG.uniform(-80, 80, 50_000))).astype(np.float32)
    x[:4] = [np.inf, -np.inf, 0, -0.0]
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype(np.uint32)
    got = pc.from_numpy(x).to(pc.bfloat16).float().numpy()
    np.testing.assert_array_equal(got.view(np.uint32), rounded)
    assert np.isnan(pc.tensor([np.nan]).to(pc.bfloat16).float().numpy()).all()


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
@pytest.mark.parametrize(
    "shape", [(3, 5), (64, 64), (100, 130), (17, 9, 33), (2, 3, 4, 5), (300, 1, 257), (1000, 3)]
)
def test_every_order_of_dimensions(dtype: str, shape: tuple[int, ...]) -> None:
    x = (RNG.standard_normal(shape) * 50).astype(dtype)
    for order in itertools.permutations(range(len(shape))):
        moved = x.transpose(order)
        for view in (moved, moved[::-1], moved[..., ::2]):
            got = pc.from_numpy(view).contiguous()
            assert got.is_contiguous()
            np.testing.assert_array_equal(got.numpy(), view)
            written = np.zeros(view.shape[::-1], dtype).T
            pc.from_numpy(written).copy_(pc.from_numpy(view))
            np.testing.assert_array_equal(written, view)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 31, 64, 1000])
def test_pictures_of_three_channels(n: int) -> None:
    """Planes that come to lie side by side, and the other way round."""
    planes = np.arange(3 * n, dtype=np.float32).reshape(3, n)
    t = pc.from_numpy(planes)
    pixels = t.t().contiguous()
    np.testing.assert_array_equal(pixels.numpy(), planes.T)
    np.testing.assert_array_equal(pixels.t().contiguous().numpy(), planes)
    apart = pc.from_numpy(np.pad(planes, ((0, 0), (0, 5))))[:, :n]
    np.testing.assert_array_equal(apart.t().contiguous().numpy(), planes.T)


def test_large_transposes() -> None:
    for shape, order in (((900, 700), (1, 0)), ((8, 20, 60, 60), (0, 2, 3, 1))):
        x = RNG.standard_normal(shape).astype(np.float32).transpose(order)
        np.testing.assert_array_equal(pc.from_numpy(x).contiguous().numpy(), x)


def test_fill() -> None:
    x = np.zeros((200, 300), np.complex64)
    pc.from_numpy(x)[:, ::2].fill_(1 + 2j)
    assert (x[:, ::2] == 1 + 2j).all()
    assert (x[:, 1::2] == 0).all()
    for dtype in (pc.float16, pc.bfloat16, pc.int8, pc.float64, pc.bool):
        assert (pc.full((70_000,), 1, dtype=dtype).float().numpy() == 1).all()
    with pytest.raises(ValueError, match=r"value.*300"):
        pc.full((2,), 300, dtype=pc.uint8)


def test_joining() -> None:
    parts = [RNG.standard_normal((30, n, 40)).astype(np.float32) for n in (2, 0, 50)]
    tensors = [pc.from_numpy(part) for part in parts]
    np.testing.assert_array_equal(pc.cat(tensors, 1).numpy(), np.concatenate(parts, 1))
    same = [pc.from_numpy(np.asfortranarray(parts[2])) for _ in range(3)]
    for dim in (0, 1, 3, -1):
        want = np.stack([parts[2]] * 3, dim)
        np.testing.assert_array_equal(pc.stack(same, dim).numpy(), want)


def test_sequences() -> None:
    np.testing.assert_array_equal(pc.arange(100_000).numpy(), np.arange(100_000))
    np.testing.assert_array_equal(pc.arange(5, -7, -3).numpy(), np.arange(5, -7, -3))
    got = pc.arange(0, 1, 0.1, dtype=pc.float64).numpy()
    np.testing.assert_allclose(got, np.arange(0, 1, 0.1), rtol=1e-15)
    ends = pc.linspace(-1, 3, 100_001)
    assert float(ends[0]) == -1
    assert float(ends[-1]) == 3
    np.testing.assert_array_equal(pc.eye(3, 5).numpy(), np.eye(3, 5, dtype=np.float32))


@pytest.mark.parametrize("dtype", [pc.float32, pc.float64])
def test_complex_views_begin_between_multiples_of_their_size(dtype: pc.dtype) -> None:
    """A complex number is aligned as its parts are; kernels that move it ask for no more."""
    base = pc.arange(41, dtype=dtype)
    z = pc.view_as_complex(base[1:].reshape(20, 2))
    want = z.numpy().copy()
    index, rows = pc.tensor([3, 1, 19]), pc.arange(20)
    results = [z[index], pc.cat([z, z]), z.clone(), z.gather(0, index), z[want.real > 9]]
    expected = [want[[3, 1, 19]], np.concatenate([want] * 2), want, want[[3, 1, 19]]]
    expected.append(want[want.real > 9])
    for result, value in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result.numpy(), value)
    matrix = z.reshape(4, 5)
    np.testing.assert_array_equal(matrix.t().contiguous().numpy(), want.reshape(4, 5).T)
    np.testing.assert_array_equal(pc.tril(matrix).numpy(), np.tril(want.reshape(4, 5)))
    z[index] = pc.zeros(3, dtype=z.dtype)
    z.scatter_(0, rows[4:6], pc.ones(2, dtype=z.dtype))
    want[[3, 1, 19]], want[4:6] = 0, 1
    np.testing.assert_array_equal(z.numpy(), want)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64", "complex128"])
@pytest.mark.parametrize("rows", [5, 3000])
def test_rows_of_every_length_and_step(dtype: str, rows: int) -> None:
    lengths = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 65, 513] if rows < 10 else [3, 16, 21]
    for length in lengths:
        x = (RNG.standard_normal((2, rows + 2, 3 * length)) * 50).astype(dtype)
        for step in (1, 2, 3, -1, -2, 0):
            part = x[:, 1:-1, :: step or 1][..., :length]
            if step == 0:
                part = np.broadcast_to(part[..., :1], part.shape)
            for view in (part, part[:, ::-1], part.transpose(1, 0, 2)):
                np.testing.assert_array_equal(pc.from_numpy(view).clone().numpy(), view)
                for apart in (1, 2, 3):
                    whole = np.zeros((*view.shape[:-1], apart * length + 2), dtype)
                    written = whole.copy()
                    whole[..., 1:-1:apart] = view
                    pc.from_numpy(written)[..., 1:-1:apart].copy_(pc.from_numpy(view))
                    np.testing.assert_array_equal(written, whole)
