"""Test data of vision/deformable_convolution: references in NumPy, sample calls, errors."""

import itertools
import math

import numpy as np

from plait_ops.specs.vision.deformable_convolution import (
    deform_conv2d,
    deform_sample,
    deform_scatter,
)


def _hat(at, along):
    """The weight of a pixel at distance `at`, or how it changes with the place."""
    if along:
        return 1.0 if 0 < at <= 1 else -1.0 if -1 < at <= 0 else 0.0
    return max(0.0, 1.0 - abs(at))


def _weights(size, offset, kernel_size, stride, padding, dilation, along_y, along_x):
    """Yield (image, group, element, place of the result, weights of all pixels)."""
    n, _c, h, w = size
    kh, kw = kernel_size
    groups = offset.shape[1] // (2 * kh * kw)
    oh, ow = offset.shape[2:]
    pairs = offset.reshape(n, groups, kh * kw, 2, oh, ow).astype("float64")
    for b, g, k, y, x in itertools.product(*map(range, (n, groups, kh * kw, oh, ow))):
        dy, dx = pairs[b, g, k, :, y, x]
        row = y * stride[0] - padding[0] + k // kw * dilation[0] + dy
        column = x * stride[1] - padding[1] + k % kw * dilation[1] + dx
        rows = np.array([_hat(r - row, along_y) for r in range(h)])
        columns = np.array([_hat(q - column, along_x) for q in range(w)])
        yield b, g, k, y * ow + x, np.outer(rows, columns)


@deform_sample.reference
def _(input, offset, kernel_size, stride, padding, dilation, along_y, along_x):
    n, c = input.shape[:2]
    result = np.zeros((n, c, math.prod(kernel_size), math.prod(offset.shape[2:])), input.dtype)
    split = c // (offset.shape[1] // (2 * math.prod(kernel_size)))
    rest = (kernel_size, stride, padding, dilation, along_y, along_x)
    for b, g, k, at, weights in _weights(input.shape, offset, *rest):
        own = slice(g * split, (g + 1) * split)
        result[b, own, k, at] = (input[b, own] * weights).sum((1, 2))
    return result


@deform_scatter.reference
def _(grad, offset, size, kernel_size, stride, padding, dilation, along_y, along_x):
    result = np.zeros(size, grad.dtype)
    split = size[1] // (offset.shape[1] // (2 * math.prod(kernel_size)))
    rest = (kernel_size, stride, padding, dilation, along_y, along_x)
    for b, g, k, at, weights in _weights(size, offset, *rest):
        own = slice(g * split, (g + 1) * split)
        result[b, own] += (grad[b, own, k, at][:, None, None] * weights).astype(grad.dtype)
    return result


