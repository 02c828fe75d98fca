"""Test data of vision/region_pooling: references in NumPy, sample calls, errors."""

import itertools
import math

import numpy as np

from plait_ops.specs.vision.region_pooling import (
    ps_roi_align,
    ps_roi_align_backward,
    ps_roi_pool,
    ps_roi_pool_backward,
    roi_align,
    roi_align_backward,
    roi_pool,
    roi_pool_backward,
)


# ---- samples between pixels: the bins are a product of the image with a matrix for each side -----
def _weights(start, length, bins, ratio, pixels):
    """The sum of the weights of each pixel for each bin, (bins, pixels), and the samples of one."""
    grid = ratio if ratio > 0 else math.ceil(length / bins)
    result = np.zeros((bins, pixels))
    for b, i in itertools.product(range(bins), range(max(grid, 0))):
        y = start + (b + (i + 0.5) / grid) * length / bins
        if not -1 <= y <= pixels:
            continue
        y = min(max(y, 0), pixels - 1)
        low = min(int(y), pixels - 1)
        result[b, low] += low + 1 - y
        if low + 1 < pixels:
            result[b, low + 1] += y - low
    return result, grid


def _tables(roi, size, scale, bins, ratio, aligned, least):
    """The weights of rows and columns, divided by the number of samples."""
    x, y, right, bottom = (float(each) * scale - 0.5 * aligned for each in roi[1:])
    width, height = right - x, bottom - y
    if not aligned:
        width, height = max(width, 1.0), max(height, 1.0)
    rows, n = _weights(y, height, bins[0], ratio, size[2])
    columns, m = _weights(x, width, bins[1], ratio, size[3])
    count = max(n * m, 1) if least else n * m
    with np.errstate(invalid="ignore"):
        return rows / count if count else rows * np.nan, columns


@roi_align.reference
def _(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio=-1, aligned=False):
    bins = (pooled_height, pooled_width)
    result = np.zeros((len(rois), input.shape[1], *bins), input.dtype)
    for r, roi in enumerate(rois):
        rows, columns = _tables(
            roi, input.shape, spatial_scale, bins, sampling_ratio, aligned, True
        )
        result[r] = rows @ input[int(roi[0])] @ columns.T
    return result


@roi_align_backward.reference
def _(grad, rois, size, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned):
    result = np.zeros(size, grad.dtype)
    for g, roi in zip(grad, rois, strict=True):
        bins = (pooled_height, pooled_width)
        rows, columns = _tables(roi, size, spatial_scale, bins, sampling_ratio, aligned, True)
        result[int(roi[0])] += (rows.T @ g @ columns).astype(grad.dtype)
    return result


def _by_bin(images, bins):
    """Channels as (channels of the result, bins high, bins wide)."""
    return images.reshape(-1, *bins, *images.shape[-2:])


