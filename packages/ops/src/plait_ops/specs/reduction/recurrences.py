"""Linear recurrences along a dimension."""

from plait_ops import calls as op
from plait_ops.spec import Operator
from plait_ops.words import check, conjugate, numel, require, require_same, result, wrap_dim

recurrence = Operator(
    "linear_recurrence(Tensor factors, Tensor terms, int dim, bool reverse) -> Tensor",
    doc="""
    ``y[i] = factors[i] * y[i - 1] + terms[i]`` along `dim`, beginning with ``y[0] = terms[0]``. With `reverse` it runs from
    the end: ``y[i] = factors[i + 1] * y[i + 1] + terms[i]``, where the last element of y is that of `terms`. The first
    factor is not used.

    Shape: that of both. Dtypes: floating and complex, the same for both. Raises: ShapeError if the shapes differ,
    DTypeError if the dtypes differ, IndexError for a `dim` out of range.
    """,
    kernel="both operands have one shape and dtype, any strides; in[2] may be negative; with in[3] from the end; the result is in C order.",
    dtypes="inexact",
    internal=True,
)
recurrence.batch("dimensions")
recurrence.slices(factors="dim", terms="dim", result="dim")


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
        return op.zeros(factors.shape, dtype=g.dtype, device=g.device)
    at = wrap_dim("dim", dim, factors.shape)
    n = factors.shape[at]
    if n == 0:
        return op.clone(factors)
    back = op.linear_recurrence(conjugate(factors), g, at, not reverse)
    shape = list(factors.shape)
    shape[at] = 1
    none = op.zeros(shape, dtype=g.dtype, device=g.device)
    late, early = op.narrow(back, at, 1, n - 1), op.narrow(result, at, 0, n - 1)
    if reverse:
        late, early = op.narrow(back, at, 0, n - 1), op.narrow(result, at, 1, n - 1)
    return op.cat([none, op.mul(late, conjugate(early))], at)


@recurrence.vjp("terms")
def _(g, factors, dim, reverse):
    return op.linear_recurrence(conjugate(factors), g, dim, not reverse)


all_pole_filter = Operator(
    "all_pole_filter(Tensor self, Tensor factors) -> Tensor",
    doc="""
    The recursive part of a digital filter: ``y[n, c, t] = self[n, c, t] - sum_k factors[c, k] * y[n, c, t - 1 - k]``, where
    y is 0 before the first element. Together with a convolution it is the direct form of a filter in Oppenheim and Schafer
    (Discrete-Time Signal Processing, chapter 6).

    Shapes: `self` is (n, c, t), `factors` (c, p), the result (n, c, t). Dtypes: floating, the same for both; float32 is
    computed in float64. Raises: ShapeError for other shapes, DTypeError for other dtypes.

    >>> import plait_core as pc
    >>> from plait_abi import operator
    >>> operator("all_pole_filter")(pc.tensor([[[1.0, 0.0, 0.0]]]), pc.tensor([[-0.5]])).tolist()
    [[[1.0, 0.5, 0.25]]]
    """,
    kernel="in[0] is (n, c, t), in[1] (c, p), of one floating dtype, any strides; the result is in C order.",
    dtypes="floating",
    variants="",
)


@all_pole_filter.shape
def _(self, factors):
    require("self", self.dtype, "floating")
    require_same("self", self, "factors", factors)
    check(
        self.ndim == 3 and factors.ndim == 2 and factors.shape[0] == self.shape[1],
        f"`self` must have shape (n, c, t) and `factors` (c, p); got {self.shape} and {factors.shape}",
    )
    return result(self.shape, self.dtype)


@all_pole_filter.cost
def _(self, factors):
    return 2 * numel(self) * factors.shape[1]


@all_pole_filter.vjp("self")
def _(g, factors):
    return op.flip(all_pole_filter(op.flip(g, [2]), factors), [2])


@all_pole_filter.vjp("factors")
def _(g, factors, result):
    n = g.shape[2]
    back = op.flip(all_pole_filter(op.flip(g, [2]), factors), [2])
    columns = [op.zeros([factors.shape[0], 0], dtype=g.dtype, device=g.device)]
    for k in range(factors.shape[1]):
        late = max(n - 1 - k, 0)
        one = op.mul(op.narrow(back, 2, n - late, late), op.narrow(result, 2, 0, late))
        columns.append(op.reshape(op.neg(op.sum(one, [0, 2])), [factors.shape[0], 1]))
    return op.cat(columns, 1)
