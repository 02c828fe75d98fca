"""Test data of pointwise/shrinkage: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.pointwise.shrinkage import (
    glu,
    hardshrink,
    prelu,
    prelu_elements,
    rrelu,
    rrelu_slopes,
    shrink_backward,
    softshrink,
    threshold,
    threshold_backward,
    threshold_elements,
)

threshold_elements.reference(lambda x, threshold=0, value=0: np.where(x <= threshold, value, x))
threshold.reference(lambda self, threshold, value: threshold_elements(self, threshold, value))
threshold.error(
    "DTypeError", lambda s: s(s.array(2, dtype="bool"), 0, 1), contains=["self", "bool"]
)


def _shrink(operator, reference):
    operator.reference(reference)

    @operator.samples
    def _(s):
        yield s(s.array(50), 1.25)
        yield s(np.array([0.5, -0.5, 0.0, -0.0, np.inf, -np.inf], "float32")).without_gradient()


_shrink(hardshrink, lambda x, lambd=0.5: np.where((x >= -lambd) & (x <= lambd), 0, x))

_shrink(
    softshrink,
    lambda x, lambd=0.5: np.where(
        np.abs(x) > lambd, x - np.sign(x) * lambd, np.where(x != x, x, 0)
    ),
)
shrink_backward.reference(
    lambda g, x, lambd=0.5: np.where((x >= -x.dtype.type(lambd)) & (x <= x.dtype.type(lambd)), 0, g)
)
threshold_backward.reference(lambda g, x, threshold=0: np.where(x <= x.dtype.type(threshold), 0, g))


for each in (shrink_backward, threshold_backward):

    @each.samples
    def _(s):
        yield s(s.array(4, 5), s.array(4, 5), 0.75)
        borders = np.array([0.5, -0.5, 0.0, np.nan, np.inf, -np.inf], "float32")
        yield s(s.array(6), borders, 0.5).without_gradient()


threshold.samples(lambda s: iter([s(s.array(50), 0.3, 7.0), s(s.array(9, dtype="int64"), 1, 3)]))
prelu_elements.reference(lambda x, weight: np.where(x > 0, x, weight * x))


@prelu.reference
def _(self, weight):
    if weight.ndim and weight.size > 1:
        weight = weight.reshape([weight.size] + [1] * (self.ndim - 2))
    return np.where(self > 0, self, weight * self).astype(self.dtype)


@prelu.samples
def _(s):
    yield s(s.array(3, 4), s.array(1))
    yield s(s.array(2, 3, 4), s.array(3))
    yield s(s.strided(2, 3, dtype="float64"), s.array(3, dtype="float64"))
    yield s(s.array(5), s.array())


prelu.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(4)),
    contains=["prelu", "weight", "(2, 3)", "4"],
)
prelu.error("ShapeError", lambda s: s(s.array(2, 3), s.array(1, 3)), contains=["weight", "(1, 3)"])


rrelu.reference(
    lambda self, lower=0.125, upper=1 / 3, training=False: np.where(
        self > 0, self, self * (lower + upper) / 2
    ).astype(self.dtype)
)
rrelu.samples(
    lambda s: iter([s(s.array(3, 4)), s(s.array(3), 0.1, 0.2), s(s.array(9), 0.1, 0.3, True)])
)
rrelu.error("ValueError", lambda s: s(s.array(2), 0.5, 0.25), contains=["rrelu", "lower", "upper"])
rrelu_slopes.reference(lambda self, lower, upper: np.zeros(self.shape, self.dtype))
rrelu_slopes.samples(
    lambda s: iter([s(s.array(9), 0.1, 0.3), s(s.strided(3, 4, dtype="float64"), 0.5, 0.5)])
)
rrelu_slopes.error(
    "DTypeError",
    lambda s: s(s.array(2, dtype="int64"), 0.1, 0.2),
    contains=["rrelu_slopes", "self", "int64"],
)


@glu.reference
def _(self, dim=-1):
    a, b = np.split(self, 2, dim)
    return (a / (1 + np.exp(-b))).astype(self.dtype)


@glu.samples
def _(s):
    yield s(s.array(3, 4))
    yield s(s.array(4, 3), 0)
    yield s(s.strided(2, 6, dtype="float64"), 1)
    yield s(s.array(0, 4))


glu.error("ShapeError", lambda s: s(s.array(2, 3)), contains=["glu", "dim", "(2, 3)", "3"])
glu.error("IndexError", lambda s: s(s.array(2, 4), 2), contains=["dim", "(2, 4)", "2"])
