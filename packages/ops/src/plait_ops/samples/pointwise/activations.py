"""Test data of pointwise/activations: references in NumPy, sample calls, errors."""

import math

import numpy as np

from plait_ops.specs.pointwise.activations import (
    SELU_ALPHA,
    SELU_SCALE,
    celu,
    elu,
    elu_backward,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    leaky_relu_backward,
    log_sigmoid,
    mish,
    relu,
    relu6,
    relu_backward,
    selu,
    sigmoid,
    sigmoid_backward,
    silu,
    silu_backward,
    softplus,
    softsign,
    tanhshrink,
)

SPECIAL = [0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 6.0, math.inf, math.nan, 1e-30, 40.0, -40.0]


def _activation(operator, reference):
    operator.reference(reference)

    @operator.samples
    def _(s):
        for dtype in ("float32", "float64"):
            yield s(np.array(SPECIAL, dtype)).without_gradient()
        yield s(s.array(200, low=-9.0, high=9.0))


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


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


WIDE = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-30, 80.0, -80.0, 1e30]

sigmoid.reference(lambda x: 1 / (1 + np.exp(-x)))
sigmoid_backward.reference(lambda g, y: g * y * (1 - y))


sigmoid.samples(
    lambda s: iter(
        [s(np.array(WIDE, dtype)).without_gradient() for dtype in ("float32", "float64")]
        + [s(s.array(1000, high=9.0, low=0.0))]
    )
)
