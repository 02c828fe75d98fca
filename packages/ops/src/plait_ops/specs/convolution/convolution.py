"""Convolution in two dimensions."""

import numpy as np

from plait_ops.calls import sum
from plait_ops.spec import Operator
from plait_ops.words import check, require, require_same, result, sizes, windows

conv2d = Operator(
    "conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, int[2] dilation=1, "
    "int groups=1) -> Tensor",
    doc="""
    Cross-correlation of images with filters, plus a bias for each filter:
    ``out[n, o, y, x] = bias[o] + sum_{c,i,j} weight[o, c, i, j] * input[n, c', y * sh + i * dh - ph, x * sw + j * dw - pw]``,
    where `input` counts as 0 outside and c' runs over the channels of the group that o belongs to.

    Shapes: `input` is (n, c, h, w), `weight` (o, c / groups, kh, kw), `bias` (o,), the result (n, o, oh, ow) with
    ``oh = (h + 2 * ph - dh * (kh - 1) - 1) // sh + 1``. Dtypes: floats, the same for all.
    Raises: ShapeError for other shapes and where a filter is larger than the padded image, ValueError for a stride,
    dilation or number of groups below 1 or a negative padding, DTypeError if the dtypes differ.

    >>> import plait_core as pc
    >>> pc.conv2d(pc.ones(1, 1, 3, 3), pc.ones(1, 1, 2, 2)).tolist()
    [[[[4.0, 4.0], [4.0, 4.0]]]]
    """,
    dtypes="floating",
    kernel="operands have one dtype, any strides; the result is in C order; in[2] may be None.",
    method=False,
)
conv2d_backward_input = Operator(
    "conv2d_backward_input(Tensor grad, Tensor weight, int[] size, int[2] stride, int[2] padding, int[2] dilation, "
    "int groups) -> Tensor",
    doc="The derivative of `conv2d` for its input, which has shape `size`; also the transposed convolution.",
    dtypes="floating",
    internal=True,
    kernel="in[0] has the shape of the result of `conv2d`, any strides.",
)
conv2d_backward_weight = Operator(
    "conv2d_backward_weight(Tensor grad, Tensor input, int[] size, int[2] stride, int[2] padding, int[2] dilation, "
    "int groups) -> Tensor",
    doc="The derivative of `conv2d` for its weight, which has shape `size`.",
    dtypes="floating",
    internal=True,
    kernel="in[0] has the shape of the result of `conv2d`, any strides.",
)


@conv2d.shape
def _(input, weight, bias, stride, padding, dilation, groups):
    check(
        input.ndim == 4 and weight.ndim == 4,
        f"`input` and `weight` must have 4 dimensions; got shapes {input.shape} and {weight.shape}",
    )
    require("input", input.dtype, "floating")
    require_same("input", input, "weight", weight)
    check(groups >= 1, f"`groups` must be at least 1; got {groups}", "ValueError")
    check(
        weight.shape[0] % groups == 0
        and input.shape[1] % groups == 0
        and weight.shape[1] == input.shape[1] // groups,
        f"`weight` of shape {weight.shape} does not fit `input` of shape {input.shape} with `groups` {groups}: "
        f"(o, c / groups, kh, kw) and (n, c, h, w) are required",
    )
    if bias is not None:
        check(
            bias.ndim == 1 and bias.shape[0] == weight.shape[0],
            f"`bias` must have shape {tuple(weight.shape[:1])} for `weight` of shape {weight.shape}; got {bias.shape}",
        )
        require_same("input", input, "bias", bias)
    made = [input.shape[0], weight.shape[0]]
    for i in range(2):
        made.append(
            windows(
                input.shape, 2 + i, weight.shape[2 + i], stride[i], padding[i], dilation[i], False
            )
        )
    return result(made, input.dtype)


