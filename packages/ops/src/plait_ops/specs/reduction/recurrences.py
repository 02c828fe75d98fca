"""Linear recurrences along a dimension."""

from plait_ops.calls import cat, clone, linear_recurrence, mul, narrow, zeros
from plait_ops.spec import Operator
from plait_ops.words import check, conjugate, numel, require, require_same, result, wrap_dim

recurrence = Operator(
    "linear_recurrence(Tensor factors, Tensor terms, int dim, bool reverse) -> Tensor",
    doc="""
    ``y[i] = factors[i] * y[i - 1] + terms[i]`` along `dim`, from ``y[0] = terms[0]`` on; if `reverse`, over the same links from
    the end, ``y[i] = factors[i + 1] * y[i + 1] + terms[i]``. The first factor is not used.

    Shape: that of both. Dtypes: floating and complex, of both the same. Raises: ShapeError, DTypeError, IndexError.
    """,
    kernel="both operands have one shape and dtype, any strides; in[2] is not wrapped; with in[3] from the end; the result is in C order.",
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


@recurrence.cost
def _(terms):
    return 2 * numel(terms)


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
