"""Test data of pointwise/signs: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.samples.pointwise_samples import predicate
from plait_ops.specs.pointwise.signs import abs_, copysign, heaviside, sgn, sign, signbit

predicate(signbit, lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0)
heaviside.reference(lambda x, values: np.where(x == 0, values, x > 0))


_TIES = [0.5, 1.5, -0.5, -2.5, 2.0, np.inf, -np.inf, np.nan, -0.0]

abs_.reference(np.abs)
sign.reference(lambda x: x if x.dtype == bool else np.sign(x))
for each in (abs_, sign):
    each.samples(
        lambda s: iter(
            [s(np.array(_TIES, dtype)).without_gradient() for dtype in ("float32", "float64")]
        )
    )
copysign.reference(np.copysign)


copysign.error(
    "TypeError", lambda s: s(1, 2.0), contains=[copysign.schema.base, "self", "Tensor", "number"]
)
copysign.error("TypeError", lambda s: s(s.array(2), "x"), contains=[copysign.schema.base])

sgn.reference(
    lambda x: (
        x
        if x.dtype == bool
        else np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x)))
        if x.dtype.kind == "c"
        else np.sign(x)
    )
)
