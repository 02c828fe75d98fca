"""Test data of convolution/convolution: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.samples.normalization.batch_norm import activated
from plait_ops.specs.convolution.convolution import (
    conv2d,
    conv2d_activation,
    conv2d_add_activation,
    conv2d_backward_input,
    conv2d_backward_weight,
)


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
    result = np.einsum(
        "ngcijyx,gocij->ngoyx",
        grouped,
        weight.reshape(groups, -1, *weight.shape[1:]),
        optimize=True,
    )
    result = result.reshape(n, o, *out).astype(input.dtype)
    return result if bias is None else result + bias[:, None, None]


@conv2d_activation.reference
def _(
    input,
    weight,
    bias,
    stride,
    padding,
    dilation,
    groups,
    activation,
    min_val,
    max_val,
    negative_slope,
):
    result = conv2d(input, weight, bias, stride, padding, dilation, groups)
    return activated(result, activation, min_val, max_val, negative_slope).astype(input.dtype)


@conv2d_add_activation.reference
def _(
    input,
    weight,
    bias,
    stride,
    padding,
    dilation,
    groups,
    residual,
    activation,
    min_val,
    max_val,
    negative_slope,
):
    made = conv2d(input, weight, bias, stride, padding, dilation, groups) + residual
    if activation is not None:
        made = activated(made, activation, min_val, max_val, negative_slope)
    return made.astype(input.dtype)


@conv2d_backward_input.reference
def _(grad, weight, size, stride, padding, dilation, groups):
    kernel, out = weight.shape[2:], grad.shape[2:]
    result = np.zeros(
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
            result[
                :, :, y : y + stride[0] * out[0] : stride[0], x : x + stride[1] * out[1] : stride[1]
            ] += parts[:, :, i, j]
    return result[:, :, padding[0] : padding[0] + size[2], padding[1] : padding[1] + size[3]]


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


_NUMBERS = (-0.5, 0.75, 0.1)


@conv2d_activation.samples
def _(s):
    for number, kind in enumerate(("relu", "hardtanh", "leaky_relu", "silu", "hardswish")):
        bias = s.array(4) if number % 2 else None
        rest = (1, 1 + number % 2), (1, 0), (1, 1), 2 - number % 2, kind, *_NUMBERS
        yield s(
            s.array(2, 4, 5, 6), s.array(4, 2 + number % 2 * 2, 3, 2), bias, *rest
        ).without_gradient()


@conv2d_add_activation.samples
def _(s):
    for number, kind in enumerate((None, "relu", "hardtanh", "leaky_relu", "silu", "hardswish")):
        bias = s.array(4) if number % 2 else None
        rest = s.array(2, 4, 5, 5), kind, *_NUMBERS
        yield s(
            s.array(2, 4, 5, 5), s.array(4, 4, 1, 1), bias, (1, 1), (0, 0), (1, 1), 1, *rest
        ).without_gradient()
    rest = s.array(2, 5, 4, 4).transpose(0, 3, 2, 1), "relu", *_NUMBERS
    yield s(
        s.array(2, 2, 7, 9), s.array(4, 1, 3, 3), None, (2, 2), (1, 1), (1, 1), 2, *rest
    ).without_gradient()


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


conv2d_activation.error(
    "ValueError",
    lambda s: s(
        *(s.array(1, 2, 3, 3), s.array(2, 2, 1, 1), None, 1, 0, 1, 1), *("gelu", *_NUMBERS)
    ),
    contains=["activation", "gelu"],
)
conv2d_add_activation.error(
    "ShapeError",
    lambda s: s(
        *(s.array(1, 2, 3, 3), s.array(2, 2, 1, 1), None, 1, 0, 1, 1),
        *(s.array(1, 2, 3, 1), None, *_NUMBERS),
    ),
    contains=["conv2d_add_activation", "residual", "(1, 2, 3, 1)", "(1, 2, 3, 3)"],
)
conv2d_add_activation.error(
    "DTypeError",
    lambda s: s(
        *(s.array(1, 2, 3, 3), s.array(2, 2, 1, 1), None, 1, 0, 1, 1),
        *(s.array(1, 2, 3, 3, dtype="float64"), None, *_NUMBERS),
    ),
    contains=["conv2d_add_activation", "residual"],
)
conv2d_add_activation.error(
    "ValueError",
    lambda s: s(
        *(s.array(1, 2, 3, 3), s.array(2, 2, 1, 1), None, 1, 0, 1, 1),
        *(s.array(1, 2, 3, 3), "gelu", *_NUMBERS),
    ),
    contains=["activation", "gelu"],
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
