"""The layers' formulas in NumPy."""

import math

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def erf(x):
    return np.vectorize(math.erf)(x)


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def log_softmax(x, axis):
    return np.log(softmax(x, axis))


def conv2d(x, w, b, stride, padding, dilation, groups):
    """Convolve; ``padding`` is ((top, bottom), (left, right))."""
    x = np.pad(x, ((0, 0), (0, 0), *padding))
    batch, channels, height, width = x.shape
    filters, _, rows, columns = w.shape
    out_h = (height - dilation[0] * (rows - 1) - 1) // stride[0] + 1
    out_w = (width - dilation[1] * (columns - 1) - 1) // stride[1] + 1
    result = np.zeros((batch, filters, out_h, out_w), x.dtype)
    a, f = channels // groups, filters // groups
    for g in range(groups):
        for i in range(out_h):
            for j in range(out_w):
                top, left = i * stride[0], j * stride[1]
                window = x[
                    :,
                    g * a : (g + 1) * a,
                    top : top + dilation[0] * (rows - 1) + 1 : dilation[0],
                    left : left + dilation[1] * (columns - 1) + 1 : dilation[1],
                ]
                kernels = w[g * f : (g + 1) * f]
                result[:, g * f : (g + 1) * f, i, j] = np.einsum("nchw,fchw->nf", window, kernels)
    return result if b is None else result + b[:, None, None]


def pool2d(x, size, stride, reduce):
    out_h, out_w = (x.shape[2] - size) // stride + 1, (x.shape[3] - size) // stride + 1
    result = np.empty((*x.shape[:2], out_h, out_w), x.dtype)
    for i in range(out_h):
        for j in range(out_w):
            window = x[:, :, i * stride : i * stride + size, j * stride : j * stride + size]
            result[:, :, i, j] = reduce(window, (2, 3))
    return result
