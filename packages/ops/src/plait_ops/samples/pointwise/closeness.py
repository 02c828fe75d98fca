"""Test data of pointwise/closeness: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.pointwise.closeness import isclose


@isclose.reference
def _(self, other, rtol=1e-5, atol=1e-8, equal_nan=False):
    with np.errstate(all="ignore"):
        return np.asarray(np.isclose(self, other, rtol, atol, equal_nan))


@isclose.samples
def _(s):
    x = s.array(20)
    yield s(x, (x * (1 + s.array(20) * 1e-5)).astype("float32"), 1.5e-5, 0.0)
    yield s(x, (x + s.array(20) * 1e-3).astype("float32"), atol=1e-3, rtol=0.0)
    odd = np.array([np.nan, np.inf, -np.inf, np.inf, 0.0, 1.0], "float32")
    yield s(odd, odd[::-1])
    yield s(odd, odd, equal_nan=True)
    yield s(odd, odd, rtol=0.0, atol=0.0)
    yield s(s.array(2, 1, 3, dtype="int64"), s.array(4, 1, dtype="int64"), atol=2.0)
    yield s(s.array(5, dtype="bool"), s.array(5, dtype="bool"))
    yield s(s.array(5, dtype="uint8"), s.array(5, dtype="float64"), 0.5)
    yield s(s.array(5, dtype="float16"), s.array(5, dtype="float16"), 0.5)
    z = s.array(9, dtype="complex64")
    yield s(z, (z * (1 + s.array(9) * 1e-5)).astype("complex64"), 2e-5, 0.0)
    yield s(s.array(), s.array())
    yield s(s.array(0, 3), s.array(3))


isclose.error(
    "ShapeError", lambda s: s(s.array(2, 3), s.array(4)), contains=["broadcast", "(2, 3)", "(4,)"]
)
isclose.error(
    "ValueError", lambda s: s(s.array(2), s.array(2), -1.0), contains=["isclose", "rtol", "-1"]
)
isclose.error(
    "ValueError", lambda s: s(s.array(2), s.array(2), 0.0, -1.0), contains=["isclose", "atol", "-1"]
)
