"""Test data of pointwise/rounding: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.pointwise.rounding import (
    ceil,
    decimals_,
    floor,
    frac,
    round_,
    special_round,
    trunc,
)


def _keep_integers(function):
    return lambda x: x if x.dtype.kind in "biu" else function(x)


floor.reference(_keep_integers(np.floor))
ceil.reference(_keep_integers(np.ceil))
round_.reference(_keep_integers(np.round))
trunc.reference(_keep_integers(np.trunc))
frac.reference(lambda x: x - np.trunc(x))


_TIES = [0.5, 1.5, -0.5, -2.5, 2.0, np.inf, -np.inf, np.nan, -0.0]
for each in (floor, ceil, round_, trunc):
    each.samples(
        lambda s: iter(
            [s(np.array(_TIES, dtype)).without_gradient() for dtype in ("float32", "float64")]
        )
    )


@decimals_.reference
@special_round.reference
def _(self, decimals=0):
    if decimals == 0:
        return np.round(self).astype(self.dtype)
    scale = 10.0 ** abs(decimals)
    result = np.round(self * scale) / scale if decimals > 0 else np.round(self / scale) * scale
    return result.astype(self.dtype)


@decimals_.samples
@special_round.samples
def _(s):
    for decimals in (0, 1, 2, -1):
        yield s(
            s.array(3, 4, dtype="float64", low=-90.0, high=90.0), decimals=decimals
        ).without_gradient()
    yield s(s.strided(3, 4), decimals=1).without_gradient()
    yield s(s.array(3, dtype="int64"), decimals=0)


for each in (decimals_, special_round):
    each.error(
        "ValueError",
        lambda s: s(s.array(2), decimals=400),
        contains=[each.schema.base, "decimals", "400"],
    )
    each.error(
        "DTypeError", lambda s: s(s.array(2, dtype="int64"), decimals=1), contains=["self", "int64"]
    )
