"""Linear recurrences along a dimension."""

import numpy as np

from plait_ops.calls import cat, clone, linear_recurrence, mul, narrow, zeros
from plait_ops.spec import Operator
from plait_ops.words import check, conjugate, require, require_same, result, wrap_dim

recurrence = Operator(
    "linear_recurrence(Tensor factors, Tensor terms, int dim, bool reverse) -> Tensor",
    doc="""
    ``y[i] = factors[i] * y[i - 1] + terms[i]`` along `dim`, from ``y[0] = terms[0]`` on; if `reverse`, over the same links from
    the end, ``y[i] = factors[i + 1] * y[i + 1] + terms[i]``. The first factor is not used.

    Shape: that of both. Dtypes: floating and complex, of both the same. Raises: ShapeError, DTypeError, IndexError.
    """,
    dtypes="inexact",
    internal=True,
)


@recurrence.shape
def _(factors, terms, dim):
    wrap_dim("dim", dim, factors.shape)
    require("factors", factors.dtype, "inexact")
    require_same("terms", terms, "factors", factors)
    check(
        terms.shape == factors.shape,
        f"`terms` of shape {terms.shape} must have the shape of `factors`, {factors.shape}",
    )
    return result(factors.shape, factors.dtype)


@recurrence.vjp("factors")
def _(g, factors, result, dim, reverse):
    if factors.ndim == 0:
        return zeros(factors.shape, dtype=g.dtype, device=g.device)
    at = wrap_dim("dim", dim, factors.shape)
    n = factors.shape[at]
    if n == 0:
        return clone(factors)
    back = linear_recurrence(conjugate(factors), g, at, not reverse)
    shape = list(factors.shape)
    shape[at] = 1
    none = zeros(shape, dtype=g.dtype, device=g.device)
    late, early = narrow(back, at, 1, n - 1), narrow(result, at, 0, n - 1)
    if reverse:
        late, early = narrow(back, at, 0, n - 1), narrow(result, at, 1, n - 1)
    return cat([none, mul(late, conjugate(early))], at)


@recurrence.vjp("terms")
def _(g, factors, dim, reverse):
    return linear_recurrence(conjugate(factors), g, dim, not reverse)


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
