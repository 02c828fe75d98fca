"""Test data of reduction/recurrences: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.reduction.recurrences import recurrence


@recurrence.reference
def _(factors, terms, dim, reverse):
    kind = "complex128" if factors.dtype.kind == "c" else "float64"
    f = np.moveaxis(factors.reshape(factors.shape or (1,)), dim, 0).astype(kind)
    made = np.moveaxis(terms.reshape(terms.shape or (1,)), dim, 0).astype(kind)
    for i in range(1, len(made)):
        if reverse:
            made[-1 - i] += f[-i] * made[-i]
        else:
            made[i] += f[i] * made[i - 1]
    return np.moveaxis(made, 0, dim).reshape(terms.shape).astype(terms.dtype)


@recurrence.samples
def _(s):
    for reverse in (False, True):
        yield s(s.array(5), s.array(5), 0, reverse)
        yield s(s.array(2, 3, 4), s.array(2, 3, 4), 1, reverse)
        yield s(s.strided(3, 4), s.strided(3, 4), -1, reverse)
        yield s(s.array(0, 3), s.array(0, 3), 0, reverse)
        yield s(s.array(), s.array(), 0, reverse)
    yield s(s.array(3, 4, dtype="float16"), s.array(3, 4, dtype="float16"), 1, True).loosely(4)
    yield s(s.array(3, 4, dtype="complex64"), s.array(3, 4, dtype="complex64"), 0, False)
    yield s(s.array(3, 4, dtype="complex128"), s.array(3, 4, dtype="complex128"), 1, True)


recurrence.error(
    "ShapeError",
    lambda s: s(s.array(2), s.array(3), 0, False),
    contains=["linear_recurrence", "terms", "(2,)", "(3,)"],
)
recurrence.error(
    "DTypeError",
    lambda s: s(s.array(2), s.array(2, dtype="float64"), 0, False),
    contains=["linear_recurrence", "terms", "float64"],
)
recurrence.error(
    "DTypeError",
    lambda s: s(s.array(2, dtype="int64"), s.array(2, dtype="int64"), 0, False),
    contains=["linear_recurrence", "factors", "int64"],
)
recurrence.error(
    "IndexError",
    lambda s: s(s.array(2), s.array(2), 1, False),
    contains=["linear_recurrence", "dim", "1"],
)
