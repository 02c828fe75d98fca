"""Test data of reduction/covariance: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.reduction.covariance import corrcoef, cov_, weights_at_least_zero_

weights_at_least_zero_.reference(lambda weights: weights)
weights_at_least_zero_.special_values = False  # negative weights are refused
weights_at_least_zero_.error(
    "ValueError",
    lambda s: s(s.np.array([1.0, -2.0], "float32")),
    contains=["`weights`", "at least 0", "-2"],
)


@cov_.reference
def _(self, correction=1, fweights=None, aweights=None):
    dtype = self.dtype if self.dtype.kind in "fc" else np.dtype("float32")
    with np.errstate(all="ignore"):
        return np.asarray(
            np.cov(self, ddof=correction, fweights=fweights, aweights=aweights)
        ).astype(dtype)


@corrcoef.reference
def _(self):
    dtype = self.dtype if self.dtype.kind in "fc" else np.dtype("float32")
    return np.asarray(np.corrcoef(self)).astype(dtype)


@cov_.samples
def _(s):
    yield s(s.array(3, 5)).loosely(10)
    yield s(s.array(5)).loosely(10)
    yield s(s.array(1, 5)).loosely(10)
    yield s(s.array(1, 3), fweights=s.np.array([1, 2, 3])).loosely(10)
    yield s(s.array(3, 5), correction=0).loosely(10)
    yield s(s.array(2, 5, dtype="int64")).loosely(10)
    yield (
        s(s.array(3, 4), fweights=s.np.array([1, 2, 0, 3]), aweights=s.array(4, low=0.5, high=2.0))
        .loosely(10)
        .without_gradient()
    )
    yield s(s.strided(3, 5)).loosely(10)


corrcoef.samples(
    lambda s: iter(
        [
            s(s.array(3, 5)).loosely(10),
            s(s.array(5)).loosely(10),
            s(s.array(1, 5)).loosely(10).without_gradient(),
            s(s.strided(2, 5)).loosely(10),
        ]
    )
)
cov_.error("ShapeError", lambda s: s(s.array(2, 2, 2)), contains=["cov", "`self`", "(2, 2, 2)"])
cov_.error(
    "ShapeError",
    lambda s: s(s.array(2, 4), fweights=s.np.array([1, 2])),
    contains=["cov", "fweights", "(2,)", "4"],
)
corrcoef.error("ShapeError", lambda s: s(s.array(2, 2, 2)), contains=["`self`", "(2, 2, 2)"])
for _name, _dtype in (("fweights", "int64"), ("aweights", "float32")):
    cov_.error(
        "ValueError",
        lambda s, name=_name, dtype=_dtype: s(
            s.array(2, 3), **{name: s.np.array([1, -2, 1], dtype)}
        ),
        contains=["cov", "`weights`", "at least 0", "-2"],
    )
cov_.error(
    "DTypeError",
    lambda s: s(s.array(2, 3), fweights=s.array(3, low=1.0)),
    contains=["cov", "`fweights`", "integer", "float32"],
)
cov_.error(
    "DTypeError",
    lambda s: s(s.array(2, 3), aweights=s.np.array([1, 2, 3])),
    contains=["cov", "`aweights`", "floating", "int64"],
)
