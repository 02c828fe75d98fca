"""Two-dimensional convolution and its two gradients."""

import numpy as np

from plait_ops.calls import sum
from plait_ops.spec import Operator
from plait_ops.words import check, require, require_same, result

LARGEST = 2**31 - 1
OPTIONS = "int[2] stride=1, int[2] padding=0, int[2] dilation=1, int groups=1"


def _pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


def _patches(x, kernel, stride, padding, dilation):
    """Windows of a padded (n, c, h, w) array: a writable view (n, c, oh, ow, kh, kw), and the padded array."""
    (kh, kw), (sh, sw) = kernel, _pair(stride)
    (ph, pw), (dh, dw) = _pair(padding), _pair(dilation)
    padded = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    n, c, h, w = padded.shape
    oh, ow = (h - dh * (kh - 1) - 1) // sh + 1, (w - dw * (kw - 1) - 1) // sw + 1
    a, b, y, z = padded.strides
    windows = np.lib.stride_tricks.as_strided(
        padded, (n, c, oh, ow, kh, kw), (a, b, y * sh, z * sw, y * dh, z * dw)
    )
    return windows, padded


conv2d = Operator(
    f"conv2d(Tensor input, Tensor weight, Tensor? bias=None, {OPTIONS}) -> Tensor",
    doc="""
    Cross-correlation of every image with every filter, plus a bias for each filter:
    ``out[n, f, y, x] = bias[f] + sum_{c, i, j} input[n, c, y*s + i*d - p, x*s + j*d - p] * weight[f, c, i, j]``.

    Shapes: input (n, c, h, w), weight (f, c / groups, kh, kw), bias (f,) give (n, f, oh, ow) with
    ``oh = (h + 2 * padding - dilation * (kh - 1) - 1) // stride + 1``. float32 or float64.

    Raises: ShapeError if a tensor has another number of dimensions, channels do not fit `groups`, or the kernel is
    larger than the padded image; ValueError for a stride or dilation below 1, a padding below 0, or bad `groups`;
    DTypeError.

    >>> import plait_core as pc
    >>> pc.conv2d(pc.ones(1, 1, 3, 3), pc.ones(1, 1, 2, 2)).tolist()
    [[[[4.0, 4.0], [4.0, 4.0]]]]
    """,
    dtypes="floating",
    method=False,
)