@conv2d_backward_input.shape
def _(grad, weight, size, stride, padding, dilation, groups):
    sizes("size", size)
    check(
        grad.ndim == 4 and weight.ndim == 4 and len(size) == 4,
        f"`grad`, `weight` and `size` must have 4 dimensions; got {grad.shape}, {weight.shape} and {size}",
    )
    require("grad", grad.dtype, "floating")
    require_same("grad", grad, "weight", weight)
    check(groups >= 1, f"`groups` must be at least 1; got {groups}", "ValueError")
    check(
        size[0] == grad.shape[0]
        and weight.shape[0] == grad.shape[1]
        and weight.shape[0] % groups == 0
        and size[1] % groups == 0
        and weight.shape[1] == size[1] // groups,
        f"`grad` of shape {grad.shape} and `weight` of shape {weight.shape} do not fit `size` {size} with `groups` {groups}",
    )
    for i in range(2):
        n = windows(size, 2 + i, weight.shape[2 + i], stride[i], padding[i], dilation[i], False)
        check(
            grad.shape[2 + i] == n,
            f"`grad` of shape {grad.shape} must have {n} elements in dimension {2 + i}",
        )
    return result(size, grad.dtype)


@conv2d_backward_weight.shape
def _(grad, input, size, stride, padding, dilation, groups):
    sizes("size", size)
    check(
        grad.ndim == 4 and input.ndim == 4 and len(size) == 4,
        f"`grad`, `input` and `size` must have 4 dimensions; got {grad.shape}, {input.shape} and {size}",
    )
    require("grad", grad.dtype, "floating")
    require_same("grad", grad, "input", input)
    check(groups >= 1, f"`groups` must be at least 1; got {groups}", "ValueError")
    check(
        input.shape[0] == grad.shape[0]
        and size[0] == grad.shape[1]
        and size[0] % groups == 0
        and input.shape[1] % groups == 0
        and size[1] == input.shape[1] // groups,
        f"`grad` of shape {grad.shape} and `input` of shape {input.shape} do not fit `size` {size} with `groups` {groups}",
    )
    for i in range(2):
        n = windows(input.shape, 2 + i, size[2 + i], stride[i], padding[i], dilation[i], False)
        check(
            grad.shape[2 + i] == n,
            f"`grad` of shape {grad.shape} must have {n} elements in dimension {2 + i}",
        )
    return result(size, grad.dtype)


@conv2d.vjp("input")
def _(g, input, weight, stride, padding, dilation, groups):
    return conv2d_backward_input(g, weight, input.shape, stride, padding, dilation, groups)


@conv2d.vjp("weight")
def _(g, input, weight, stride, padding, dilation, groups):
    return conv2d_backward_weight(g, input, weight.shape, stride, padding, dilation, groups)


@conv2d.vjp("bias")
def _(g):
    return sum(g, [0, 2, 3])


@conv2d_backward_input.vjp("grad")
def _(g, weight, stride, padding, dilation, groups):
    return conv2d(g, weight, None, stride, padding, dilation, groups)


@conv2d_backward_input.vjp("weight")
def _(g, grad, weight, stride, padding, dilation, groups):
    return conv2d_backward_weight(grad, g, weight.shape, stride, padding, dilation, groups)


@conv2d_backward_weight.vjp("grad")
def _(g, input, stride, padding, dilation, groups):
    return conv2d(input, g, None, stride, padding, dilation, groups)


@conv2d_backward_weight.vjp("input")
def _(g, grad, input, stride, padding, dilation, groups):
    return conv2d_backward_input(grad, g, input.shape, stride, padding, dilation, groups)


def _patches(padded, kernel, stride, dilation, out):
    """Return a view (n, c, kh, kw, oh, ow) of an array (n, c, h, w)."""
    n, c, h, w = padded.strides
    return np.lib.stride_tricks.as_strided(
        padded,
        (*padded.shape[:2], *kernel, *out),
        (n, c, h * dilation[0], w * dilation[1], h * stride[0], w * stride[1]),
    )


def _pad(array, padding):
    return np.pad(array, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))