@deform_conv2d.reference
def _(
    input,
    weight,
    offset,
    mask=None,
    bias=None,
    stride=(1, 1),
    padding=(0, 0),
    dilation=(1, 1),
    groups=1,
    offset_groups=1,
):
    n, c = input.shape[:2]
    o, per, kh, kw = weight.shape
    oh, ow = offset.shape[2:]
    result = np.zeros((n, o, oh * ow))
    rest = ((kh, kw), stride, padding, dilation, False, False)
    for b, g, k, at, weights in _weights(input.shape, offset, *rest):
        for ch in range(g * c // offset_groups, (g + 1) * c // offset_groups):
            seen = (input[b, ch] * weights).sum()
            if mask is not None:
                seen *= mask[b, g * kh * kw + k].reshape(-1)[at]
            group = ch // per
            own = slice(group * o // groups, (group + 1) * o // groups)
            result[b, own, at] += seen * weight[own, ch % per, k // kw, k % kw]
    if bias is not None:
        result += bias[:, None]
    return result.reshape(n, o, oh, ow).astype(input.dtype)


def _offsets(s, *shape, dtype="float32"):
    """Offsets that lead to no whole row or column, where the derivative has two sides."""
    return (np.floor(s.array(*shape)) + s.array(*shape, low=0.2, high=0.8)).astype(dtype)


@deform_conv2d.samples
def _(s):
    yield s(s.array(1, 1, 3, 3), s.array(1, 1, 2, 2), _offsets(s, 1, 8, 2, 2))
    yield s(
        s.array(1, 2, 2, 2), s.array(2, 1, 1, 2), _offsets(s, 1, 8, 2, 1), s.array(1, 4, 2, 1),
        s.array(2), groups=2, offset_groups=2,
    )  # fmt: skip
    yield s(
        s.array(2, 4, 6, 5), s.array(6, 2, 3, 2), _offsets(s, 2, 24, 3, 4), s.array(2, 12, 3, 4),
        s.array(6), (2, 1), (1, 0), 1, 2, 2,
    )  # fmt: skip
    yield s(
        s.array(1, 2, 7, 7, dtype="float64"), s.array(3, 2, 3, 3, dtype="float64"),
        _offsets(s, 1, 18, 3, 3, dtype="float64"), dilation=2,
    )  # fmt: skip
    whole = np.round(s.array(1, 8, 2, 2)).astype("float32")
    yield s(s.array(1, 1, 3, 3), s.array(1, 1, 2, 2), whole).without_gradient()
    yield s(s.strided(2, 2, 3, 3), s.array(1, 2, 1, 1), _offsets(s, 2, 2, 3, 3))
    yield s(s.array(0, 1, 3, 3), s.array(1, 1, 2, 2), s.array(0, 8, 2, 2))


@deform_sample.samples
def _(s):
    rest = ((1, 2), (1, 1), (0, 0), (1, 1))
    for along in ((False, False), (True, False), (False, True), (True, True)):
        yield s(s.array(1, 2, 3, 3), _offsets(s, 1, 8, 3, 2), *rest, *along)
    rest = ((3, 2), (2, 1), (1, 2), (1, 2))
    yield s(s.array(2, 20, 6, 5), _offsets(s, 2, 12, 3, 7), *rest, False, False)


@deform_scatter.samples
def _(s):
    rest = ((1, 3, 3, 3), (2, 2), (1, 1), (0, 0), (1, 1))
    for along in ((False, False), (True, False), (False, True), (True, True)):
        yield s(s.array(1, 3, 4, 4), _offsets(s, 1, 8, 2, 2), *rest, *along)
    rest = ((2, 20, 6, 5), (3, 2), (2, 1), (1, 2), (1, 2))
    yield s(s.array(2, 20, 6, 21), _offsets(s, 2, 12, 3, 7), *rest, False, False)


deform_conv2d.error(
    "ShapeError",
    lambda s: s(s.array(1, 1, 3, 3), s.array(1, 1, 2, 2), s.array(1, 4, 2, 2)),
    contains=["deform_conv2d", "`offset`", "(1, 8, 2, 2)", "(1, 4, 2, 2)"],
)
deform_conv2d.error(
    "ShapeError",
    lambda s: s(s.array(1, 1, 3, 3), s.array(1, 1, 2, 2), s.array(1, 8, 2, 2), s.array(1, 8, 2, 2)),
    contains=["deform_conv2d", "`mask`", "(1, 4, 2, 2)", "(1, 8, 2, 2)"],
)
deform_conv2d.error(
    "ShapeError",
    lambda s: s(s.array(1, 3, 3, 3), s.array(1, 1, 2, 2), s.array(1, 8, 2, 2)),
    contains=["deform_conv2d", "`weight`", "(1, 1, 2, 2)", "(1, 3, 3, 3)"],
)
deform_conv2d.error(
    "ShapeError",
    lambda s: s(s.array(1, 3, 3, 3), s.array(1, 3, 2, 2), s.array(1, 16, 2, 2), offset_groups=2),
    contains=["deform_conv2d", "2 groups", "3 channels"],
)
deform_conv2d.error(
    "ValueError",
    lambda s: s(s.array(1, 1, 3, 3), s.array(1, 1, 2, 2), s.array(1, 8, 2, 2), offset_groups=0),
    contains=["deform_conv2d", "offset_groups", "0"],
)
deform_conv2d.error(
    "DTypeError",
    lambda s: s(s.array(1, 1, 3, 3), s.array(1, 1, 2, 2, dtype="float64"), s.array(1, 8, 2, 2)),
    contains=["deform_conv2d", "float32", "float64"],
)
deform_sample.error(
    "ShapeError",
    lambda s: s(s.array(1, 2, 3, 3), s.array(1, 6, 2, 2), 2, 1, 0, 1, False, False),
    contains=["deform_sample", "`offset`", "a multiple of 8", "(1, 6, 2, 2)"],
)
deform_sample.error(
    "ValueError",
    lambda s: s(s.array(1, 2, 3, 3), s.array(1, 8, 2, 2), 2, 0, 0, 1, False, False),
    contains=["deform_sample", "stride", "0"],
)
deform_scatter.error(
    "ShapeError",
    lambda s: s(s.array(1, 2, 4, 1), s.array(1, 8, 2, 2), (1, 2, 3, 3), 2, 1, 0, 1, False, False),
    contains=["deform_scatter", "`grad`", "(1, 2, 4, 4)", "(1, 2, 4, 1)"],
)
