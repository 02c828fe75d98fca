"""Test data of pointwise/activations: references in NumPy, sample calls, errors."""

import math

import numpy as np

from plait_ops.specs.pointwise.activations import (
    SELU_ALPHA,
    SELU_SCALE,
    celu,
    celu_backward,
    elu,
    elu_backward,
    hardsigmoid,
    hardsigmoid_backward,
    hardswish,
    hardswish_backward,
    hardtanh,
    hardtanh_backward,
    leaky_relu,
    leaky_relu_backward,
    log_sigmoid,
    log_sigmoid_backward,
    mish,
    mish_backward,
    relu,
    relu6,
    relu_backward,
    selu,
    selu_backward,
    sigmoid,
    sigmoid_backward,
    silu,
    silu_backward,
    softplus,
    softplus_backward,
    softsign,
    softsign_backward,
    tanhshrink,
    tanhshrink_backward,
)

SPECIAL = [0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 6.0, math.inf, math.nan, 1e-30, 40.0, -40.0]


def _activation(operator, reference):
    operator.reference(reference)

    @operator.samples
    def _(s):
        for dtype in ("float32", "float64"):
            yield s(np.array(SPECIAL, dtype)).without_gradient()
        yield s(s.array(200, low=-9.0, high=9.0))


def _samples_of_a_derivative(operator, *parameters):
    """Yield special and large numbers, a range, and `parameters` that are no defaults."""

    @operator.samples
    def _(s):
        extremes = np.array([*SPECIAL, -math.inf, 700.0, -700.0, 88.0, -88.0, 20.0, -20.0])
        for dtype in ("float32", "float64"):
            values = extremes.astype(dtype)
            yield s(np.ones_like(values), values).without_gradient()
        yield s(s.array(200), s.array(200, low=-9.0, high=9.0))
        if parameters:
            yield s(s.array(4, 5), s.array(4, 5), *parameters)


def _backward(operator, slope, *parameters):
    """Give a derivative its reference, the gradient times `slope` in float64, and samples."""

    def reference(g, x, *numbers):
        return g * slope(x.astype("float64"), *(float(x.dtype.type(number)) for number in numbers))

    operator.reference(reference)
    _samples_of_a_derivative(operator, *parameters)


def _sigmoid(x):
    return np.where(x < 0, np.exp(np.minimum(x, 0)), 1) / (1 + np.exp(-np.abs(x)))


def _mish_slope(x):
    w = np.exp(np.minimum(x, 40))
    w = w * (w + 2)
    near_one = 4 * (w + 1) / (w + 2) ** 2  # 1 - tanh(softplus(x)) ** 2
    return w / (w + 2) + x * near_one * np.where(x > 40, 0, _sigmoid(x))


def _relu6(x):
    return np.minimum(np.maximum(x, 0), 6)


relu.reference(lambda x: np.maximum(x, 0))
relu_backward.reference(lambda g, y: np.where(y <= 0, 0, g))


relu.samples(
    lambda s: iter(
        [
            s(np.array(SPECIAL, "float32")).without_gradient(),
            s(s.array(200, low=-9.0, high=9.0)),
            s(s.array(50, dtype="int8")),
        ]
    )
)

_activation(leaky_relu, lambda x, slope: np.where(x > 0, x, x * x.dtype.type(slope)))
leaky_relu_backward.reference(lambda g, x, slope: np.where(x > 0, g, g * x.dtype.type(slope)))
_activation(elu, lambda x, alpha: np.where(x > 0, x, x.dtype.type(alpha) * np.expm1(x)))

elu_backward.reference(
    lambda g, x, alpha: np.where(x > 0, g, g * (x.dtype.type(alpha) * np.exp(x)))
)

_activation(selu, lambda x: SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * np.expm1(x)))

_activation(
    celu,
    lambda x, alpha: np.where(x > 0, x, x.dtype.type(alpha) * np.expm1(x / x.dtype.type(alpha))),
)


_backward(selu_backward, lambda x: SELU_SCALE * np.where(x > 0, 1, SELU_ALPHA * np.exp(x)))
_backward(celu_backward, lambda x, alpha: np.where(x > 0, 1, np.exp(x / alpha)), 0.3)

for each in (leaky_relu_backward, elu_backward):

    @each.samples
    def _(s):
        yield s(s.array(4, 5), s.array(4, 5), 0.3)


_activation(silu, lambda x: x / (1 + np.exp(-x)))
silu_backward.reference(lambda g, x: g * (_sigmoid(x) * (1 + x * (1 - _sigmoid(x)))))
_activation(mish, lambda x: x * np.tanh(np.logaddexp(0, x)))

_activation(
    softplus,
    lambda x, beta, threshold: np.where(
        x * x.dtype.type(beta) > threshold,
        x,
        np.logaddexp(0, x * x.dtype.type(beta)) / x.dtype.type(beta),
    ),
)

_activation(log_sigmoid, lambda x: -np.logaddexp(0, -x))
_activation(tanhshrink, lambda x: x - np.tanh(x))
_activation(softsign, lambda x: x / (1 + np.abs(x)))
_backward(mish_backward, _mish_slope)
_backward(
    softplus_backward,
    lambda x, beta, threshold: np.where(x * beta > threshold, 1, _sigmoid(x * beta)),
    2.0,
    3.0,
)
_backward(log_sigmoid_backward, lambda x: _sigmoid(-x))
tanhshrink_backward.reference(lambda g, x: g * np.tanh(x) * np.tanh(x))
_samples_of_a_derivative(tanhshrink_backward)
_backward(softsign_backward, lambda x: 1 / (1 + np.abs(x)) ** 2 + (x - x))


softplus.samples(
    lambda s: iter(
        [
            s(s.array(50, low=-9.0, high=9.0), 2.0, 5.0),
            s(np.array(SPECIAL, "float32")).without_gradient(),
        ]
    )
)

_activation(
    hardtanh, lambda x, low, high: np.minimum(np.maximum(x, x.dtype.type(low)), x.dtype.type(high))
)

_activation(relu6, _relu6)
_activation(hardsigmoid, lambda x: _relu6(x + 3) / 6)
_activation(hardswish, lambda x: x * _relu6(x + 3) / 6)


@hardtanh_backward.reference
def _(g, x, low, high):
    return np.where((x <= x.dtype.type(low)) | (x >= x.dtype.type(high)), 0, g)


hardsigmoid_backward.reference(lambda g, x: np.where((x > -3) & (x < 3), g / 6, 0))
hardswish_backward.reference(
    lambda g, x: np.where(x <= -3, 0, np.where(x >= 3, g, g * (x / 3 + 0.5)))
)
_samples_of_a_derivative(hardtanh_backward, -0.5, 2.0)
_samples_of_a_derivative(hardsigmoid_backward)
_samples_of_a_derivative(hardswish_backward)


WIDE = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-30, 80.0, -80.0, 1e30]

sigmoid.reference(lambda x: 1 / (1 + np.exp(-x)))
sigmoid_backward.reference(lambda g, y: g * y * (1 - y))


sigmoid.samples(
    lambda s: iter(
        [s(np.array(WIDE, dtype)).without_gradient() for dtype in ("float32", "float64")]
        + [s(s.array(1000, high=9.0, low=0.0))]
    )
)
