"""Test data of pooling/pooling: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.pooling.pooling import (
    adaptive_avg_pool2d,
    avg_pool2d,
    avg_pool2d_backward,
    max_pool2d,
    max_pool2d_backward,
    max_pool2d_with_indices,
    native_max_pool2d,
    native_max_pool2d_backward,
)


def _starts(n, k, stride, padding, dilation, ceil_mode):
    span = n + 2 * padding - dilation * (k - 1) - 1
    count = -(-span // stride) + 1 if ceil_mode else span // stride + 1
    if ceil_mode and (count - 1) * stride >= n + padding:
        count -= 1
    return [i * stride - padding for i in range(count)]


def _max_pool(input, kernel_size, stride=None, padding=(0, 0), dilation=(1, 1), ceil_mode=False):
    stride = stride or kernel_size
    h, w = input.shape[-2:]
    ys = _starts(h, kernel_size[0], stride[0], padding[0], dilation[0], ceil_mode)
    xs = _starts(w, kernel_size[1], stride[1], padding[1], dilation[1], ceil_mode)
    result = np.zeros((*input.shape[:-2], len(ys), len(xs)), input.dtype)
    where = np.zeros(result.shape, "int64")
    for a, y in enumerate(ys):
        for b, x in enumerate(xs):
            rows = [
                y + i * dilation[0] for i in range(kernel_size[0]) if 0 <= y + i * dilation[0] < h
            ]
            columns = [
                x + j * dilation[1] for j in range(kernel_size[1]) if 0 <= x + j * dilation[1] < w
            ]
            if not rows or not columns:
                result[..., a, b] = (
                    -np.inf if input.dtype.kind == "f" else np.iinfo(input.dtype).min
                )
                where[..., a, b] = -1
                continue
            window = input[..., rows, :][..., columns].reshape(
                *input.shape[:-2], len(rows) * len(columns)
            )
            at = window.argmax(-1)
            result[..., a, b] = np.take_along_axis(window, at[..., None], -1)[..., 0]
            where[..., a, b] = np.array([r * w + c for r in rows for c in columns])[at]
    return result, where


max_pool2d_with_indices.reference(_max_pool)


def _corners(shape, stride, padding):
    """The row and the column of the first element of each window."""
    rows = np.arange(shape[-2]) * stride[0] - padding[0]
    return rows[:, None], np.arange(shape[-1]) * stride[1] - padding[1]


@native_max_pool2d.reference
def _(input, kernel_size, stride=None, padding=(0, 0), dilation=(1, 1), ceil_mode=False):
    result, where = _max_pool(input, kernel_size, stride, padding, dilation, ceil_mode)
    top, left = _corners(result.shape, stride or kernel_size, padding)
    down, across = where // input.shape[-1] - top, where % input.shape[-1] - left
    number = down // dilation[0] * kernel_size[1] + across // dilation[1]
    return result, np.where(where < 0, 255, number).astype("uint8")


@native_max_pool2d_backward.reference
def _(grad, numbers, size, kernel_size, stride, padding, dilation):
    result = np.zeros(size, grad.dtype).reshape(-1, size[-2], size[-1])
    top, left = _corners(grad.shape, stride, padding)
    wide = numbers.astype("int64")
    down = wide // kernel_size[1] * dilation[0] + top
    across = wide % kernel_size[1] * dilation[1] + left
    flat = (-1, *grad.shape[-2:])
    parts = (result, down.reshape(flat), across.reshape(flat), grad.reshape(flat))
    for image, y, x, g in zip(*parts, strict=True):
        seen = (y >= 0) & (y < size[-2]) & (x >= 0) & (x < size[-1])
        np.add.at(image, (y[seen], x[seen]), g[seen])
    return result.reshape(size)


@max_pool2d_backward.reference
def _(grad, indices, size):
    result = np.zeros((int(np.prod(size[:-2])), size[-2] * size[-1]), grad.dtype)
    planes = (len(result), grad.shape[-2] * grad.shape[-1])
    for row, at, g in zip(result, indices.reshape(planes), grad.reshape(planes), strict=True):
        np.add.at(row, at[at >= 0], g[at >= 0])
    return result.reshape(size)


@max_pool2d.reference
def _(input, kernel_size, stride=None, padding=(0, 0), dilation=(1, 1), ceil_mode=False):
    return _max_pool(input, kernel_size, stride, padding, dilation, ceil_mode)[0]


@max_pool2d.samples
@max_pool2d_with_indices.samples
@native_max_pool2d.samples
def _(s):
    yield s(s.distinct(2, 3, 4, 6), 2)
    yield s(s.distinct(2, 3, 5, 5), 3, 2, 1)
    yield s(s.distinct(2, 3, 5, 7), (2, 3), (1, 2))
    yield s(s.distinct(3, 5, 5), 2, ceil_mode=True)
    yield s(s.distinct(1, 2, 7, 7), 3, 2, 1, 2)
    yield s(s.distinct(1, 2, 6, 6), 3, 2, 1, ceil_mode=True)
    yield s(s.distinct(2, 1, 3), 2, ceil_mode=True)
    yield s(s.distinct(2, 5, 6, 3).transpose(0, 3, 1, 2), 2)
    yield s(s.array(2, 3, 4, 4, dtype="int64"), 2)
    yield s(s.distinct(2, 2, 9, 40), 3, 2, 1)
    yield s(s.distinct(1, 2, 5, 19), (2, 3), 1, (1, 0))
    yield s(s.array(0, 3, 4, 4), 2)


@native_max_pool2d_backward.samples
def _(s):
    def numbers(most, *shape):
        return s.indices(most, *shape).astype("uint8")

    yield s(s.array(1, 2, 3, 20), numbers(9, 1, 2, 3, 20), (1, 2, 7, 41), 3, 2, 0, 1)
    yield s(s.array(2, 3, 18), numbers(6, 2, 3, 18), (2, 4, 20), (2, 3), 1, 0, 1)
    yield s(s.array(1, 1, 2, 3), numbers(4, 1, 1, 2, 3), (1, 1, 4, 6), 2, 2, 0, 1)
    yield s(s.array(1, 1, 2, 2), numbers(4, 1, 1, 2, 2), (1, 1, 6, 6), 2, 3, 0, 2)


native_max_pool2d.error(
    "ValueError",
    lambda s: s(s.array(1, 1, 20, 20), 16),
    contains=["native_max_pool2d", "kernel_size", "255", "(16, 16)"],
)
native_max_pool2d_backward.error(
    "DTypeError",
    lambda s: s(s.array(1, 2, 2), s.indices(4, 1, 2, 2), (1, 4, 4), 2, 2, 0, 1),
    contains=["native_max_pool2d_backward", "numbers", "uint8", "int64"],
)
max_pool2d_backward.samples(
    lambda s: iter(
        [
            s(s.array(2, 3, 2), s.indices(12, 2, 3, 2), (2, 3, 4)),
            s(s.array(1, 2, 2, 2), s.indices(9, 1, 2, 2, 2), (1, 2, 3, 3)),
        ]
    )
)
for each in (max_pool2d, max_pool2d_with_indices):
    each.error(
        "ShapeError", lambda s: s(s.array(4, 4), 2), contains=["max_pool2d", "input", "(4, 4)"]
    )
    each.error(
        "ShapeError",
        lambda s: s(s.array(1, 1, 2, 2), 3),
        contains=["max_pool2d", "(1, 1, 2, 2)", "3"],
    )
    each.error(
        "ValueError",
        lambda s: s(s.array(1, 1, 4, 4), 0),
        contains=["max_pool2d", "kernel_size", "0"],
    )
    each.error(
        "ValueError", lambda s: s(s.array(1, 1, 4, 4), 2, 0), contains=["max_pool2d", "stride", "0"]
    )
    each.error(
        "ValueError",
        lambda s: s(s.array(1, 1, 4, 4), 2, 2, 2),
        contains=["max_pool2d", "padding", "(2, 2)"],
    )
    each.error(
        "DTypeError",
        lambda s: s(s.array(1, 1, 4, 4, dtype="bool"), 2),
        contains=["max_pool2d", "input", "bool"],
    )
max_pool2d_backward.error(
    "ShapeError",
    lambda s: s(s.array(2, 2, 2), s.indices(4, 2, 2, 2), (1, 4, 4)),
    contains=["grad", "(2, 2, 2)", "(1, 4, 4)"],
)


def _averages(h, w, kernel_size, stride, padding, ceil_mode, count_include_pad):
    """Yield index, rows, columns and divisor of every window."""
    for a, y in enumerate(_starts(h, kernel_size[0], stride[0], padding[0], 1, ceil_mode)):
        for b, x in enumerate(_starts(w, kernel_size[1], stride[1], padding[1], 1, ceil_mode)):
            bottom, right = (
                min(y + kernel_size[0], h + padding[0]),
                min(x + kernel_size[1], w + padding[1]),
            )
            rows, columns = slice(max(y, 0), min(bottom, h)), slice(max(x, 0), min(right, w))
            inside = (rows.stop - rows.start) * (columns.stop - columns.start)
            yield a, b, rows, columns, (bottom - y) * (right - x) if count_include_pad else inside


@avg_pool2d.reference
def _(input, kernel_size, stride=None, padding=(0, 0), ceil_mode=False, count_include_pad=True):
    stride = stride or kernel_size
    h, w = input.shape[-2:]
    oh = len(_starts(h, kernel_size[0], stride[0], padding[0], 1, ceil_mode))
    ow = len(_starts(w, kernel_size[1], stride[1], padding[1], 1, ceil_mode))
    result = np.zeros((*input.shape[:-2], oh, ow), input.dtype)
    for a, b, rows, columns, n in _averages(
        h, w, kernel_size, stride, padding, ceil_mode, count_include_pad
    ):
        result[..., a, b] = input[..., rows, columns].sum((-2, -1)) / n
    return result


@avg_pool2d_backward.reference
def _(grad, size, kernel_size, stride, padding, ceil_mode, count_include_pad):
    result = np.zeros(size, grad.dtype)
    for a, b, rows, columns, n in _averages(
        *size[-2:], kernel_size, stride, padding, ceil_mode, count_include_pad
    ):
        result[..., rows, columns] += grad[..., a, b, None, None] / n
    return result


@avg_pool2d.samples
def _(s):
    yield s(s.array(2, 3, 4, 6), 2)
    yield s(s.array(2, 3, 5, 5), 3, 2, 1)
    yield s(s.array(2, 3, 5, 5), 3, 2, 1, False, False)
    yield s(s.array(3, 5, 5), 2, ceil_mode=True)
    yield s(s.array(1, 2, 6, 6), 3, 2, 1, True)
    yield s(s.array(2, 1, 3), 2, ceil_mode=True)
    yield s(s.strided(2, 3, 4, 4), 2)


@avg_pool2d_backward.samples
def _(s):
    yield s(s.array(2, 3, 2, 3), (2, 3, 4, 6), (2, 2), (2, 2), (0, 0), False, True)
    yield s(s.array(2, 3, 3, 3), (2, 3, 5, 5), (3, 3), (2, 2), (1, 1), False, False)


avg_pool2d.error(
    "ShapeError", lambda s: s(s.array(4, 4), 2), contains=["avg_pool2d", "input", "(4, 4)"]
)
avg_pool2d.error(
    "ValueError",
    lambda s: s(s.array(1, 1, 4, 4), 2, 2, 2),
    contains=["avg_pool2d", "padding", "(2, 2)"],
)
avg_pool2d.error(
    "ValueError", lambda s: s(s.array(1, 1, 4, 4), 2, 0), contains=["avg_pool2d", "stride", "0"]
)
avg_pool2d.error(
    "DTypeError",
    lambda s: s(s.array(1, 1, 4, 4, dtype="int64"), 2),
    contains=["avg_pool2d", "input", "int64"],
)
avg_pool2d_backward.error(
    "ShapeError",
    lambda s: s(s.array(1, 1, 3, 3), (1, 1, 4, 4), (2, 2), (2, 2), (0, 0), False, True),
    contains=["avg_pool2d_backward", "grad", "(1, 1, 2, 2)", "(1, 1, 3, 3)"],
)


@adaptive_avg_pool2d.reference
def _(input, output_size):
    (h, w), (oh, ow) = input.shape[-2:], output_size
    result = np.zeros((*input.shape[:-2], oh, ow), input.dtype)
    for i in range(oh):
        for j in range(ow):
            window = input[
                ..., i * h // oh : -(-(i + 1) * h // oh), j * w // ow : -(-(j + 1) * w // ow)
            ]
            result[..., i, j] = window.mean((-2, -1))
    return result


adaptive_avg_pool2d.samples(
    lambda s: iter(
        [
            s(s.array(2, 3, 4, 6), 2),
            s(s.array(2, 3, 5, 7), (2, 3)),
            s(s.array(3, 5, 4), 1),
            s(s.array(1, 1, 2, 2), 3),
            s(s.array(1, 2, 3, 4), (0, 2)),
        ]
    )
)
adaptive_avg_pool2d.error(
    "ShapeError", lambda s: s(s.array(4, 4), 2), contains=["adaptive_avg_pool2d", "input", "(4, 4)"]
)
adaptive_avg_pool2d.error(
    "ValueError",
    lambda s: s(s.array(1, 4, 4), -1),
    contains=["adaptive_avg_pool2d", "output_size", "(-1, -1)"],
)
