"""Test data of pointwise/where: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.pointwise.where import masked_fill, where_, where_condition

where_.reference(lambda condition, a, b: np.where(condition, a, b))


where_.error(
    "DTypeError",
    lambda s: s(s.array(2), s.array(2), s.array(2)),
    contains=["where", "condition", "bool", "float32"],
)


@where_.samples
def _(s):
    yield s(s.array(2, 3, dtype="bool"), 1.5, 2)
    yield s(s.array(2, 3, dtype="bool"), s.array(3), 0)
    yield s(s.array(3, dtype="bool"), s.array(2, 3), s.array(2, 1, dtype="float64"))
    yield s(np.array([0, 1, 7], np.uint8), s.array(2, 3), 0)


masked_fill.reference(lambda self, mask, value: np.where(mask, value, self))


@masked_fill.samples
def _(s):
    mask = s.array(3, dtype="bool")
    yield s(s.array(3, dtype="bool"), mask, 10)
    yield s(s.array(3, dtype="int64"), mask, 1.5)
    yield s(s.array(3), mask, s.array(dtype="float64"))
    yield s(s.array(2, 3), np.array([0, 1, 7], np.uint8), 2)


masked_fill.error(
    "ValueError",
    lambda s: s(s.array(2, dtype="uint8"), s.array(2, dtype="bool"), 300),
    contains=["masked_fill", "`value`", "uint8", "300"],
)
masked_fill.error(
    "DTypeError",
    lambda s: s(s.array(2), s.array(2, dtype="bool"), 1j),
    contains=["masked_fill", "value", "complex", "float32"],
)
masked_fill.error(
    "DTypeError",
    lambda s: s(s.array(2), s.array(2), 1),
    contains=["masked_fill", "mask", "bool", "float32"],
)


where_condition.reference(lambda condition: list(np.nonzero(np.atleast_1d(condition))))
where_condition.samples(
    lambda s: iter(
        [
            s(s.array(3, 4, dtype="bool")),
            s(s.array(5, dtype="int64")),
            s(np.array(True)),
            s(s.array(0, 2)),
        ]
    )
)
where_condition.error("TypeError", lambda s: s("a"), contains=["condition"])
