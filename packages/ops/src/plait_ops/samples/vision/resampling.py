"""Test data of vision/resampling: references in NumPy, sample calls, errors."""

import itertools
import math

import numpy as np

from plait_ops.specs.vision.resampling import resample, resample_backward


def _polynomial(x, mode, a):
    x = abs(x)
    if mode == "linear":
        return max(1 - x, 0.0)
    if mode == "lanczos":
        return np.sinc(x) * np.sinc(x / 3) if x < 3 else 0.0
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0


def _matrix(old, new, step, mode, align_corners, antialias, dtype):
    """The weight of each old element for each new one."""
    result = np.zeros((new, old))
    if mode.startswith("nearest"):
        number = np.float64 if dtype == np.float64 else np.float32
        for i in range(new):
            at = number(i + 0.5 if mode == "nearest-exact" else i) * number(step)
            result[i, min(int(at), old - 1)] = 1
        return result
    if align_corners:
        step = (old - 1) / (new - 1) if new > 1 else 0.0
    wide = max(step, 1.0) if antialias else 1.0
    reach = wide * {"linear": 1, "cubic": 2, "lanczos": 3}[mode]
    for i in range(new):
        place = step * (i + 0.5) - 0.5 if antialias or not align_corners else step * i
        ends = math.floor(place + 1 - reach), math.floor(place + 1 + reach)
        for j in range(max(ends[0], 0), min(ends[1], old)) if antialias else range(*ends):
            weight = _polynomial((j - place) / wide, mode, -0.5 if antialias else -0.75)
            result[i, min(max(j, 0), old - 1)] += weight
        result[i] /= result[i].sum()
    return result


def _whole(weights):
    """Weights as integers of 15 bits, and the bits behind the point."""
    bits = 0
    while bits < 22 and int(0.5 + weights.max() * 2 ** (bits + 1)) < 2**15:
        bits += 1
    return np.trunc(weights * 2**bits + np.copysign(0.5, weights)), bits


@resample.reference
def _(input, dim, size, step, mode, align_corners=False, antialias=False):
    weights = _matrix(input.shape[dim], size, step, mode, align_corners, antialias, input.dtype)
    if mode.startswith("nearest"):
        return np.take(input, weights.argmax(1), dim)
    moved = np.moveaxis(input, dim, -1)
    if input.dtype == np.uint8:
        whole, bits = _whole(weights)
        moved = np.floor((moved @ whole.T + (1 << bits >> 1)) / 2**bits).clip(0, 255)
    else:
        moved = moved @ weights.T
    return np.moveaxis(moved, -1, dim).astype(input.dtype)


@resample_backward.reference
def _(grad, dim, size, step, mode, align_corners, antialias):
    weights = _matrix(size, grad.shape[dim], step, mode, align_corners, antialias, grad.dtype)
    return np.moveaxis(np.moveaxis(grad, dim, -1) @ weights, -1, dim).astype(grad.dtype)


# ---- calls ---------------------------------------------------------------------------------------
_MODES = ("nearest", "nearest-exact", "linear", "cubic", "lanczos")


def _bytes(s, *shape):
    return s.indices(256, *shape).astype("uint8")


@resample.samples
def _(s):
    for mode, (new, step) in itertools.product(_MODES, ((3, 5 / 3), (8, 5 / 8), (4, 1.1), (1, 5))):
        yield s(s.array(2, 5), 1, new, step, mode)
    for mode, antialias, align in itertools.product(_MODES[2:], (False, True), (False, True)):
        yield s(s.array(2, 7, 3), 1, 4, 7 / 4, mode, align, antialias)
        yield s(s.array(1, 2, 11, 9, dtype="float64"), 2, 3, 11 / 3, mode, align, antialias)
        yield s(s.array(3, 2, dtype="complex64"), -1, 5, 0.4, mode, align, antialias)
        yield s(s.array(2, 4, dtype="float16"), 1, 9, 4 / 9, mode, align, antialias)
        yield s(s.array(2, 6, 19, dtype="float16"), 1, 4, 1.5, mode, align, antialias)
        yield s(_bytes(s, 21, 13), 1, 6, 13 / 6, mode, align, antialias)
        yield s(_bytes(s, 2, 5, 37), 1, 9, 5 / 9, mode, align, antialias)
        yield s(_bytes(s, 2, 9, 3), 1, 4, 9 / 4, mode, align, antialias)
    for mode in _MODES:
        yield s(s.strided(2, 4, 5), 1, 7, 4 / 7, mode)
        yield s(s.array(2, 5, 6, 3).transpose(0, 3, 1, 2), 3, 4, 1.5, mode)
        yield s(s.array(0, 4), 1, 2, 2.0, mode)
    yield s(s.array(2, 3, dtype="int64"), 0, 5, 0.4, "nearest")
    yield s(s.array(3, 4) > 0, 1, 3, 4 / 3, "nearest-exact")
    yield s(_bytes(s, 2, 5, 3), 1, 3, 5 / 3, "nearest")


@resample_backward.samples
def _(s):
    for mode, antialias in itertools.product(_MODES, (False, True)):
        if antialias and mode.startswith("nearest"):
            continue
        yield s(s.array(2, 3, 2), 1, 7, 7 / 3, mode, False, antialias)
        yield s(s.array(2, 9), 1, 4, 4 / 9, mode, False, antialias)
        yield s(s.array(4, 2, 10), 0, 6, 1.5, mode, False, antialias)
        yield s(s.array(3, 5, dtype="complex64"), 1, 2, 0.4, mode, False, antialias)
    yield s(s.array(2, 4), 1, 7, 1.0, "cubic", True, False)
    yield s(s.array(0, 4), 1, 2, 0.5, "linear", False, False)


# ---- errors --------------------------------------------------------------------------------------
for each, more in ((resample, ()), (resample_backward, (False, False))):
    each.error(
        "IndexError",
        lambda s, more=more: s(s.array(2, 3), 2, 4, 0.5, "linear", *more),
        contains=["`dim`", "(2, 3)", "2"],
    )
    each.error(
        "ShapeError",
        lambda s, more=more: s(s.array(2, 0), 1, 4, 0.5, "linear", *more),
        contains=["`dim` 1", "(2, 0)"],
    )
    each.error(
        "ValueError",
        lambda s, more=more: s(s.array(2, 3), 1, 0, 0.5, "linear", *more),
        contains=["`size`", "0"],
    )
    each.error(
        "ValueError",
        lambda s, more=more: s(s.array(2, 3), 1, 4, math.nan, "linear", *more),
        contains=["`step`", "nan"],
    )
    each.error(
        "ValueError",
        lambda s, more=more: s(s.array(2, 3), 1, 4, 0.5, "area", *more),
        contains=["`mode`", "area"],
    )
resample.error(
    "DTypeError",
    lambda s: s(s.array(2, 3, dtype="int64"), 1, 4, 0.5, "linear"),
    contains=["`input`", "int64"],
)
