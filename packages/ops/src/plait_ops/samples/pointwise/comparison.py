"""Test data of pointwise/comparison: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.pointwise.comparison import (
    eq,
    ge,
    gt,
    le,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    lt,
    ne,
)


def _compare(operator, reference):
    name = operator.schema.base
    operator.reference(reference)

    @operator.samples
    def _(s):
        yield s(s.array(30, dtype="int64"), s.array(30, dtype="int64"))
        yield s(
            np.array([np.nan, 1, np.inf, -0.0], "float32"),
            np.array([np.nan, np.nan, np.inf, 0], "float32"),
        )
        yield s(s.array(30, dtype="uint8"), 2.5)

    operator.error("TypeError", lambda s: s(1, 2.0), contains=[name, "self", "Tensor", "number"])


_compare(eq, np.equal)
_compare(ne, np.not_equal)
_compare(lt, np.less)
_compare(le, np.less_equal)
_compare(gt, np.greater)
_compare(ge, np.greater_equal)
logical_and.reference(np.logical_and)
logical_or.reference(np.logical_or)
logical_xor.reference(np.logical_xor)
logical_not.reference(np.logical_not)