def _out(size, kernel, stride, padding, dilation):
    return tuple(
        (size[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // stride[i] + 1
        for i in range(2)
    )


@conv2d.reference
def _(input, weight, bias=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    kernel = weight.shape[2:]
    out = _out(input.shape[2:], kernel, stride, padding, dilation)
    patches = _patches(_pad(input, padding), kernel, stride, dilation, out)
    n, o = len(input), len(weight)
    grouped = (
        patches.reshape(n, groups, -1, *kernel, *out)
        if patches.size
        else np.zeros((n, groups, weight.shape[1], *kernel, *out), input.dtype)
    )
    made = np.einsum(
        "ngcijyx,gocij->ngoyx",
        grouped,
        weight.reshape(groups, -1, *weight.shape[1:]),
        optimize=True,
    )
    made = made.reshape(n, o, *out).astype(input.dtype)
    return made if bias is None else made + bias[:, None, None]


@conv2d_backward_input.reference
def _(grad, weight, size, stride, padding, dilation, groups):
    kernel, out = weight.shape[2:], grad.shape[2:]
    made = np.zeros(
        (size[0], size[1], size[2] + 2 * padding[0], size[3] + 2 * padding[1]), grad.dtype
    )
    parts = np.einsum(
        "ngoyx,gocij->ngcijyx",
        grad.reshape(size[0], groups, grad.shape[1] // groups, *out),
        weight.reshape(groups, -1, *weight.shape[1:]),
        optimize=True,
    ).reshape(*size[:2], *kernel, *out)
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            y, x = i * dilation[0], j * dilation[1]
            made[
                :, :, y : y + stride[0] * out[0] : stride[0], x : x + stride[1] * out[1] : stride[1]
            ] += parts[:, :, i, j]
    return made[:, :, padding[0] : padding[0] + size[2], padding[1] : padding[1] + size[3]]


@conv2d_backward_weight.reference
def _(grad, input, size, stride, padding, dilation, groups):
    out = grad.shape[2:]
    patches = _patches(_pad(input, padding), size[2:], stride, dilation, out)
    return (
        np.einsum(
            "ngoyx,ngcijyx->gocij",
            grad.reshape(len(grad), groups, grad.shape[1] // groups, *out),
            patches.reshape(len(grad), groups, input.shape[1] // groups, *size[2:], *out),
            optimize=True,
        )
        .reshape(size)
        .astype(grad.dtype)
    )


@conv2d.samples
def _(s):
    yield s(s.array(1, 2, 3, 3), s.array(2, 1, 2, 2), s.array(2), (1, 2), (0, 1), groups=2)
    yield s(s.array(2, 3, 5, 6), s.array(4, 3, 3, 2), s.array(4))
    yield s(s.array(2, 3, 5, 6), s.array(4, 3, 3, 3))
    yield s(s.array(2, 4, 7, 7), s.array(6, 2, 3, 3), s.array(6), 2, 1, 1, 2)
    yield s(s.array(1, 2, 8, 7), s.array(3, 2, 3, 2), None, (1, 2), (2, 1), (2, 1))
    yield s(s.array(2, 4, 5, 5), s.array(4, 1, 3, 3), s.array(4), padding=1, groups=4)
    yield s(s.array(2, 3, 4, 4), s.array(5, 3, 1, 1), s.array(5))
    yield s(s.array(2, 3, 9, 9), s.array(5, 3, 3, 3), None, 1, 1).loosely(4)
    yield s(s.array(2, 5, 6, 3).transpose(0, 3, 1, 2), s.array(4, 3, 3, 3))
    yield s(
        s.array(2, 2, 5, 5, dtype="float64"),
        s.array(3, 2, 3, 3, dtype="float64"),
        s.array(3, dtype="float64"),
    )
    yield s(s.array(0, 3, 5, 5), s.array(4, 3, 3, 3), s.array(4))


@conv2d_backward_input.samples
def _(s):
    yield s(s.array(1, 2, 2, 2), s.array(2, 1, 2, 2), (1, 2, 3, 3), (1, 2), (0, 1), (1, 1), 2)
    yield s(s.array(2, 4, 3, 5), s.array(4, 3, 3, 2), (2, 3, 5, 6), (1, 1), (0, 0), (1, 1), 1)
    yield s(s.array(2, 6, 4, 4), s.array(6, 2, 3, 3), (2, 4, 7, 7), (2, 2), (1, 1), (1, 1), 2)
    yield s(s.array(1, 3, 8, 4), s.array(3, 2, 3, 2), (1, 2, 8, 7), (1, 2), (2, 1), (2, 1), 1)


@conv2d_backward_weight.samples
def _(s):
    yield s(s.array(1, 2, 2, 2), s.array(1, 2, 3, 3), (2, 1, 2, 2), (1, 2), (0, 1), (1, 1), 2)
    yield s(s.array(2, 4, 3, 5), s.array(2, 3, 5, 6), (4, 3, 3, 2), (1, 1), (0, 0), (1, 1), 1)
    yield s(s.array(2, 6, 4, 4), s.array(2, 4, 7, 7), (6, 2, 3, 3), (2, 2), (1, 1), (1, 1), 2)
    yield s(s.array(1, 3, 8, 4), s.array(1, 2, 8, 7), (3, 2, 3, 2), (1, 2), (2, 1), (2, 1), 1)


def _call(*shapes, dtypes=("float32", "float32"), **kwargs):
    return lambda s: s(
        *[s.array(*shape, dtype=dtypes[min(i, 1)]) for i, shape in enumerate(shapes)], **kwargs
    )


conv2d.error(
    "ShapeError",
    _call((3, 5, 5), (4, 3, 3, 3)),
    contains=["conv2d", "input", "weight", "(3, 5, 5)", "(4, 3, 3, 3)"],
)
conv2d.error(
    "ShapeError",
    _call((2, 3, 5, 5), (4, 2, 3, 3)),
    contains=["conv2d", "weight", "(4, 2, 3, 3)", "(2, 3, 5, 5)"],
)
conv2d.error(
    "ShapeError",
    _call((2, 3, 5, 5), (4, 3, 3, 3), (3,)),
    contains=["conv2d", "bias", "(4,)", "(3,)"],
)
conv2d.error(
    "ShapeError", _call((2, 3, 2, 5), (4, 3, 3, 3)), contains=["conv2d", "(2, 3, 2, 5)", "3"]
)
conv2d.error(
    "ValueError", _call((2, 3, 5, 5), (4, 3, 3, 3), stride=0), contains=["conv2d", "stride", "0"]
)
conv2d.error(
    "ValueError",
    _call((2, 3, 5, 5), (4, 3, 3, 3), padding=-1),
    contains=["conv2d", "padding", "-1"],
)
conv2d.error(
    "ValueError",
    _call((2, 3, 5, 5), (4, 3, 3, 3), dilation=0),
    contains=["conv2d", "dilation", "0"],
)
conv2d.error(
    "ValueError", _call((2, 3, 5, 5), (4, 3, 3, 3), groups=0), contains=["conv2d", "groups", "0"]
)
conv2d.error(
    "ValueError", _call((2, 3, 5, 5), (4, 3, 3, 3), padding=2**62), contains=["conv2d", "padding"]
)
conv2d.error(
    "DTypeError",
    _call((2, 3, 5, 5), (4, 3, 3, 3), dtypes=("float32", "float64")),
    contains=["conv2d", "input", "weight", "float32", "float64"],
)
conv2d.error(
    "DTypeError",
    _call((2, 3, 5, 5), (4, 3, 3, 3), dtypes=("int64", "int64")),
    contains=["conv2d", "input", "int64"],
)
conv2d_backward_input.error(
    "ShapeError",
    lambda s: s(s.array(2, 4, 3, 5), s.array(4, 3, 3, 2), (2, 3, 6, 6), (1, 1), (0, 0), (1, 1), 1),
    contains=["conv2d_backward_input", "grad", "(2, 4, 3, 5)"],
)
conv2d_backward_weight.error(
    "ShapeError",
    lambda s: s(s.array(2, 4, 3, 5), s.array(2, 3, 5, 6), (4, 3, 2, 2), (1, 1), (0, 0), (1, 1), 1),
    contains=["conv2d_backward_weight", "grad", "(2, 4, 3, 5)"],
)