@ps_roi_align.reference
def _(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio=-1):
    bins = (pooled_height, pooled_width)
    result = np.zeros((len(rois), input.shape[1] // math.prod(bins), *bins), input.dtype)
    for r, roi in enumerate(rois):
        rows, columns = _tables(roi, input.shape, spatial_scale, bins, sampling_ratio, True, False)
        result[r] = np.einsum("iy,oijyx,jx->oij", rows, _by_bin(input[int(roi[0])], bins), columns)
    return result


@ps_roi_align_backward.reference
def _(grad, rois, size, spatial_scale, pooled_height, pooled_width, sampling_ratio):
    result = np.zeros(size, grad.dtype)
    for g, roi in zip(grad, rois, strict=True):
        bins = (pooled_height, pooled_width)
        rows, columns = _tables(roi, size, spatial_scale, bins, sampling_ratio, True, False)
        part = np.einsum("iy,oij,jx->oijyx", np.nan_to_num(rows), g, columns)
        result[int(roi[0])] += part.reshape(size[1:]).astype(grad.dtype)
    return result


# ---- whole pixels --------------------------------------------------------------------------------
def _round(x):
    return math.floor(abs(x) + 0.5) * (1 if x >= 0 else -1)


def _spans(low, high, more, bins, end):
    """The pixels of each bin, from first to last; sizes of bins are float32's of the operator."""
    first = _round(low)
    size = max(_round(high) - first + more, 1) / bins
    for b in range(bins):
        ends = (math.floor(b * size) + first, math.ceil((b + 1) * size) + first)
        yield slice(*(min(max(each, 0), end) for each in ends))


def _windows(roi, scale, bins, more, size, less):
    x1, y1, x2, y2 = (float(each) * scale for each in roi[1:])
    rows = _spans(y1, y2, more, bins[0], size[2] - less)
    columns = list(_spans(x1, x2, more, bins[1], size[3] - less))
    for (i, down), (j, across) in itertools.product(enumerate(rows), enumerate(columns)):
        if down.stop > down.start and across.stop > across.start:
            yield i, j, down, across


@roi_pool.reference
def _(input, rois, spatial_scale, pooled_height, pooled_width):
    bins = (pooled_height, pooled_width)
    result = np.zeros((len(rois), input.shape[1], *bins), input.dtype)
    where = np.full(result.shape, -1, "int32")
    places = np.arange(input.shape[2] * input.shape[3]).reshape(input.shape[2:])
    for r, roi in enumerate(rois):
        for i, j, down, across in _windows(roi, spatial_scale, bins, 1, input.shape, 0):
            seen = input[int(roi[0]), :, down, across].reshape(input.shape[1], -1)
            result[r, :, i, j] = seen.max(1)
            where[r, :, i, j] = places[down, across].reshape(-1)[seen.argmax(1)]
    return result, where


@roi_pool_backward.reference
def _(grad, rois, argmax, size):
    result = np.zeros(size, grad.dtype)
    for g, roi, at in zip(grad, rois, argmax, strict=True):
        for plane, values, each in zip(result[int(roi[0])], g, at, strict=True):
            np.add.at(plane.reshape(-1), each[each >= 0], values[each >= 0])
    return result


@ps_roi_pool.reference
def _(input, rois, spatial_scale, pooled_height, pooled_width):
    bins = (pooled_height, pooled_width)
    result = np.zeros((len(rois), input.shape[1] // math.prod(bins), *bins), input.dtype)
    for r, roi in enumerate(rois):
        images = _by_bin(input[int(roi[0])], bins)
        for i, j, down, across in _windows(roi, spatial_scale, bins, 0, input.shape, 1):
            result[r, :, i, j] = images[:, i, j, down, across].mean((1, 2))
    return result


@ps_roi_pool_backward.reference
def _(grad, rois, size, spatial_scale, pooled_height, pooled_width):
    result, bins = np.zeros(size, grad.dtype), (pooled_height, pooled_width)
    for g, roi in zip(grad, rois, strict=True):
        images = _by_bin(result[int(roi[0])], bins)
        for i, j, down, across in _windows(roi, spatial_scale, bins, 0, size, 1):
            area = (down.stop - down.start) * (across.stop - across.start)
            images[:, i, j, down, across] += g[:, i, j, None, None] / area
    return result


# ---- calls ---------------------------------------------------------------------------------------
def _rois(s, images, n, side=6.0, dtype="float32"):
    """Boxes in and around images, in 64ths, which the arithmetic of both has exactly."""
    corners = s.array(n, 2, low=-1.5, high=side)
    ends = corners + s.array(n, 2, low=-0.5, high=side)
    boxes = np.round(np.concatenate([corners, ends], 1) * 64) / 64 + 1 / 128
    return np.concatenate([s.indices(images, n, 1), boxes], 1).astype(dtype)


@roi_align.samples
def _(s):
    yield s(s.array(1, 2, 4, 5), _rois(s, 1, 2), 1.0, 2, 2, 2)
    yield s(s.array(2, 1, 4, 4), _rois(s, 2, 3), 0.5, 1, 2, -1, True)
    yield s(s.array(1, 1, 5, 5), _rois(s, 1, 2), 1.0, 2, 1)
    yield s(s.array(2, 3, 9, 11, dtype="float64"), _rois(s, 2, 7, 9.0, "float64"), 1.0, 3, 4, 0)
    yield s(s.array(2, 40, 7, 6), _rois(s, 2, 9), 1.0, 7, 7, 2, True)
    yield s(s.strided(2, 3, 6, 6), _rois(s, 2, 4), 0.25, 2, 2, 3)
    yield s(s.array(1, 2, 1, 1), _rois(s, 1, 3, 2.0), 1.0, 2, 2)
    yield s(s.array(1, 2, 4, 4), np.array([[0, 1, 1, 1, 1], [0, 3, 3, 1, 1]], "float32"), 1, 2, 2)
    far = np.array([[0, -1e30, 0, 1e30, 4], [0, 1e9, 1e9, 2e9, 2e9], [0, -9e5, 0, 9e5, 3]])
    yield s(s.array(1, 1, 4, 4), far[1:].astype("float32"), 1.0, 2, 2, 2, True)
    yield s(s.array(1, 2, 4, 4), s.array(0, 5), 1.0, 2, 2)
    yield s(s.array(0, 2, 4, 4), s.array(0, 5), 1.0, 2, 2)


@roi_align_backward.samples
def _(s):
    yield s(s.array(2, 2, 2, 2), _rois(s, 1, 2), (1, 2, 4, 5), 1.0, 2, 2, 2, False)
    yield s(s.array(3, 1, 1, 2), _rois(s, 2, 3), (2, 1, 4, 4), 0.5, 1, 2, -1, True)
    yield s(s.array(9, 40, 3, 3), _rois(s, 2, 9), (2, 40, 7, 6), 1.0, 3, 3, 0, True)
    yield s(s.array(0, 2, 2, 2), s.array(0, 5), (1, 2, 4, 4), 1.0, 2, 2, 2, False)


@ps_roi_align.samples
def _(s):
    yield s(s.array(1, 4, 4, 4), _rois(s, 1, 2), 1.0, 2, 2, 2)
    large = _rois(s, 1, 2)
    large[:, 3:] += 1
    yield s(s.array(1, 2, 5, 5), large, 1.0, 1, 2)
    yield s(s.array(2, 18, 9, 11, dtype="float64"), _rois(s, 2, 7, 9.0, "float64"), 0.5, 3, 2, 3)
    yield s(s.strided(2, 8, 6, 6), _rois(s, 2, 4), 0.25, 2, 2, 3)
    yield s(s.array(1, 4, 4, 4), np.array([[0, 1, 1, 1, 1]], "float32"), 1.0, 2, 2)
    yield s(s.array(1, 4, 4, 4), s.array(0, 5), 1.0, 2, 2)


@ps_roi_align_backward.samples
def _(s):
    yield s(s.array(2, 1, 2, 2), _rois(s, 1, 2), (1, 4, 4, 4), 1.0, 2, 2, 2)
    yield s(s.array(7, 3, 3, 2), _rois(s, 2, 7), (2, 18, 9, 11), 0.5, 3, 2, 3)


@roi_pool.samples
@ps_roi_pool.samples
def _(s):
    yield s(s.distinct(1, 4, 4, 4), _rois(s, 1, 2), 1.0, 2, 2)
    yield s(s.distinct(2, 8, 5, 7), _rois(s, 2, 6), 0.5, 2, 4)
    yield s(s.distinct(2, 80, 9, 8, dtype="float64"), _rois(s, 2, 7, 9.0, "float64"), 1.0, 2, 2)
    yield s(s.distinct(1, 16, 6, 6).transpose(0, 1, 3, 2), _rois(s, 1, 4), 1.0, 4, 4)
    yield s(s.array(1, 4, 4, 4), s.array(0, 5), 1.0, 2, 2)
    far = np.array([[0, -1000, -3, 1001, 4], [0, 1e9, 1e9, 2e9, 2e9]], "float32")
    yield s(s.distinct(1, 4, 4, 4), far, 1.0, 2, 2)


@roi_pool_backward.samples
def _(s):
    where = s.indices(20, 3, 2, 2, 2).astype("int32") - 1
    yield s(s.array(3, 2, 2, 2), _rois(s, 2, 3), where, (2, 2, 4, 5))
    yield s(s.array(0, 2, 2, 2), s.array(0, 5), np.zeros((0, 2, 2, 2), "int32"), (1, 2, 4, 5))


@ps_roi_pool_backward.samples
def _(s):
    yield s(s.array(2, 1, 2, 2), _rois(s, 1, 2), (1, 4, 4, 4), 1.0, 2, 2)
    yield s(s.array(6, 1, 2, 4), _rois(s, 2, 6), (2, 8, 5, 7), 0.5, 2, 4)


# ---- errors --------------------------------------------------------------------------------------
for each in (roi_align, roi_pool, ps_roi_align, ps_roi_pool):
    each.error(
        "ShapeError",
        lambda s: s(s.array(1, 4, 4, 4), s.array(2, 4), 1.0, 2, 2),
        contains=["`rois`", "(k, 5)", "(2, 4)"],
    )
    each.error(
        "ShapeError",
        lambda s: s(s.array(4, 4, 4), s.array(2, 5), 1.0, 2, 2),
        contains=["`input`", "(4, 4, 4)"],
    )
    each.error(
        "DTypeError",
        lambda s: s(s.array(1, 4, 4, 4), s.array(2, 5, dtype="float64"), 1.0, 2, 2),
        contains=["float32", "float64"],
    )
    each.error(
        "ValueError",
        lambda s: s(s.array(1, 4, 4, 4), s.array(2, 5), 1.0, 0, 2),
        contains=["pooled_height", "0 and 2"],
    )
    each.error(
        "IndexError",
        lambda s: s(s.array(1, 4, 4, 4), np.ones((2, 5), "float32"), 1.0, 2, 2),
        contains=["`rois`", "[0, 1)"],
    )
for each in (roi_align, ps_roi_align):
    each.error(
        "ValueError",
        lambda s: s(s.array(1, 4, 4, 4), s.array(2, 5), 1.0, 2, 2, 65536),
        contains=["sampling_ratio", "65536"],
    )
for each in (ps_roi_align, ps_roi_pool):
    each.error(
        "ShapeError",
        lambda s: s(s.array(1, 6, 4, 4), s.array(2, 5), 1.0, 2, 2),
        contains=["channels", "2 x 2", "6"],
    )
roi_align_backward.error(
    "ShapeError",
    lambda s: s(s.array(2, 1, 2, 2), s.array(2, 5), (1, 4, 4, 4), 1.0, 2, 2, 2, False),
    contains=["roi_align_backward", "`grad`", "(2, 4, 2, 2)", "(2, 1, 2, 2)"],
)
ps_roi_align_backward.error(
    "ShapeError",
    lambda s: s(s.array(2, 4, 2, 2), s.array(2, 5), (1, 4, 4, 4), 1.0, 2, 2, 2),
    contains=["ps_roi_align_backward", "`grad`", "(2, 1, 2, 2)", "(2, 4, 2, 2)"],
)
ps_roi_pool_backward.error(
    "ShapeError",
    lambda s: s(s.array(2, 4, 2, 2), s.array(2, 5), (1, 4, 4, 4), 1.0, 2, 2),
    contains=["ps_roi_pool_backward", "`grad`", "(2, 1, 2, 2)", "(2, 4, 2, 2)"],
)
roi_pool_backward.error(
    "DTypeError",
    lambda s: s(s.array(2, 4, 2, 2), s.array(2, 5), s.indices(2, 2, 4, 2, 2), (1, 4, 4, 4)),
    contains=["roi_pool_backward", "`argmax`", "int32", "int64"],
)
