"""Two-dimensional max pooling."""

import numpy as np

from plait_ops.calls import gather, reshape
from plait_ops.spec import Composite, Operator
from plait_ops.words import check, int64, require, result

LARGEST = 2**31 - 1
OPTIONS = "int[2] kernel_size, int[2]? stride=None, int[2] padding=0, int[2] dilation=1, bool ceil_mode=False"


def _pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


def _reference(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    (kh, kw), (ph, pw), (dh, dw) = _pair(kernel_size), _pair(padding), _pair(dilation)
    sh, sw = (kh, kw) if stride is None else _pair(stride)
    n, c, h, w = input.shape

    def count(size, k, s, p, d):
        room = size + 2 * p - d * (k - 1) - 1
        out = (room + (s - 1 if ceil_mode else 0)) // s + 1
        return out - 1 if ceil_mode and (out - 1) * s >= size + p else out

    oh, ow = count(h, kh, sh, ph, dh), count(w, kw, sw, pw, dw)
    values = np.empty((n, c, oh, ow), input.dtype)
    indices = np.empty((n, c, oh, ow), np.int64)
    plane = np.arange(h * w).reshape(h, w)
    for y, x in np.ndindex(oh, ow):
        rows = [r for r in (y * sh - ph + i * dh for i in range(kh)) if 0 <= r < h]
        columns = [q for q in (x * sw - pw + j * dw for j in range(kw)) if 0 <= q < w]
        window = input[:, :, rows][:, :, :, columns].reshape(n, c, -1)
        at = window.argmax(-1)
        values[:, :, y, x] = np.take_along_axis(window, at[..., None], -1)[..., 0]
        indices[:, :, y, x] = plane[np.ix_(rows, columns)].reshape(-1)[at]
    return values, indices


max_pool2d_with_indices = Operator(
    f"max_pool2d_with_indices(Tensor input, {OPTIONS}) -> (Tensor, Tensor)",
    doc="""
    The largest element of every window, and its position in its image: ``row * width + column`` in int64. The first
    of equal elements counts; NaN counts as larger than any number.

    Shapes: (n, c, h, w) gives (n, c, oh, ow) twice, with
    ``oh = (h + 2 * padding - dilation * (kh - 1) - 1) // stride + 1``; `ceil_mode` rounds up, but no window starts
    outside the padded image. `stride` None is `kernel_size`.

    Raises: ShapeError if `input` has not four dimensions or the window is larger than the padded image; ValueError
    for sizes below 1 or a padding of more than half the window; DTypeError.

    >>> import plait_core as pc
    >>> values, indices = pc.max_pool2d_with_indices(pc.arange(4.0).reshape(1, 1, 2, 2), 2)
    >>> values.item(), indices.item()
    (3.0, 3)
    """,
    dtypes="floating",
    method=False,
)


@max_pool2d_with_indices.shape
def _(input, kernel_size, stride, padding, dilation, ceil_mode):
    check(input.ndim == 4, f"`input` must have four dimensions (n, c, h, w); got shape {input.shape}")
    step = stride if stride is not None else kernel_size
    check(
        min(kernel_size[0], kernel_size[1]) > 0
        and min(step[0], step[1]) > 0
        and min(dilation[0], dilation[1]) > 0
        and max(max(kernel_size[0], kernel_size[1]), max(dilation[0], dilation[1])) <= LARGEST,
        f"`kernel_size`, `stride` and `dilation` must be at least 1; "
        f"got {kernel_size}, {step} and {dilation}",
        "ValueError",
    )
    check(
        min(padding[0], padding[1]) >= 0
        and padding[0] * 2 <= kernel_size[0]
        and padding[1] * 2 <= kernel_size[1],
        f"`padding` must be at most half of `kernel_size`; got {padding} and {kernel_size}",
        "ValueError",
    )
    require("input", input.dtype, "floating")
    out = [input.shape[0], input.shape[1]]
    for i in range(2):
        size = input.shape[2 + i]
        room = size + 2 * padding[i] - dilation[i] * (kernel_size[i] - 1) - 1
        check(
            room >= 0 and size > 0,
            f"a window of `kernel_size` {kernel_size} does not fit into `input` of shape {input.shape} "
            f"with padding {padding} and dilation {dilation}",
        )
        count = room // step[i] + 1
        if ceil_mode and room % step[i] != 0 and count * step[i] < size + padding[i]:
            count = count + 1
        out.append(count)
    return result(out, input.dtype), result(out, int64)


@max_pool2d_with_indices.vjp("input")
def _(g0, result1, input):
    return max_pool2d_backward(g0, result1, input.shape)


max_pool2d_with_indices.reference(_reference)


def _samples(s):
    yield s(s.distinct(2, 3, 6, 8), 2)
    yield s(s.distinct(1, 2, 7, 7), 3, 2)
    yield s(s.distinct(1, 2, 7, 7), 3, 2, 1)
    yield s(s.distinct(1, 2, 7, 7), 2, ceil_mode=True)
    yield s(s.distinct(1, 1, 8, 8), (3, 2), (2, 1), (1, 0), (1, 2))
    yield s(s.distinct(1, 1, 8, 8), 3, 3, 1, ceil_mode=True)
    yield s(s.distinct(2, 4, 5, 6).transpose(0, 1, 3, 2), 2)
    yield s(s.distinct(2, 2, 6, 6)[:, :, ::-1, ::-1], 2)
    yield s(s.distinct(1, 2, 24, 24), 2)
    yield s(s.array(0, 2, 4, 4), 2)
    yield s(s.distinct(1, 2, 4, 6, dtype="float64"), 2)


max_pool2d_with_indices.samples(_samples)
max_pool2d_with_indices.error(
    "ShapeError", lambda s: s(s.array(4, 4), 2), contains=["max_pool2d_with_indices", "input", "(4, 4)"]
)
max_pool2d_with_indices.error(
    "ShapeError",
    lambda s: s(s.array(1, 1, 2, 2), 3),
    contains=["max_pool2d_with_indices", "kernel_size", "(1, 1, 2, 2)"],
)
max_pool2d_with_indices.error(
    "ValueError",
    lambda s: s(s.array(1, 1, 4, 4), 2, 0),
    contains=["max_pool2d_with_indices", "stride", "0"],
)
max_pool2d_with_indices.error(
    "ValueError",
    lambda s: s(s.array(1, 1, 4, 4), 2, 1, 2),
    contains=["max_pool2d_with_indices", "padding", "half"],
)
max_pool2d_with_indices.error(
    "DTypeError",
    lambda s: s(s.array(1, 1, 4, 4, dtype="int64"), 2),
    contains=["max_pool2d_with_indices", "input", "int64"],
)


max_pool2d = Composite(
    f"max_pool2d(Tensor input, {OPTIONS}) -> Tensor",
    doc="""
    The largest element of every window; see max_pool2d_with_indices.

    >>> import plait_core as pc
    >>> pc.max_pool2d(pc.arange(16.0).reshape(1, 1, 4, 4), 2).tolist()
    [[[[5.0, 7.0], [13.0, 15.0]]]]
    """,
    dtypes="floating",
    method=False,
)


@max_pool2d.decompose
def _(input, kernel_size, stride, padding, dilation, ceil_mode):
    values, _indices = max_pool2d_with_indices(
        input, kernel_size, stride, padding, dilation, ceil_mode
    )
    return values


max_pool2d.reference(lambda *args, **kwargs: _reference(*args, **kwargs)[0])
max_pool2d.samples(_samples)
max_pool2d.error(
    "ShapeError", lambda s: s(s.array(4, 4), 2), contains=["max_pool2d", "input", "(4, 4)"]
)


max_pool2d_backward = Operator(
    "max_pool2d_backward(Tensor gy, Tensor indices, int[] input_size) -> Tensor",
    doc="""
    Adds every element of `gy` to the position of its image that `indices` names; the rest is zero.

    Raises: ShapeError if the shapes do not fit; IndexError if an index lies outside the image.

    >>> import plait_core as pc
    >>> gy, at = pc.ones(1, 1, 1, 1), pc.full((1, 1, 1, 1), 3)
    >>> pc.max_pool2d_backward(gy, at, (1, 1, 2, 2)).tolist()
    [[[[0.0, 0.0], [0.0, 1.0]]]]
    """,
    dtypes="floating",
    internal=True,
    kernel="indices are int64 and must be checked against h * w.",
)


@max_pool2d_backward.shape
def _(gy, indices, input_size):
    check(
        gy.ndim == 4
        and len(input_size) == 4
        and gy.shape == indices.shape
        and gy.shape[:2] == input_size[:2],
        f"`gy` of shape {gy.shape}, `indices` of shape {indices.shape} and `input_size` {tuple(input_size)} "
        f"are not those of one pooling",
    )
    check(indices.dtype == int64, f"`indices` must be int64; got {indices.dtype}", "DTypeError")
    require("gy", gy.dtype, "floating")
    return result(input_size, gy.dtype)


@max_pool2d_backward.vjp("gy")
def _(g, gy, indices):
    planes = [g.shape[0], g.shape[1], g.shape[2] * g.shape[3]]
    places = [g.shape[0], g.shape[1], gy.shape[2] * gy.shape[3]]
    return reshape(gather(reshape(g, planes), 2, reshape(indices, places)), gy.shape)


@max_pool2d_backward.reference
def _(gy, indices, input_size):
    n, c, h, w = input_size
    out = np.zeros((n, c, h * w), gy.dtype)
    for i, k in np.ndindex(n, c):
        np.add.at(out[i, k], indices[i, k].reshape(-1), gy[i, k].reshape(-1))
    return out.reshape(n, c, h, w)


@max_pool2d_backward.samples
def _(s):
    yield s(s.array(2, 3, 2, 2), s.indices(16, 2, 3, 2, 2), (2, 3, 4, 4))
    yield s(s.strided(1, 2, 3, 2), s.indices(20, 1, 2, 3, 2), (1, 2, 4, 5))
    yield s(s.array(0, 2, 2, 2), s.indices(16, 0, 2, 2, 2), (0, 2, 4, 4))
    yield s(s.array(1, 1, 2, 2, dtype="float64"), s.indices(16, 1, 1, 2, 2), (1, 1, 4, 4))


max_pool2d_backward.error(
    "ShapeError",
    lambda s: s(s.array(1, 1, 2, 2), s.indices(4, 1, 1, 1, 2), (1, 1, 4, 4)),
    contains=["max_pool2d_backward", "gy", "(1, 1, 2, 2)", "(1, 1, 1, 2)"],
)
max_pool2d_backward.error(
    "IndexError",
    lambda s: s(s.array(1, 1, 1, 1), np.full((1, 1, 1, 1), 99), (1, 1, 4, 4)),
    contains=["max_pool2d_backward", "99", "16"],
)
