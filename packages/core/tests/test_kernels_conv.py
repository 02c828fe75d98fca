"""Convolution and pooling against sums over windows, in sizes for every direct algorithm.

Winograd's algorithm, which rounds more, has test_kernels_conv_winograd.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator

RNG = np.random.default_rng(5)
with_activation = operator("conv2d_activation")
hardtanh = operator("hardtanh")
backward_input = operator("conv2d_backward_input")
backward_weight = operator("conv2d_backward_weight")
pool_backward = operator("max_pool2d_backward")


@pytest.fixture(autouse=True)
def direct_algorithms() -> Iterator[None]:
    pc.set_winograd("off")
    yield
    pc.set_winograd("auto")


class Case(NamedTuple):
    n: int
    c: int
    h: int
    w: int
    oc: int
    kh: int
    kw: int
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1


CASES = [
    Case(64, 1, 28, 28, 6, 5, 5),  # many small images: eight at a time
    Case(16, 1, 28, 28, 6, 5, 5, padding=(2, 2)),
    Case(23, 6, 12, 12, 16, 5, 5),
    Case(8, 3, 7, 6, 5, 3, 7, padding=(1, 3)),
    Case(8, 2, 9, 9, 4, 3, 3, stride=(2, 3), padding=(1, 1)),
    Case(8, 2, 9, 9, 4, 2, 3, dilation=(2, 2)),
    Case(5, 6, 14, 14, 16, 5, 5),  # few: patches as columns
    Case(2, 3, 9, 11, 4, 3, 3, stride=(2, 1), padding=(1, 2)),
    Case(2, 4, 9, 9, 6, 3, 2, padding=(1, 1), dilation=(2, 2)),
    Case(1, 3, 40, 50, 7, 7, 7, stride=(3, 2), padding=(3, 3)),
    Case(1, 2, 3, 3, 4, 3, 3, padding=(5, 5)),
    Case(1, 64, 30, 30, 64, 3, 3, padding=(1, 1)),
    Case(2, 5, 7, 7, 3, 1, 1),  # a product of matrices
    Case(2, 5, 7, 7, 3, 1, 1, stride=(2, 2)),
    Case(1, 16, 7, 7, 40, 1, 1),  # images side by side
    Case(5, 30, 7, 7, 21, 1, 1),
    Case(16, 33, 3, 5, 17, 1, 1),
    Case(5, 20, 14, 14, 24, 1, 1, stride=(2, 2)),
    Case(3, 12, 29, 31, 50, 1, 1, stride=(3, 2)),
    Case(2, 8, 36, 64, 20, 1, 1),  # images in blocks
    Case(1, 5, 55, 61, 7, 1, 1),
    Case(2, 20, 17, 15, 30, 1, 1),  # planes are read where they lie
    Case(2, 80, 16, 16, 62, 1, 1, groups=2),
    Case(2, 400, 8, 8, 20, 1, 1),  # sums in several pieces
    Case(2, 20, 8, 8, 400, 1, 1),
    Case(3, 24, 13, 9, 36, 1, 1, groups=3),
    Case(1, 64, 14, 14, 200, 1, 1),  # a piece for each of several threads
    Case(1, 3, 44, 46, 32, 3, 3, stride=(2, 2), padding=(1, 1)),  # three channels side by side
    Case(2, 16, 12, 9, 24, 1, 1, stride=(1, 2), groups=4),
    Case(2, 8, 9, 7, 8, 1, 1, padding=(1, 2)),
    Case(3, 1, 6, 1, 5, 1, 1),
    Case(2, 32, 20, 23, 20, 3, 3, stride=(2, 2), padding=(1, 1)),  # channels in panels
    Case(2, 45, 9, 10, 100, 5, 5, padding=(2, 2)),
    Case(1, 16, 70, 75, 16, 3, 2, stride=(1, 2), padding=(1, 0)),
    Case(5, 48, 11, 9, 48, 3, 3, stride=(2, 2), padding=(1, 1), groups=3),
    Case(1, 16, 1, 1, 4, 1, 1, stride=(2, 2)),
    Case(2, 8, 10, 10, 8, 3, 3, padding=(1, 1), groups=8),  # a filter for each channel
    Case(3, 6, 7, 7, 6, 3, 3, padding=(1, 1), groups=6),
    Case(5, 5, 7, 7, 10, 3, 3, stride=(2, 2), padding=(1, 1), groups=5),
    Case(2, 7, 14, 15, 7, 3, 3, stride=(2, 2), padding=(1, 1), groups=7),
    Case(2, 3, 33, 80, 9, 3, 3, padding=(1, 1), groups=3),  # rows one by one
    Case(2, 3, 65, 67, 6, 5, 5, stride=(2, 2), padding=(2, 2), groups=3),
    Case(2, 3, 35, 70, 3, 3, 3, stride=(1, 2), padding=(1, 0), groups=3),
    Case(
        2, 4, 11, 13, 4, 5, 4, stride=(3, 2), padding=(4, 6), groups=4
    ),  # more padding than the windows read
    Case(2, 4, 19, 17, 8, 3, 3, stride=(2, 3), padding=(2, 1), dilation=(3, 2), groups=4),
    Case(2, 4, 12, 11, 4, 2, 1, stride=(4, 3), groups=4),  # elements that no window reads
    Case(1, 3, 3, 2, 3, 3, 2, groups=3),
    Case(3, 21, 7, 7, 21, 5, 5, padding=(2, 2), groups=21),  # planes side by side
    Case(2, 20, 14, 13, 40, 3, 3, stride=(2, 2), padding=(1, 1), groups=20),
    Case(1, 10, 90, 29, 10, 4, 3, stride=(3, 2), padding=(7, 5), dilation=(2, 1), groups=10),
    Case(40, 9, 5, 3, 9, 3, 1, groups=9),
    Case(2, 2, 1, 1, 4, 1, 1, stride=(5, 5), groups=2),
    Case(1, 2, 260, 300, 2, 3, 3, stride=(2, 2), padding=(1, 1), groups=2),  # in bands
    Case(1, 2, 230, 310, 2, 5, 3, padding=(2, 1), groups=2),
    Case(9, 4, 8, 8, 6, 3, 3, groups=2),
    Case(2, 1, 5, 5, 3, 5, 5),
    Case(3, 4, 40, 1, 6, 9, 1, stride=(2, 1), padding=(3, 0), dilation=(2, 1)),  # columns
    Case(16, 4, 33, 1, 8, 5, 1, padding=(2, 0), groups=2),
    Case(2, 3, 20, 1, 4, 3, 1, stride=(1, 3), padding=(1, 1)),  # of a column of padding
    Case(2, 3, 20, 1, 4, 3, 1, padding=(0, 1)),
    Case(2, 3, 1, 20, 4, 1, 3, stride=(1, 2)),
    Case(3, 16, 7, 7, 33, 4, 4, stride=(2, 2), padding=(1, 1)),  # channels side by side
    Case(3, 20, 16, 16, 12, 4, 4, stride=(2, 2), padding=(1, 1)),
    Case(2, 16, 9, 10, 16, 2, 3, stride=(3, 2)),  # elements that no window reads
    Case(2, 16, 11, 12, 16, 1, 2, stride=(3, 4), padding=(0, 1)),
    Case(2, 13, 8, 9, 14, 3, 3, stride=(2, 1), padding=(4, 3)),  # more padding than window
    Case(2, 16, 17, 19, 16, 3, 2, stride=(1, 1), padding=(2, 1), dilation=(3, 2)),
    Case(2, 16, 17, 19, 16, 3, 3, stride=(2, 1), padding=(1, 2), dilation=(1, 3)),
    Case(2, 16, 17, 19, 16, 3, 3, stride=(2, 3), padding=(2, 2), dilation=(2, 2)),
    Case(2, 36, 10, 9, 39, 3, 3, stride=(2, 2), padding=(1, 1), groups=3),
    Case(2, 24, 10, 9, 26, 3, 2, stride=(1, 2), dilation=(2, 1), groups=2),
    Case(2, 3, 30, 31, 16, 7, 7, stride=(2, 2), padding=(3, 3)),
    Case(1, 12, 90, 101, 17, 5, 3, stride=(2, 3), padding=(2, 0)),  # images in bands of rows
    Case(1, 40, 64, 80, 16, 3, 3, padding=(1, 1)),
    Case(40, 16, 6, 6, 14, 3, 3, padding=(1, 1)),  # parts of a batch
    Case(2, 430, 5, 6, 12, 3, 3, padding=(1, 1)),  # sums in several pieces
    Case(2, 16, 8, 8, 16, 3, 8, padding=(1, 0)),
    Case(4, 16, 9, 9, 32, 1, 1, stride=(2, 2)),
    Case(4, 18, 16, 16, 34, 1, 1),
    Case(2, 16, 8, 9, 13, 7, 7),  # a large window in a small image
    Case(9, 16, 7, 5, 20, 7, 5),  # a window as large as the image: one product
    Case(9, 2, 4, 4, 1, 4, 4),
    Case(1, 3, 6, 6, 5, 6, 6),
]


def padded(x: Any, case: Case) -> Any:
    (ph, pw) = case.padding
    return np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))


def windows(x: Any, case: Case) -> Any:
    """A writable view (n, c, oh, ow, kh, kw) of a padded image."""
    (sh, sw), (dh, dw) = case.stride, case.dilation
    n, c, h, w = x.shape
    oh = (h - dh * (case.kh - 1) - 1) // sh + 1
    ow = (w - dw * (case.kw - 1) - 1) // sw + 1
    a, b, r, s = x.strides
    shape, strides = (n, c, oh, ow, case.kh, case.kw), (a, b, r * sh, s * sw, r * dh, s * dw)
    return np.lib.stride_tricks.as_strided(x, shape, strides)


def reference(x: Any, w: Any, g: Any, case: Case) -> tuple[Any, Any, Any]:
    """Result and both derivatives in float64, group by group."""
    x, w = x.astype(np.float64), w.astype(np.float64)
    wide = padded(x, case)
    gx = np.zeros_like(wide)
    y, gw = [], np.zeros_like(w)
    gc, go = case.c // case.groups, case.oc // case.groups
    for k in range(case.groups):
        channels, filters = slice(k * gc, (k + 1) * gc), slice(k * go, (k + 1) * go)
        view = windows(wide[:, channels], case)
        y.append(np.einsum("nchwij,ocij->nohw", view, w[filters], optimize=True))
        if g is None:
            continue
        own = g[:, filters].astype(np.float64)
        gw[filters] = np.einsum("nohw,nchwij->ocij", own, view, optimize=True)
        target = windows(gx[:, channels], case)
        spread = np.einsum("nohw,ocij->nchwij", own, w[filters], optimize=True)
        for i in range(case.kh):
            for j in range(case.kw):
                target[..., i, j] += spread[..., i, j]
    (ph, pw) = case.padding
    return np.concatenate(y, 1), gx[:, :, ph : ph + case.h, pw : pw + case.w], gw


def close(got: Any, want: Any, dtype: Any) -> None:
    scale = np.abs(want).max() + 1
    np.testing.assert_allclose(
        got.numpy(), want, atol=scale * (2e-6 if dtype == np.float32 else 1e-14)
    )


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES)
def test_convolution(case: Case, dtype: Any, channels_last: bool) -> None:
    def draw(*shape: int) -> Any:
        x = RNG.standard_normal(shape).astype(dtype)
        if channels_last and len(shape) == 4:
            return np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
        return x

    x, bias = draw(case.n, case.c, case.h, case.w), draw(case.oc)
    w = draw(case.oc, case.c // case.groups, case.kh, case.kw)
    rest = (case.stride, case.padding, case.dilation, case.groups)
    y, _, _ = reference(x, w, None, case)
    g = draw(*y.shape)
    y, gx, gw = reference(x, w, g, case)
    tx, tw, tg = pc.from_numpy(x), pc.from_numpy(w), pc.from_numpy(g)
    close(pc.conv2d(tx, tw, None, *rest), y, dtype)
    close(pc.conv2d(tx, tw, pc.from_numpy(bias), *rest), y + bias[:, None, None], dtype)
    close(backward_input(tg, tw, x.shape, *rest), gx, dtype)
    close(backward_weight(tg, tx, w.shape, *rest), gw, dtype)


@pytest.mark.parametrize("width", [1, 2, 7, 8, 9, 14, 16, 17, 23, 24, 25, 28, 31, 32, 33])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_depthwise_rows_of_a_few_vectors(width: int, dtype: Any) -> None:
    for n, c, h in ((1, 1, 20), (1, 2, 16), (3, 3, 7), (1, 67, 7), (2, 300, 14), (5, 999, 1)):
        case = Case(n, c, h, width, c, 3, 3, padding=(1, 1), groups=c)
        x = RNG.standard_normal((n, c, h, width)).astype(dtype)
        w, b = RNG.standard_normal((c, 1, 3, 3)).astype(dtype), RNG.standard_normal(c).astype(dtype)
        wide = padded(x.astype(np.float64), case)
        taps = [(i, j) for i in range(3) for j in range(3)]
        y = sum(
            w[:, 0, i, j, None, None] * wide[:, :, i : i + h, j : j + width] for i, j in taps
        ) + b[:, None, None].astype(np.float64)
        tensors = pc.from_numpy(x), pc.from_numpy(w), pc.from_numpy(b)
        rest = (1, 1), (1, 1), (1, 1), c
        got = pc.conv2d(*tensors, *rest)
        close(got, y, dtype)
        for name, function in (
            ("hardtanh", lambda t: hardtanh(t, -1, 0.5)),
            ("silu", operator("silu")),
        ):
            joined = with_activation(*tensors, *rest, name, -1.0, 0.5, 0.0)
            assert joined.numpy().tobytes() == function(got).numpy().tobytes()


def test_borders_larger_than_memory() -> None:
    far = 10**9  # with this padding and stride only one position of the window meets the image
    x, w = RNG.standard_normal((2, 16, 3, 3)), RNG.standard_normal((16, 16, 2, 2))
    tx, tw = pc.from_numpy(x), pc.from_numpy(w)
    rest = (far, far, 1, 1)
    y = pc.conv2d(tx, tw, None, *rest)
    want = np.zeros((2, 16, 3, 3))
    want[:, :, 1, 1] = np.einsum("ncij,ocij->no", x[:, :, :2, :2], w)
    np.testing.assert_allclose(y.numpy(), want, atol=1e-12)
    gx = np.zeros_like(x)
    gx[:, :, :2, :2] = np.einsum("no,ocij->ncij", want[:, :, 1, 1], w)
    np.testing.assert_allclose(backward_input(y, tw, x.shape, *rest).numpy(), gx, atol=1e-10)
    gw = np.einsum("no,ncij->ocij", want[:, :, 1, 1], x[:, :, :2, :2])
    np.testing.assert_allclose(backward_weight(y, tx, w.shape, *rest).numpy(), gw, atol=1e-10)


def test_infinite_pixels_stay_where_they_are() -> None:
    x = np.ones((1, 2, 9, 20), np.float32)
    x[0, 1, 4, 5] = np.inf
    y = pc.conv2d(pc.from_numpy(x), pc.ones(2, 1, 3, 3), None, 1, 1, 1, 2).numpy()
    assert np.isinf(y[0, 1, 3:6, 4:7]).all() and np.isinf(y).sum() == 9
    x = x.transpose(0, 2, 3, 1).reshape(1, 20, 9, 2).transpose(0, 3, 1, 2).copy()
    y = pc.conv2d(pc.from_numpy(np.tile(x, (1, 2, 1, 1))), pc.ones(5, 4, 1, 1)).numpy()
    assert np.isinf(y).sum() == 5 * np.isinf(x).any(1).sum()


@pytest.mark.parametrize("width", [6, 7, 14, 40])
@pytest.mark.parametrize("stride", [1, 2])
def test_infinite_pixels_reach_the_weights_that_see_them(stride: int, width: int) -> None:
    x, rest = np.ones((2, 9, 7, width), np.float32), ((stride, stride), (0, 0), (1, 1), 9)
    x[0, 0, 0, 0] = x[1, 7, 0, -1] = np.inf
    y = pc.conv2d(pc.from_numpy(x), pc.ones(9, 1, 3, 3), None, *rest)
    gw = backward_weight(pc.ones(*y.shape), pc.from_numpy(x), (9, 1, 3, 3), *rest).numpy()
    assert np.isfinite(y.numpy()[0, 0]).sum() == y.shape[2] * y.shape[3] - 1
    seen = np.zeros((9, 1, 3, 3), bool)
    seen[0, 0, 0, 0] = True
    seen[7, 0, 0, 2] = (width - 3) % stride == 0
    assert np.isinf(gw[seen]).all() and np.isfinite(gw[~seen]).all()


SHORT_OF_MEMORY = """
import resource
import plait_core as pc
from plait_abi import operator