@conv2d.shape
def _(input, weight, bias, stride, padding, dilation, groups):
    check(
        input.ndim == 4 and weight.ndim == 4,
        f"`input` (n, c, h, w) and `weight` (f, c, kh, kw) must have four dimensions; "
        f"got shapes {input.shape} and {weight.shape}",
    )
    check(
        min(stride[0], stride[1]) > 0 and min(dilation[0], dilation[1]) > 0,
        f"`stride` and `dilation` must be at least 1; got {stride} and {dilation}",
        "ValueError",
    )
    check(
        min(padding[0], padding[1]) >= 0, f"`padding` must not be negative; got {padding}", "ValueError"
    )
    check(
        max(padding[0], padding[1]) <= LARGEST and max(dilation[0], dilation[1]) <= LARGEST,
        f"`padding` and `dilation` must be below 2**31; got {padding} and {dilation}",
        "ValueError",
    )
    check(
        groups > 0 and input.shape[1] == weight.shape[1] * groups and weight.shape[0] % max(groups, 1) == 0,
        f"`groups` {groups} must divide the channels: `input` has shape {input.shape}, `weight` {weight.shape}",
    )
    require_same("input", input, "weight", weight)
    require("input", input.dtype, "floating")
    if bias is not None:
        check(
            bias.ndim == 1 and bias.shape[0] == weight.shape[0],
            f"`bias` must have shape ({weight.shape[0]},) for `weight` of shape {weight.shape}; got {bias.shape}",
        )
        require_same("input", input, "bias", bias)
    out = [input.shape[0], weight.shape[0]]
    for i in range(2):
        room = input.shape[2 + i] + 2 * padding[i] - dilation[i] * (weight.shape[2 + i] - 1) - 1
        check(
            room >= 0 and weight.shape[2 + i] > 0,
            f"`weight` of shape {weight.shape} does not fit into `input` of shape {input.shape} "
            f"with padding {padding} and dilation {dilation}",
        )
        out.append(room // stride[i] + 1)
    return result(out, input.dtype)


@conv2d.vjp("input")
def _(g, input, weight, stride, padding, dilation, groups):
    return conv2d_backward_input(g, weight, input.shape, stride, padding, dilation, groups)


@conv2d.vjp("weight")
def _(g, input, weight, stride, padding, dilation, groups):
    return conv2d_backward_weight(g, input, weight.shape, stride, padding, dilation, groups)


@conv2d.vjp("bias")
def _(g):
    return sum(g, [0, 2, 3])


@conv2d.reference
def _(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    windows, _ = _patches(input, weight.shape[2:], stride, padding, dilation)
    filters = weight.shape[0] // groups
    parts = [
        np.einsum(
            "ncyxij,fcij->nfyx",
            windows[:, g * weight.shape[1] : (g + 1) * weight.shape[1]],
            weight[g * filters : (g + 1) * filters],
        )
        for g in range(groups)
    ]
    y = np.concatenate(parts, 1)
    return np.asarray(y if bias is None else y + bias.reshape(1, -1, 1, 1), input.dtype)


@conv2d.samples
def _(s):
    yield s(s.array(2, 3, 5, 6), s.array(4, 3, 3, 3), s.array(4)).loosely(4)
    yield s(s.array(1, 1, 4, 4), s.array(1, 1, 2, 2))
    yield s(s.array(1, 2, 7, 6), s.array(3, 2, 3, 2), s.array(3), 2, 1).loosely(4)
    yield s(s.array(1, 2, 7, 8), s.array(3, 2, 3, 2), None, (2, 1), (0, 2), (1, 2)).loosely(4)
    yield s(s.array(2, 4, 5, 5), s.array(6, 2, 3, 3), s.array(6), 1, 1, 1, 2).loosely(4)
    yield s(s.array(2, 3, 5, 5), s.array(3, 1, 3, 3), None, 1, 1, 1, 3).loosely(4)
    yield s(s.array(2, 3, 4, 4), s.array(5, 3, 1, 1), s.array(5)).loosely(4)
    yield s(s.array(2, 6, 8, 8), s.array(16, 6, 5, 5), s.array(16)).loosely(16)
    yield s(s.array(2, 1, 12, 12), s.array(6, 1, 5, 5), s.array(6)).loosely(8)
    yield s(s.strided(2, 3, 5, 4), s.backwards(2, 3, 3, 3)).loosely(4)
    yield s(s.array(0, 3, 5, 5), s.array(2, 3, 3, 3), s.array(2))
    yield s(
        s.array(1, 2, 4, 4, dtype="float64"), s.array(2, 2, 3, 3, dtype="float64"), s.array(2, dtype="float64")
    )


conv2d.error(
    "ShapeError", lambda s: s(s.array(3, 5, 5), s.array(2, 3, 3, 3)), contains=["conv2d", "input", "(3, 5, 5)"]
)
conv2d.error(
    "ShapeError",
    lambda s: s(s.array(1, 3, 5, 5), s.array(2, 4, 3, 3)),
    contains=["conv2d", "groups", "(1, 3, 5, 5)", "(2, 4, 3, 3)"],
)
conv2d.error(
    "ShapeError",
    lambda s: s(s.array(1, 1, 2, 2), s.array(1, 1, 3, 3)),
    contains=["conv2d", "weight", "(1, 1, 3, 3)", "(1, 1, 2, 2)"],
)
conv2d.error(
    "ShapeError",
    lambda s: s(s.array(1, 1, 4, 4), s.array(2, 1, 3, 3), s.array(3)),
    contains=["conv2d", "bias", "(2,)", "(3,)"],
)
conv2d.error(
    "ValueError", lambda s: s(s.array(1, 1, 4, 4), s.array(1, 1, 3, 3), None, 0), contains=["conv2d", "stride", "0"]
)
conv2d.error(
    "ValueError",
    lambda s: s(s.array(1, 1, 4, 4), s.array(1, 1, 3, 3), None, 1, -1),
    contains=["conv2d", "padding", "-1"],
)
conv2d.error(
    "DTypeError",
    lambda s: s(s.array(1, 1, 4, 4), s.array(1, 1, 3, 3, dtype="float64")),
    contains=["conv2d", "weight", "float64"],
)
conv2d.error(
    "DTypeError",
    lambda s: s(s.array(1, 1, 4, 4, dtype="int64"), s.array(1, 1, 3, 3, dtype="int64")),
    contains=["conv2d", "input", "int64"],
)


conv2d_backward_input = Operator(
    "conv2d_backward_input(Tensor gy, Tensor weight, int[] input_size, int[2] stride, int[2] padding, "
    "int[2] dilation, int groups) -> Tensor",
    doc="""
    The gradient of conv2d with respect to its input of shape `input_size`, from `gy`, that of its result.

    Raises: ShapeError if the shapes are not those of one convolution.

    >>> import plait_core as pc
    >>> pc.conv2d_backward_input(pc.ones(1, 1, 1, 1), pc.ones(1, 1, 2, 2), (1, 1, 2, 2), 1, 0, 1, 1).tolist()
    [[[[1.0, 1.0], [1.0, 1.0]]]]
    """,
    dtypes="floating",
    internal=True,
)


@conv2d_backward_input.shape
def _(gy, weight, input_size, stride, padding, dilation, groups):
    check(
        gy.ndim == 4 and weight.ndim == 4 and len(input_size) == 4,
        f"`gy`, `weight` and `input_size` must have four dimensions; "
        f"got {gy.shape}, {weight.shape} and {tuple(input_size)}",
    )
    check(
        groups > 0
        and min(stride[0], stride[1]) > 0
        and min(dilation[0], dilation[1]) > 0
        and min(padding[0], padding[1]) >= 0,
        f"`stride` {stride}, `padding` {padding}, `dilation` {dilation} or `groups` {groups} is too small",
        "ValueError",
    )
    check(
        max(padding[0], padding[1]) <= LARGEST and max(dilation[0], dilation[1]) <= LARGEST,
        f"`padding` and `dilation` must be below 2**31; got {padding} and {dilation}",
        "ValueError",
    )
    fits = (
        gy.shape[0] == input_size[0]
        and gy.shape[1] == weight.shape[0]
        and input_size[1] == weight.shape[1] * groups
        and weight.shape[0] % max(groups, 1) == 0
    )
    for i in range(2):
        room = input_size[2 + i] + 2 * padding[i] - dilation[i] * (weight.shape[2 + i] - 1) - 1
        fits = fits and room >= 0 and gy.shape[2 + i] == room // stride[i] + 1
    check(
        fits,
        f"`gy` of shape {gy.shape} is not the result's of a convolution of {tuple(input_size)} "
        f"with `weight` of shape {weight.shape}",
    )
    require_same("gy", gy, "weight", weight)
    require("gy", gy.dtype, "floating")
    return result(input_size, gy.dtype)


@conv2d_backward_input.vjp("gy")
def _(g, weight, stride, padding, dilation, groups):
    return conv2d(g, weight, None, stride, padding, dilation, groups)


@conv2d_backward_input.vjp("weight")
def _(g, gy, weight, stride, padding, dilation, groups):
    return conv2d_backward_weight(gy, g, weight.shape, stride, padding, dilation, groups)


@conv2d_backward_input.reference
def _(gy, weight, input_size, stride, padding, dilation, groups):
    gx = np.zeros(tuple(input_size), gy.dtype)
    windows, padded = _patches(gx, weight.shape[2:], stride, padding, dilation)
    filters, channels = weight.shape[0] // groups, weight.shape[1]
    for g in range(groups):
        part = np.einsum(
            "nfyx,fcij->ncyxij",
            gy[:, g * filters : (g + 1) * filters],
            weight[g * filters : (g + 1) * filters],
        )
        for y, x in np.ndindex(windows.shape[2:4]):  # windows overlap: one place at a time
            windows[:, g * channels : (g + 1) * channels, y, x] += part[:, :, y, x]
    (ph, pw), (_, _, h, w) = _pair(padding), input_size
    return np.ascontiguousarray(padded[:, :, ph : ph + h, pw : pw + w])


def _backward_samples(s):
    """(gy, input, weight) of a few convolutions, and their options."""
    for x, w, y, options in [
        ((2, 3, 5, 6), (4, 3, 3, 3), (2, 4, 3, 4), (1, 0, 1, 1)),
        ((1, 2, 7, 6), (3, 2, 3, 2), (1, 3, 4, 4), (2, 1, 1, 1)),
        ((1, 2, 7, 8), (3, 2, 3, 2), (1, 3, 3, 10), ((2, 1), (0, 2), (1, 2), 1)),
        ((2, 4, 5, 5), (6, 2, 3, 3), (2, 6, 5, 5), (1, 1, 1, 2)),
        ((2, 3, 5, 5), (3, 1, 3, 3), (2, 3, 5, 5), (1, 1, 1, 3)),
        ((2, 6, 8, 8), (16, 6, 5, 5), (2, 16, 4, 4), (1, 0, 1, 1)),
        ((2, 1, 12, 12), (6, 1, 5, 5), (2, 6, 8, 8), (1, 0, 1, 1)),
        ((0, 3, 5, 5), (2, 3, 3, 3), (0, 2, 3, 3), (1, 0, 1, 1)),
    ]:
        yield s.array(*y), s.array(*x), s.array(*w), options
    yield s.strided(1, 2, 3, 3), s.strided(1, 3, 5, 5), s.backwards(2, 3, 3, 3), (1, 0, 1, 1)
    shapes = (1, 2, 2, 2), (1, 2, 4, 4), (2, 2, 3, 3)
    yield *(s.array(*shape, dtype="float64") for shape in shapes), (1, 0, 1, 1)


@conv2d_backward_input.samples
def _(s):
    for gy, x, weight, options in _backward_samples(s):
        yield s(gy, weight, x.shape, *options).loosely(16)


conv2d_backward_input.error(
    "ShapeError",
    lambda s: s(s.array(1, 1, 2, 2), s.array(1, 1, 2, 2), (1, 1, 5, 5), 1, 0, 1, 1),
    contains=["conv2d_backward_input", "gy", "(1, 1, 2, 2)", "(1, 1, 5, 5)"],
)


conv2d_backward_weight = Operator(
    "conv2d_backward_weight(Tensor gy, Tensor input, int[] weight_size, int[2] stride, int[2] padding, "
    "int[2] dilation, int groups) -> Tensor",
    doc="""
    The gradient of conv2d with respect to its weight of shape `weight_size`, from `gy`, that of its result.

    Raises: ShapeError if the shapes are not those of one convolution.

    >>> import plait_core as pc
    >>> pc.conv2d_backward_weight(pc.ones(1, 1, 1, 1), pc.ones(1, 1, 2, 2), (1, 1, 2, 2), 1, 0, 1, 1).tolist()
    [[[[1.0, 1.0], [1.0, 1.0]]]]
    """,
    dtypes="floating",
    internal=True,
)


@conv2d_backward_weight.shape
def _(gy, input, weight_size, stride, padding, dilation, groups):
    check(
        gy.ndim == 4 and input.ndim == 4 and len(weight_size) == 4,
        f"`gy`, `input` and `weight_size` must have four dimensions; "
        f"got {gy.shape}, {input.shape} and {tuple(weight_size)}",
    )
    check(
        groups > 0
        and min(stride[0], stride[1]) > 0
        and min(dilation[0], dilation[1]) > 0
        and min(padding[0], padding[1]) >= 0,
        f"`stride` {stride}, `padding` {padding}, `dilation` {dilation} or `groups` {groups} is too small",
        "ValueError",
    )
    check(
        max(padding[0], padding[1]) <= LARGEST and max(dilation[0], dilation[1]) <= LARGEST,
        f"`padding` and `dilation` must be below 2**31; got {padding} and {dilation}",
        "ValueError",
    )
    fits = (
        gy.shape[0] == input.shape[0]
        and gy.shape[1] == weight_size[0]
        and weight_size[1] >= 0
        and weight_size[1] <= input.shape[1]
        and input.shape[1] == weight_size[1] * groups
        and weight_size[0] % max(groups, 1) == 0
    )
    for i in range(2):
        fits = fits and weight_size[2 + i] > 0 and weight_size[2 + i] <= LARGEST
        room = -1
        if fits:
            room = input.shape[2 + i] + 2 * padding[i] - dilation[i] * (weight_size[2 + i] - 1) - 1
        fits = fits and room >= 0 and gy.shape[2 + i] == room // stride[i] + 1
    check(
        fits,
        f"`gy` of shape {gy.shape} is not the result's of a convolution of `input` of shape {input.shape} "
        f"with a weight of shape {tuple(weight_size)}",
    )
    require_same("gy", gy, "input", input)
    require("gy", gy.dtype, "floating")
    return result(weight_size, gy.dtype)


@conv2d_backward_weight.vjp("gy")
def _(g, input, stride, padding, dilation, groups):
    return conv2d(input, g, None, stride, padding, dilation, groups)


@conv2d_backward_weight.vjp("input")
def _(g, gy, input, stride, padding, dilation, groups):
    return conv2d_backward_input(gy, g, input.shape, stride, padding, dilation, groups)


@conv2d_backward_weight.reference
def _(gy, input, weight_size, stride, padding, dilation, groups):
    windows, _ = _patches(input, tuple(weight_size[2:]), stride, padding, dilation)
    filters, channels = weight_size[0] // groups, weight_size[1]
    parts = [
        np.einsum(
            "nfyx,ncyxij->fcij",
            gy[:, g * filters : (g + 1) * filters],
            windows[:, g * channels : (g + 1) * channels],
        )
        for g in range(groups)
    ]
    return np.asarray(np.concatenate(parts, 0), gy.dtype)


@conv2d_backward_weight.samples
def _(s):
    for gy, x, weight, options in _backward_samples(s):
        yield s(gy, x, weight.shape, *options).loosely(16)


conv2d_backward_weight.error(
    "ShapeError",
    lambda s: s(s.array(1, 1, 2, 2), s.array(1, 1, 5, 5), (1, 1, 2, 2), 1, 0, 1, 1),
    contains=["conv2d_backward_weight", "gy", "(1, 1, 2, 2)", "(1, 1, 5, 5)"],
)
