"""Test data of reduction/counting: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.reduction.counting import bincount, histc, histogram


@bincount.reference
def _(self, weights=None, minlength=0):
    result = np.bincount(self, weights, minlength)
    if weights is None:
        return result.astype("int64")
    return result.astype("float32" if weights.dtype == "float32" else "float64")


bincount.samples(
    lambda s: iter(
        [
            s(s.indices(5, 20)),
            s(s.indices(5, 20, dtype="uint8"), minlength=9),
            s(s.indices(5, 9), s.array(9)),
            s(s.indices(5, 9, dtype="int32"), s.array(9, dtype="int64"), 2),
            s(s.indices(5, 0), minlength=3),
        ]
    )
)
bincount.error("ValueError", lambda s: s(np.array([1, -2])), contains=["bincount", "self", "-2"])
bincount.error("DTypeError", lambda s: s(s.array(2)), contains=["bincount", "self", "float32"])
bincount.error(
    "ShapeError", lambda s: s(s.indices(3, 2, 2)), contains=["bincount", "self", "(2, 2)"]
)
bincount.error(
    "ShapeError",
    lambda s: s(s.indices(3, 2), s.array(3)),
    contains=["bincount", "weights", "(3,)", "(2,)"],
)


@histc.reference
def _(self, bins=100, min=0, max=0):
    if min == max and self.size:
        min, max = self.min(), self.max()
    if min == max:
        min, max = min - 1, max + 1
    x = self.reshape(-1)
    x = x[(x >= min) & (x <= max)]
    at = np.minimum(
        np.floor((x - self.dtype.type(min)) * bins / self.dtype.type(max - min)), bins - 1
    )
    return np.bincount(at.astype("int64"), minlength=bins).astype(self.dtype)


histc.samples(
    lambda s: (
        each.without_gradient()
        for each in [
            s(s.array(3, 40), 7),
            s(s.array(100), 10, -1, 2),
            s(np.array([1, 2, 1, np.nan, 5], "float32"), bins=4, min=0, max=3),
            s(np.ones(3, "float32"), 3),
            s(s.array(0), 3),
            s(s.array(30, dtype="float64"), 5, min=-3.0, max=3.0),
        ]
    )
)
histc.error("ValueError", lambda s: s(s.array(3), 0), contains=["histc", "bins", "0"])
histc.error("ValueError", lambda s: s(s.array(3), 3, 2, 1), contains=["histc", "min", "max"])
histc.error(
    "ValueError", lambda s: s(np.array([1, np.inf], "float32"), 3), contains=["histc", "finite"]
)


@histogram.reference
def _(self, bins, weight=None, density=False):
    result, edges = np.histogram(
        self.reshape(-1), bins, None, density, None if weight is None else weight.reshape(-1)
    )
    return result.astype(self.dtype), edges.astype(self.dtype)


histogram.samples(
    lambda s: iter(
        [
            s(s.array(3, 40), np.array([-2, -1, 0, 2.5], "float32")).without_gradient(),
            s(
                s.array(50), np.array([-2, 2], "float32"), weight=s.array(50, low=0)
            ).without_gradient(),
            s(s.array(50, dtype="float64"), np.linspace(-3, 3, 7), density=True).without_gradient(),
            s(np.array([0, 1, 2, 3], "float32"), np.array([0, 1, 3], "float32")).without_gradient(),
        ]
    )
)
histogram.error(
    "ShapeError", lambda s: s(s.array(3), s.array(1)), contains=["histogram", "bins", "(1,)"]
)
histogram.error(
    "DTypeError",
    lambda s: s(s.array(3), s.array(3, dtype="float64")),
    contains=["histogram", "bins", "float64"],
)
