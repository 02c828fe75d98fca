"""Convolutions by Winograd's algorithm: sizes, errors, bits, and the choice of the algorithm."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator

RNG = np.random.default_rng(11)
BY_INPUT = operator("conv2d_backward_input")
BY_WEIGHT = operator("conv2d_backward_weight")
MODES = ["F2", "F4", "F5", "F6"]


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    threads = pc.get_num_threads()
    yield
    pc.set_winograd("auto")
    pc.set_batch_invariant(False)
    pc.set_num_threads(threads)


class Case(NamedTuple):
    """Images, channels, height, width, filters, padding, groups, window."""

    n: int
    c: int
    h: int
    w: int
    k: int
    p: tuple[int, int] = (1, 1)
    groups: int = 1
    r: int = 3


CASES = [
    Case(1, 1, 3, 3, 1, (0, 0)),  # one result
    Case(1, 1, 1, 1, 1),  # an image of one element
    Case(2, 3, 1, 9, 5),
    Case(2, 3, 9, 1, 5, (2, 3)),
    Case(5, 17, 7, 7, 33),  # tiles that reach over the border, panels that are not full
    Case(2, 16, 13, 14, 16, (0, 2)),
    Case(2, 5, 8, 17, 7, (3, 3)),  # more padding than the window has beside its centre
    Case(3, 33, 10, 11, 47, (2, 1)),
    Case(9, 20, 31, 29, 18),  # several bands
    Case(1, 64, 40, 52, 64),
    Case(1, 130, 12, 12, 260),  # blocks of filters; sums in several pieces
    Case(1, 24, 13, 15, 40, (1, 0), 2),  # groups
    Case(40, 64, 12, 12, 64),  # parts of the tiles
    Case(1, 1, 1, 2, 1, (2, 2), r=5),
    Case(5, 17, 7, 9, 33, (2, 2), r=5),
    Case(2, 20, 27, 14, 18, (0, 5), 2, 5),  # more padding than the window has beside its centre
    Case(9, 64, 27, 27, 40, (2, 2), r=5),
    Case(1, 130, 11, 12, 260, (1, 3), r=5),
]


def reference(x: Any, w: Any, g: Any, case: Case) -> tuple[Any, Any, Any]:
    """Result and both derivatives in float64; without a gradient the result alone."""
    (ph, pw), gc, go = case.p, case.c // case.groups, case.k // case.groups
    wide = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    w = w.astype(np.float64)
    gx, gw, y = np.zeros_like(wide), np.zeros_like(w), []
    for i in range(case.groups):
        channels, filters = slice(i * gc, (i + 1) * gc), slice(i * go, (i + 1) * go)
        view = np.lib.stride_tricks.sliding_window_view(wide[:, channels], (case.r,) * 2, (2, 3))
        y.append(np.einsum("nchwij,ocij->nohw", view, w[filters], optimize=True))
        if g is None:
            continue
        own = g[:, filters].astype(np.float64)
        gw[filters] = np.einsum("nohw,nchwij->ocij", own, view, optimize=True)
        high, broad = own.shape[2:]
        for a in range(case.r):
            for b in range(case.r):
                part = np.einsum("nohw,oc->nchw", own, w[filters, :, a, b], optimize=True)
                gx[:, channels, a : a + high, b : b + broad] += part
    return np.concatenate(y, 1), gx[:, :, ph : ph + case.h, pw : pw + case.w], gw


def draw(*shape: int, dtype: Any = np.float32) -> Any:
    return RNG.standard_normal(shape).astype(dtype)


def error(got: Any, want: Any) -> float:
    """The largest error over the largest result."""
    return float(np.abs(got.numpy() - want).max() / (np.abs(want).max() + 1e-30))


def passes(x: Any, w: Any, g: Any, bias: Any, case: Case) -> Iterator[Any]:
    """The result, with and without bias, and both derivatives."""
    rest = ((1, 1), case.p, (1, 1), case.groups)
    yield pc.conv2d(x, w, bias, *rest)
    yield pc.conv2d(x, w, None, *rest)
    yield BY_INPUT(g, w, x.shape, *rest)
    yield BY_WEIGHT(g, x, w.shape, *rest)


@functools.lru_cache(1)  # NumPy takes ten times as long as a mode, and modes are next to each other
def problem(case: Case, dtype: Any) -> tuple[list[Any], list[Any]]:
    """Image, weight, gradient and bias; what `passes` must give for them."""
    x, bias = draw(case.n, case.c, case.h, case.w, dtype=dtype), draw(case.k, dtype=dtype)
    w = draw(case.k, case.c // case.groups, case.r, case.r, dtype=dtype)
    high, broad = (
        size + 2 * p - case.r + 1 for size, p in zip((case.h, case.w), case.p, strict=True)
    )
    g = draw(case.n, case.k, high, broad, dtype=dtype)
    y, gx, gw = reference(x, w, g, case)
    return [x, w, g, bias], [y + bias[:, None, None], y, gx, gw]


@pytest.mark.parametrize("mode", ["auto", *MODES])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", CASES)
def test_all_sizes(case: Case, dtype: Any, mode: str) -> None:
    pc.set_winograd(mode)
    arrays, expected = problem(case, dtype)
    limit = 3e-5 if dtype == np.float32 else 1e-13
    for got, want in zip(passes(*map(pc.from_numpy, arrays), case), expected, strict=True):
        assert error(got, want) < limit


@pytest.mark.parametrize("mode", MODES)
def test_strided_inputs(mode: str) -> None:
    pc.set_winograd(mode)
    case = Case(2, 18, 9, 11, 20)
    x = draw(2, 9, 11, 18).transpose(0, 3, 1, 2)
    w, g = draw(3, 3, 18, 20).transpose(3, 2, 0, 1), draw(2, 40, 9, 22)[:, ::2, :, ::2]
    y, gx, gw = reference(x, w, g, case)
    bias = draw(60)[::3]
    tensors = [pc.from_numpy(a) for a in (x, w, g, bias)]
    expected = (y + bias[:, None, None], y, gx, gw)
    for got, want in zip(passes(*tensors, case), expected, strict=True):
        assert error(got, want) < 3e-5


@pytest.mark.parametrize("mode", MODES)
def test_no_images(mode: str) -> None:
    pc.set_winograd(mode)
    x, w = pc.zeros(0, 20, 8, 8), pc.ones(24, 20, 3, 3)
    rest = ((1, 1), (1, 1), (1, 1), 1)
    assert pc.conv2d(x, w, None, *rest).shape == (0, 24, 8, 8)
    g = pc.zeros(0, 24, 8, 8)
    assert BY_INPUT(g, w, x.shape, *rest).shape == x.shape
    assert not BY_WEIGHT(g, x, w.shape, *rest).numpy().any()


LAYERS = [
    Case(2, 64, 28, 28, 64),
    Case(1, 256, 14, 14, 128),
    Case(2, 128, 7, 7, 256),
    Case(4, 64, 27, 27, 192, (2, 2), r=5),
    Case(4, 192, 14, 14, 64, (2, 2), r=5),
]


@pytest.mark.parametrize("case", LAYERS)
@pytest.mark.parametrize("positive", [True, False])
def test_errors_are_near_those_of_the_direct_algorithm(case: Case, positive: bool) -> None:
    """The error bound of docs/guides/performance.md; 8 times of it for nonnegative numbers.
    Normal ones have 60 times, and twice as much for the 25 elements of larger windows."""

    def some(*shape: int) -> Any:
        return RNG.random(shape, np.float32) if positive else draw(*shape)

    x, w = some(case.n, case.c, case.h, case.w), some(case.k, case.c, case.r, case.r)
    g = some(case.n, case.k, case.h, case.w)
    y, gx, gw = reference(x, w, g, case)
    results: dict[str, list[float]] = {}
    for mode in ("off", "auto"):
        pc.set_winograd(mode)
        result = passes(*(pc.from_numpy(a) for a in (x, w, g)), None, case)
        results[mode] = [error(a, b) for a, b in zip(result, (y, y, gx, gw), strict=True)]
    limit = 8 if positive else 60 if case.r == 3 else 120
    for direct, ours in zip(results["off"], results["auto"], strict=True):
        assert ours <= limit * direct


@pytest.mark.parametrize("mode", ["auto", *MODES])
@pytest.mark.parametrize("case", [CASES[i] for i in (4, 8, 10, 12, 16, 17)])
def test_bits_do_not_depend_on_threads(case: Case, mode: str) -> None:
    pc.set_winograd(mode)
    x, w = (
        pc.from_numpy(a)
        for a in (draw(case.n, case.c, case.h, case.w), draw(case.k, case.c, case.r, case.r))
    )
    g = pc.from_numpy(draw(*pc.conv2d(x, w, None, 1, case.p).shape))
    results = set()
    for threads in (1, 2, 3, 8):
        pc.set_num_threads(threads)
        results.add(b"".join(a.numpy().tobytes() for a in passes(x, w, g, None, case)))
    assert len(results) == 1


@pytest.mark.parametrize("mode", ["auto", *MODES])
@pytest.mark.parametrize("size", [(64, 14, 64), (16, 40, 48), (128, 7, 256)])
def test_images_do_not_depend_on_the_batch_in_the_mode(size: Any, mode: str) -> None:
    pc.set_winograd(mode)
    pc.set_batch_invariant(True)
    c, h, k = size
    x, w = pc.from_numpy(draw(9, c, h, h)), pc.from_numpy(draw(k, c, 3, 3))
    g = pc.from_numpy(draw(9, k, h, h))
    rest = ((1, 1), (1, 1), (1, 1), 1)
    y, gx = pc.conv2d(x, w, None, *rest), BY_INPUT(g, w, x.shape, *rest)
    for n in (1, 2, 5):
        assert pc.equal(pc.conv2d(x[:n], w, None, *rest), y[:n])
        assert pc.equal(BY_INPUT(g[:n], w, (n, c, h, h), *rest), gx[:n])


SPREADS = [
    # images, channels, height, width, filters, window, stride, dilation, groups
    (2, 16, 14, 13, 16, 3, 1, 1, 1), (1, 64, 14, 14, 64, 3, 1, 1, 1),
    (1, 16, 10, 10, 32, 5, 1, 1, 1), (9, 4, 12, 12, 8, 3, 1, 1, 1), (2, 16, 9, 9, 16, 3, 1, 2, 1),
    (2, 16, 9, 9, 16, 3, 2, 1, 1),
    (2, 16, 9, 9, 16, 3, 1, 1, 16), (2, 16, 9, 9, 32, 3, 1, 1, 2), (2, 16, 8, 8, 16, 1, 1, 1, 1),
    (9, 3, 16, 16, 4, 7, 2, 1, 1),
]  # fmt: skip


def directly(function: Any, *arguments: Any) -> Any:
    mode = pc.get_winograd()
    pc.set_winograd("off")
    result = function(*arguments)
    pc.set_winograd(mode)
    return result


def check_spread(function: Any, one: Any, other: Any, reaches: Any) -> None:
    """Plant what is not finite into `one`: results that it does not reach are as without it.

    `reaches(one)` is not 0 where results depend on elements of `one` that are not 0.
    """
    before = function(one, other)
    middle = tuple(n // 2 for n in one.shape)
    for place in (middle, (0,) * 4, tuple(n - 1 for n in one.shape), (*middle[:3], 0)):
        single = pc.zeros_like(one)
        single[place] = 1
        reached = directly(reaches, single) != 0
        for value in (np.inf, -np.inf, np.nan):
            planted = one.clone()
            planted[place] = value
            after = function(planted, other)
            assert not after[reached].isfinite().any()
            assert pc.allclose(after[~reached], before[~reached], 1e-3, 1e-3)
            assert (after != after).sum() <= (
                directly(function, planted, other) != directly(function, planted, other)
            ).sum()


@pytest.mark.parametrize("mode", ["auto", "off", *MODES])
def test_what_is_not_finite_reaches_no_other_results(mode: str) -> None:
    pc.set_winograd(mode)
    for n, c, h, w, k, window, stride, dilation, groups in SPREADS:
        options = [stride] * 2, [window // 2 * dilation] * 2, [dilation] * 2, groups
        x, filters = pc.rand(n, c, h, w) + 0.1, pc.rand(k, c // groups, window, window) + 0.1
        y = pc.conv2d(x, filters, None, *options)
        g = pc.rand(*y.shape) + 0.1
        size, filters_size = list(x.shape), list(filters.shape)
        ones_f, ones_g = pc.ones_like(filters), pc.ones_like(g)
        check_spread(
            lambda x, f, o=options: pc.conv2d(x, f, None, *o), x, filters,
            lambda x, o=options, f=ones_f: pc.conv2d(x, f, None, *o),
        )  # fmt: skip
        check_spread(
            lambda g, f, o=options, s=size: BY_INPUT(g, f, s, *o), g, filters,
            lambda g, o=options, s=size, f=ones_f: BY_INPUT(g, f, s, *o),
        )  # fmt: skip
        check_spread(
            lambda x, g, o=options, s=filters_size: BY_WEIGHT(g, x, s, *o), x, g,
            lambda x, o=options, s=filters_size, g=ones_g: BY_WEIGHT(g, x, s, *o),
        )  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_an_activation_hides_nothing_that_is_not_finite(mode: str) -> None:
    """A tile with results of minus infinity must not become zeros."""
    x, w = pc.rand(1, 16, 12, 12) + 0.1, pc.rand(16, 16, 3, 3) + 0.1
    joined = operator("conv2d_activation")
    for value in (np.inf, -np.inf, np.nan):
        x[0, 3, 5, 5] = value
        options = (x, w, None, [1, 1], [1, 1], [1, 1], 1, "relu", 0.0, 1.0, 0.01)
        expected = directly(joined, *options)
        pc.set_winograd(mode)
        assert pc.allclose(joined(*options), expected, 1e-3, 1e-3, equal_nan=True)


def test_the_switch() -> None:
    x, w = pc.from_numpy(draw(2, 64, 20, 20)), pc.from_numpy(draw(64, 64, 3, 3))
    results = {}
    for mode in ("off", "auto", *MODES):
        pc.set_winograd(mode)
        assert pc.get_winograd() == mode
        results[mode] = pc.conv2d(x, w).numpy().tobytes()
    assert len({results[mode] for mode in ("off", *MODES)}) == 5
    assert results["auto"] in (results["F2"], results["F4"], results["F5"])
    x, w = x.to(pc.float64), w.to(pc.float64)
    pc.set_winograd("auto")
    automatic = pc.conv2d(x, w)
    pc.set_winograd("off")
    assert pc.equal(automatic, pc.conv2d(x, w))


def test_the_switch_keeps_other_settings() -> None:
    pc.set_batch_invariant(True)
    pc.set_winograd("F6")
    assert pc.is_batch_invariant()
    pc.set_batch_invariant(False)
    assert pc.get_winograd() == "F6"


def test_the_switch_holds_for_all_threads() -> None:
    pc.set_winograd("F2")
    seen: list[str] = []
    thread = threading.Thread(target=lambda: seen.append(pc.get_winograd()))
    thread.start()
    thread.join()
    assert seen == ["F2"]


@pytest.mark.parametrize("mode", ["", "on", "f4", "F3", "F8"])
def test_modes_that_mean_nothing_are_refused(mode: str) -> None:
    with pytest.raises(ValueError, match=f"set_winograd: `mode` must be .*; got '{mode}'"):
        pc.set_winograd(mode)
    assert pc.get_winograd() == "auto"


MEMORY = """
import resource
import plait_core as pc
from plait_abi import operator