pc.set_num_threads(2)
backward = operator("conv2d_backward_input"), operator("conv2d_backward_weight")
sizes = [((4, 64, 28, 28), (96, 64, 1, 1), 1, 0, 1), ((4, 64, 28, 28), (64, 1, 3, 3), 2, 1, 64),
         ((4, 64, 28, 28), (96, 64, 3, 3), 2, 1, 1), ((4, 3, 90, 90), (32, 3, 7, 7), 2, 3, 1)]
failed = 0
for shape, filters, stride, padding, groups in sizes:
    x, w = pc.ones(*shape), pc.ones(*filters)
    rest = ([stride] * 2, [padding] * 2, [1, 1], groups)
    g = pc.conv2d(x, w, None, *rest)
    calls = [lambda: pc.conv2d(x, w, None, *rest), lambda: backward[0](g, w, x.shape, *rest),
             lambda: backward[1](g, x, w.shape, *rest)]
    for call in calls:
        want = call()
        pages = int(open("/proc/self/statm").read().split()[0])
        for spare in (0, 1 << 16, 1 << 18, 1 << 20, 1 << 21):
            pc.empty_cache()
            resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + spare, -1))
            try:
                got = call()
            except MemoryError:
                got, failed = want, failed + 1
            resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
            assert pc.equal(got, want)
        assert pc.equal(call(), want)
