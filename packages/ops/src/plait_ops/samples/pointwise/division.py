"""Test data of pointwise/division: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.pointwise.division import (
    div,
    div_trunc,
    divide,
    floor_divide,
    fmod,
    remainder,
    true_divide,
)


def _masked_zero(function):
    """Make an integer function give 0 for a divisor 0, as kernels do."""

    def divide(a, b):
        if a.dtype.kind == "f":
            return function(a, b)
        return np.where(b == 0, 0, function(a, np.where(b == 0, 1, b)))

    return divide


def _trunc(a, b):
    if a.dtype.kind == "f":
        return np.trunc(a / b)
    floor = np.floor_divide(a, b)
    return floor + ((a % b != 0) & ((a < 0) != (b < 0))).astype(a.dtype)


def _floor_divide(a, b):
    return np.floor_divide(a, b)


true_divide.reference(np.divide)
div_trunc.reference(_masked_zero(_trunc))
floor_divide.reference(_masked_zero(_floor_divide))
remainder.reference(_masked_zero(np.remainder))
fmod.reference(_masked_zero(np.fmod))


@div.reference
def _(self, other, rounding_mode=None):
    return {None: true_divide, "floor": floor_divide, "trunc": div_trunc}[rounding_mode](
        self, other
    )


@div.samples
def _(s):
    yield s(s.array(2, 3), s.array(3, low=0.5))
    yield s(s.array(3, dtype="int64"), 2)
    yield s(
        s.array(3, dtype="int64"), s.array(3, dtype="int64", low=1, high=5), rounding_mode="floor"
    )
    yield s(s.array(3, dtype="int64"), 2, rounding_mode="trunc")
    yield s(s.array(3), s.array(3, low=0.5), rounding_mode="floor").without_gradient()
    yield s(3.0, s.array(2, 2, low=0.5))


div.error(
    "ValueError",
    lambda s: s(s.array(2), 2, rounding_mode="up"),
    contains=["div", "rounding_mode", "up"],
)
div.error(
    "ShapeError", lambda s: s(s.array(2, 3), s.array(4)), contains=["broadcast", "(2, 3)", "(4,)"]
)


divide.reference(
    lambda self, other, rounding_mode=None: div(self, other, rounding_mode=rounding_mode)
)
for each in (divide,):
    each.samples(lambda s: iter([s(s.array(2, 3), s.array(3, low=0.5)), s(s.array(3), 2.0)]))
    each.error(
        "ShapeError",
        lambda s: s(s.array(2, 3), s.array(4)),
        contains=["broadcast", "(2, 3)", "(4,)"],
    )


@floor_divide.samples
@div_trunc.samples
@remainder.samples
@fmod.samples
def _(s):
    yield s(s.array(20, dtype="int64"), s.array(20, dtype="int64")).without_gradient()
    yield s(s.array(20, dtype="uint8"), s.array(20, dtype="uint8"))
    yield s(s.array(20, low=0.1), s.array(20, low=0.5, high=1.5))


for each in (true_divide, floor_divide, remainder, fmod):
    each.error(
        "TypeError", lambda s: s(1, 2.0), contains=[each.schema.base, "self", "Tensor", "number"]
    )
    each.error("TypeError", lambda s: s(s.array(2), "x"), contains=[each.schema.base])