for mode in ("F4", "off"):
    pc.set_winograd(mode)
    pc.conv2d(pc.ones(1, 16, 8, 8), pc.ones(16, 16, 3, 3))
pc.set_winograd("F4")
x, w, g = pc.ones(1, 2048, 4, 4), pc.ones(2048, 2048, 3, 3), pc.ones(1, 2048, 4, 4)
wide, few = pc.ones(1, 16, 512, 4096), pc.ones(16, 16, 3, 3)
limit = int(open("/proc/self/statm").read().split()[0]) * 4096 + ROOM
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
rest = ((1, 1), (1, 1), (1, 1), 1)
calls = {
    "forward": lambda: pc.conv2d(x, w, None, *rest),
    "input": lambda: operator("conv2d_backward_input")(g, w, x.shape, *rest),
    "weight": lambda: operator("conv2d_backward_weight")(wide, wide, few.shape, *rest),
}
try:
    calls[NAME]()
except MemoryError as error:
    print(error)
"""


@pytest.mark.parametrize("name", ["forward", "input", "weight"])
def test_too_little_memory_is_an_error(name: str) -> None:
    code = f"NAME, ROOM = {name!r}, 2_000_000\n" + MEMORY
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "no memory for a workspace" in done.stdout


@pytest.mark.repeats
@pytest.mark.skipif("PLAIT_CPU" in os.environ, reason="runs this file for another level")
def test_without_wide_registers() -> None:  # test_kernels_levels.py runs the baseline
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(
        command,
        env={**os.environ, "PLAIT_CPU": "avx2"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
