"""Test data of pointwise/clamping: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.pointwise.clamping import clamp, clamp_between, clamp_max, clamp_min, clip

clamp_min.reference(np.maximum)
clamp_max.reference(np.minimum)
clamp_between.reference(lambda x, low, high: np.minimum(np.maximum(x, low), high))


@clamp.reference
@clip.reference
def _(self, min=None, max=None):
    result = self if min is None else clamp_min(self, min)
    return result if max is None else clamp_max(result, max)


@clamp.samples
@clip.samples
def _(s):
    yield s(s.distinct(4, 5), -1.2, 1.3)
    yield s(s.distinct(4, 5), min=0.1)
    yield s(s.distinct(4, 5), max=0.1)
    yield s(s.array(8, dtype="int64"), -2, 3)
    yield s(s.array(3, 4), s.array(4, high=0), s.array(3, 1, low=0.1))
    yield s(s.array(8, dtype="int64"), 0.5)


@clamp_between.samples
def _(s):
    yield s(s.array(3, 4), -1, 1.5)
    yield s(s.array(3, 4), s.array(4), 1.5).without_gradient()


for each in (clamp, clip):
    each.error(
        "ValueError",
        lambda s: s(s.array(2, dtype="uint8"), -1, 300),
        contains=[each.schema.base, "`min`", "uint8", "-1"],
    )
    each.error("ValueError", lambda s: s(s.array(2)), contains=[each.name, "min", "max"])
    each.error(
        "ShapeError",
        lambda s: s(s.array(2, 3), s.array(4), 1.0),
        contains=["broadcast", "(2, 3)", "(4,)"],
    )
    each.error(
        "DTypeError", lambda s: s(s.array(2, dtype="bool"), False, True), contains=["self", "bool"]
    )