print(failed > 0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits a process's memory")
def test_too_little_memory_is_an_error(in_new_process: Callable[..., str]) -> None:
    assert in_new_process(SHORT_OF_MEMORY).strip() == "True"


def test_convolution_of_nothing() -> None:
    empty = pc.zeros(0, 4, 7, 7)
    for w, groups in ((pc.zeros(4, 1, 3, 3), 4), (pc.zeros(8, 4, 1, 1), 1)):
        y = pc.conv2d(empty, w, None, 1, 0, 1, groups)
        rest = ([1, 1], [0, 0], [1, 1], groups)
        assert backward_input(y, w, empty.shape, *rest).shape == empty.shape
        assert float(backward_weight(y, empty, w.shape, *rest).abs().sum()) == 0
    assert pc.conv2d(pc.zeros(0, 3, 8, 8), pc.zeros(4, 3, 3, 3)).shape == (0, 4, 6, 6)
    gw = backward_weight(pc.zeros(0, 4, 6, 6), pc.zeros(0, 3, 8, 8), (4, 3, 3, 3), 1, 0, 1, 1)
    np.testing.assert_array_equal(gw.numpy(), np.zeros((4, 3, 3, 3), np.float32))


# ---- pooling -------------------------------------------------------------------------------------
def pooled(x: Any, k: int) -> tuple[Any, Any]:
    """Largest elements of adjacent k x k windows, and their indices."""
    n, c, h, w = x.shape
    oh, ow = h // k, w // k
    cut = x[:, :, : oh * k, : ow * k].reshape(n, c, oh, k, ow, k).swapaxes(3, 4)
    flat = cut.reshape(n, c, oh, ow, k * k)
    at = flat.argmax(-1)
    rows = np.arange(oh)[:, None] * k + at // k
    return np.take_along_axis(flat, at[..., None], -1)[..., 0], rows * w + np.arange(
        ow
    ) * k + at % k


@pytest.mark.parametrize("size", [(24, 24), (25, 27), (8, 8), (10, 14), (7, 9), (6, 6), (50, 40)])
@pytest.mark.parametrize("k", [2, 3])
def test_max_pooling(size: tuple[int, int], k: int) -> None:
    x = RNG.standard_normal((5, 7, *size)).round(1).astype(np.float32)
    x[0, 0, 1, 1] = np.nan
    want, indices = pooled(x, k)
    got, at = operator("max_pool2d_with_indices")(pc.from_numpy(x), k)
    np.testing.assert_array_equal(got.numpy(), want)
    np.testing.assert_array_equal(at.numpy(), indices)
    g = RNG.standard_normal(want.shape).astype(np.float32)
    gx = np.zeros((5, 7, size[0] * size[1]), np.float32)
    np.put_along_axis(gx, indices.reshape(5, 7, -1), g.reshape(5, 7, -1), -1)
    back = pool_backward(pc.from_numpy(g), at, x.shape).numpy()
    np.testing.assert_array_equal(back, gx.reshape(x.shape))


@pytest.mark.parametrize("size", [(4, 4), (24, 24)])
def test_indices_outside_the_image_are_refused(size: tuple[int, int]) -> None:
    g = pc.ones(1, 1, size[0] // 2, size[1] // 2)
    for bad in (size[0] * size[1], -2, 2**40):
        indices = pc.zeros(g.shape, dtype=pc.int64)
        indices[0, 0, -1, -1] = bad
        with pytest.raises(IndexError, match="max_pool2d_backward: `indices`"):
            pool_backward(g, indices, (1, 1, *size))


def test_indices_outside_their_window_are_used() -> None:
    g, indices = pc.ones(1, 1, 4, 4), pc.zeros(1, 1, 4, 4, dtype=pc.int64)
    got = pool_backward(g, indices, (1, 1, 8, 8)).numpy()
    assert got[0, 0, 0, 0] == got.sum() == 16


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_average_pooling(stride: int) -> None:
    x = RNG.standard_normal((3, 4, 31, 29))
    case = Case(3, 4, 31, 29, 0, 3, 3, stride=(stride, stride), padding=(1, 1))
    wide = padded(x, case)
    want = windows(wide, case).mean((-2, -1))
    got = operator("avg_pool2d")(pc.from_numpy(x), 3, stride, 1)
    np.testing.assert_allclose(got.numpy(), want, atol=1e-12)
    ones = windows(padded(np.ones_like(x), case), case).sum((-2, -1))
    got = operator("avg_pool2d")(pc.from_numpy(x), 3, stride, 1, count_include_pad=False)
    np.testing.assert_allclose(got.numpy(), want * 9 / ones, atol=1e-12)


NUMBERS = (-0.25, 0.5, 0.125)
ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": lambda y: np.maximum(y, 0),
    "hardtanh": lambda y: np.clip(y, -0.25, 0.5),
    "leaky_relu": lambda y: np.where(y > 0, y, 0.125 * y),
    "silu": lambda y: y / (1 + np.exp(-y)),
    "hardswish": lambda y: y * np.clip(y + 3, 0, 6) / 6,
}
SELECTED = [
    *CASES,
    Case(1, 8, 230, 256, 80, 1, 1),  # results stored past the caches
    Case(2, 40, 230, 256, 40, 3, 3, padding=(1, 1), groups=40),
]
JOINED = [("off", case) for case in SELECTED]
JOINED += [
    ("F4", case) for case in CASES if case[5:8] == (3, 3, (1, 1)) and case.dilation == (1, 1)
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("winograd", "case"), JOINED)
def test_an_activation_in_the_same_pass(winograd: str, case: Case, dtype: Any) -> None:
    """Each result has the bits of the activation of the convolution, which other tests check."""
    pc.set_winograd(winograd)
    x = pc.from_numpy(RNG.standard_normal((case.n, case.c, case.h, case.w)).astype(dtype))
    w = RNG.standard_normal((case.oc, case.c // case.groups, case.kh, case.kw)).astype(dtype)
    weight, bias = pc.from_numpy(w), pc.from_numpy(RNG.standard_normal(case.oc).astype(dtype))
    rest = (case.stride, case.padding, case.dilation, case.groups)
    for number, (name, activation) in enumerate(ACTIVATIONS.items()):
        shift = bias if number % 2 else None
        result = with_activation(x, weight, shift, *rest, name, *NUMBERS).numpy()
        plain = pc.conv2d(x, weight, shift, *rest).numpy()
        if name in ("relu", "hardtanh", "leaky_relu"):
            np.testing.assert_array_equal(result, activation(plain).astype(dtype))
        else:
            expected = activation(plain.astype(np.float64))
            tiny = 1e-6 if dtype == np.float32 else 1e-14
            np.testing.assert_allclose(result, expected, rtol=tiny, atol=tiny)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "case",
    [
        Case(1, 20, 7, 7, 70, 1, 1),
        Case(2, 24, 5, 7, 160, 1, 1, groups=2),
        Case(1, 400, 13, 13, 300, 1, 1, stride=(2, 2)),
        Case(1, 70, 1, 1, 64, 1, 1),
    ],
)
def test_few_positions_with_kept_weights(case: Case, dtype: Any) -> None:
    """Positions are rows of the product from the call on that keeps the filters: the same bits."""
    numbers = RNG.standard_normal((case.oc, case.c // case.groups, 1, 1)).astype(dtype)
    x = RNG.standard_normal((case.n, case.c, case.h, case.w)).astype(dtype)
    bias = RNG.standard_normal(case.oc).astype(dtype)
    rest = (case.stride, case.padding, case.dilation, case.groups)
    own = pc.from_numpy(numbers).clone()
    for weights in (numbers, numbers[::-1].copy()):
        own.copy_(pc.from_numpy(weights))
        image, shift = pc.from_numpy(x), pc.from_numpy(bias)
        first = pc.conv2d(image, pc.from_numpy(weights), shift, *rest).numpy()
        seen = x[:, :, :: case.stride[0], :: case.stride[1]]
        grouped = seen.reshape(case.n, case.groups, -1, *seen.shape[2:])
        each = weights.reshape(case.groups, -1, grouped.shape[2])
        wanted = np.einsum("nghij,goh->ngoij", grouped, each).reshape(first.shape)
        wanted = wanted + bias[:, None, None]
        np.testing.assert_allclose(first, wanted, atol=1e-3 if dtype == np.float32 else 1e-11)
        for _ in range(3):
            np.testing.assert_array_equal(pc.conv2d(image, own, shift, *rest).numpy(), first)
        relu = with_activation(image, own, shift, *rest, "relu", *NUMBERS).numpy()
        np.testing.assert_array_equal(relu, np.maximum(first, 0))


def test_an_activation_keeps_nan_and_makes_zeros_positive() -> None:
    x = pc.tensor([float("nan"), -0.0, -1.0, 7.0]).view(1, 1, 1, 4).expand(1, 4, 9, 4).contiguous()
    w = pc.eye(4).view(4, 4, 1, 1)
    result = with_activation(x[:, :, :, 1:], w, None, 1, 0, 1, 1, "relu", *NUMBERS).numpy()
    assert not np.signbit(result).any()
    assert (result[..., -1] == 7).all()
    result = with_activation(x, w, None, 1, 0, 1, 1, "hardtanh", 0.0, 6.0, 0.0).numpy()
    assert np.isnan(result[..., 0]).all()
    assert (result[..., -1] == 6).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("activation", ["relu", "hardtanh"])
def test_bounds_of_depthwise_sums(activation: str, stride: int, dtype: Any) -> None:
    """The bits are those of the activation behind the convolution, also of -0, nan and infinity."""
    numbers = RNG.standard_normal((2, 6, 18, 22)).astype(dtype)
    numbers[0, 1], numbers[1, 2, 3:9, 4:8] = -0.0, np.inf
    numbers[0, 3, 5, 6] = np.nan
    filters = RNG.standard_normal((6, 1, 3, 3)).astype(dtype)
    filters[4] = -0.0
    x, w = pc.from_numpy(numbers), pc.from_numpy(filters)
    zeros = np.where(np.arange(6) % 2 == 0, -0.0, 0.0).astype(dtype)
    for bias in (None, pc.from_numpy(zeros), pc.from_numpy(zeros + 0.5)):
        plain = pc.conv2d(x, w, bias, stride, 1, 1, 6)
        expected = pc.relu(plain) if activation == "relu" else hardtanh(plain, *NUMBERS[:2])
        result = with_activation(x, w, bias, stride, 1, 1, 6, activation, *NUMBERS).numpy()
        np.testing.assert_array_equal(result, expected.numpy())
        np.testing.assert_array_equal(np.signbit(result), np.signbit(expected.numpy()))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("channels", [40, 390])
@pytest.mark.parametrize("width", range(9, 26))
def test_positions_that_fill_a_part_of_a_panel(width: int, channels: int, dtype: Any) -> None:
    """The sums have the bits that they have among more positions."""
    x = RNG.standard_normal((1, channels, 9, width)).astype(dtype)
    more = np.concatenate([x, RNG.standard_normal((1, channels, 7, width)).astype(dtype)], 2)
    filters = RNG.standard_normal((50, channels, 1, 1)).astype(dtype)
    w, bias = pc.from_numpy(filters), pc.from_numpy(RNG.standard_normal(50).astype(dtype))
    for call in (pc.conv2d, lambda *rest: with_activation(*rest, "relu", *NUMBERS)):
        result = call(pc.from_numpy(x), w, bias, 1, 0, 1, 1).numpy()
        expected = call(pc.from_numpy(more), w, bias, 1, 0, 1, 1).numpy()[:, :, :9]
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("activation", ["relu", "silu"])
@pytest.mark.parametrize("side", [(130, 144), (129, 145), (14, 14)], ids=str)
@pytest.mark.parametrize("channels", [(9, 30), (40, 29), (400, 30)], ids=str)
def test_results_that_no_cache_keeps(
    channels: tuple[int, int], side: tuple[int, int], activation: str
) -> None:
    """A large batch is computed in another way, with the bits of each of its parts."""
    images = (1 << 22) // (min(channels[1], 30) * side[0] * side[1]) + 2
    x, g = (
        pc.from_numpy(RNG.standard_normal((images, c, *side), dtype=np.float32)) for c in channels
    )
    w = pc.from_numpy(RNG.standard_normal((*channels[::-1], 1, 1), dtype=np.float32))
    bias = pc.from_numpy(RNG.standard_normal(channels[1], dtype=np.float32))
    assert g.nbytes >= 1 << 24
    calls: list[tuple[Any, Callable[[Any], Any]]] = [
        (x, lambda x: pc.conv2d(x, w)),
        (x, lambda x: with_activation(x, w, bias, 1, 0, 1, 1, activation, *NUMBERS)),
        (g, lambda g: pc.conv2d(g, w.transpose(0, 1))),
        (g, lambda g: backward_input(g, w, [len(g), *x.shape[1:]], 1, 0, 1, 1)),
    ]
    for values, call in calls:
        whole = call(values)
        few = max(2, images // 3)
        for i in range(0, images, few):
            assert pc.equal(whole[i : i + few], call(values[i : i + few]))


def test_bits_with_an_activation_do_not_depend_on_threads(by_threads: Any) -> None:
    x, w = pc.randn(3, 24, 30, 33), pc.randn(40, 24, 1, 1)
    result = by_threads(
        lambda: with_activation(x, w, None, 1, 0, 1, 1, "silu", *NUMBERS), (1, 2, 3)
    )
    assert all(pc.equal(each, result[0]) for each in result)
