"""Test data of reduction/recurrences: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.reduction.recurrences import all_pole_filter, recurrence


@recurrence.reference
def _(factors, terms, dim, reverse):
    kind = "complex128" if factors.dtype.kind == "c" else "float64"
    f = np.moveaxis(factors.reshape(factors.shape or (1,)), dim, 0).astype(kind)
    result = np.moveaxis(terms.reshape(terms.shape or (1,)), dim, 0).astype(kind)
    for i in range(1, len(result)):
        if reverse:
            result[-1 - i] += f[-i] * result[-i]
        else:
            result[i] += f[i] * result[i - 1]
    return np.moveaxis(result, 0, dim).reshape(terms.shape).astype(terms.dtype)


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


@all_pole_filter.reference
def _(self, factors):
    result = self.astype("float64")
    for t in range(self.shape[2]):
        for k in range(min(factors.shape[1], t)):
            result[:, :, t] -= factors[:, k] * result[:, :, t - 1 - k]
    return result.astype(self.dtype)


@all_pole_filter.samples
def _(s):
    stable = s.array(2, 2, low=-0.45, high=0.45)
    yield s(s.array(1, 2, 5), stable)
    yield s(s.array(2, 1, 4), s.array(1, 3, low=-0.3, high=0.3))
    yield s(s.array(3, 2, 200), stable)
    yield s(s.array(2, 2, 9, dtype="float64"), stable.astype("float64"))
    yield s(s.strided(2, 3, 4), s.strided(3, 6, low=-0.2, high=0.2))
    yield s(s.array(2, 3, 4), s.array(3, 0))
    yield s(s.array(2, 3, 0), s.array(3, 2))


all_pole_filter.error(
    "ShapeError",
    lambda s: s(s.array(2, 3, 4), s.array(2, 2)),
    contains=["all_pole_filter", "`factors`", "(2, 3, 4)", "(2, 2)"],
)
all_pole_filter.error(
    "DTypeError",
    lambda s: s(s.array(2, 3, 4), s.array(3, 2, dtype="float64")),
    contains=["all_pole_filter", "float32", "float64"],
)
