"""Test data of pointwise/floating_point: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.pointwise.floating_point import (
    LARGEST_16,
    frexp,
    frexp_exponent,
    frexp_mantissa,
    half_nextafter_,
    ldexp,
    nextafter,
    nextafter_elements,
)

HALVES = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 6e-8, -6e-8, 6.1e-5, 0.3, 65504.0]

nextafter_elements.reference(np.nextafter)
nextafter_elements.special_values = False  # `half_nextafter` is the reference for halves


@half_nextafter_.reference
def _(self, other, digits, least, largest):
    return np.nextafter(self, other).astype("float64")


half_nextafter_.samples(
    lambda s: iter(
        [
            s(
                np.array(HALVES[:-1], "float16")[:, None],
                np.array(HALVES[:-1], "float16"),
                11,
                -24,
                LARGEST_16,
            ).without_gradient()
        ]
    )
)
half_nextafter_.error("TypeError", lambda s: s("x"), contains=["half_nextafter", "self"])
nextafter.reference(lambda self, other: np.nextafter(self, other))


@nextafter.samples
def _(s):
    yield s(s.array(3, 4), s.array(4)).without_gradient()
    yield s(s.strided(3, 4, dtype="float64"), s.array(3, 4, dtype="float64")).without_gradient()
    values = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38], "float32")
    yield s(values[:, None], values).without_gradient()
    halves = np.array(HALVES, "float16")
    yield s(halves[:, None], halves).without_gradient()


nextafter.error(
    "DTypeError", lambda s: s(s.array(2, dtype="int64"), s.array(2)), contains=["self", "int64"]
)


@ldexp.reference
def _(self, other):
    kinds = [x.dtype for x in (self, other) if x.dtype.kind == "f"]
    result = np.result_type(*kinds) if kinds else np.dtype("float32")
    return (self.astype("float64") * np.exp2(other.astype("float64"))).astype(result)


@ldexp.samples
def _(s):
    yield s(s.array(3, 4), s.array(4, dtype="int64"))
    yield s(s.array(3, dtype="int32"), s.array(3, dtype="int64"))
    yield s(s.strided(3, 4, dtype="float64"), s.array(3, 4))
    yield s(np.array([2.0**-100], "float32"), np.array([200]))
    yield s(np.array([1.0]), np.array([255]))
    yield s(s.array(0), s.array(1))


ldexp.error("ShapeError", lambda s: s(s.array(2, 3), s.array(4)), contains=["(2, 3)", "(4,)"])
frexp_mantissa.reference(lambda x: np.frexp(x)[0])
frexp_exponent.reference(lambda x: np.where(np.isfinite(x), np.frexp(x)[1], 0))


@frexp.reference
def _(self):
    mantissa, exponent = np.frexp(self)
    return mantissa, np.where(np.isfinite(self), exponent, 0).astype("int32")


@frexp.samples
def _(s):
    yield s(s.array(3, 4, low=0.1))
    yield s(s.strided(3, 4, dtype="float64"))
    yield s(
        np.array([0.0, np.inf, -np.inf, np.nan, 1.0, -8.0, 1e-40], "float32")
    ).without_gradient()
    yield s(s.array(0))


frexp.error("DTypeError", lambda s: s(s.array(2, dtype="int64")), contains=["self", "int64"])
