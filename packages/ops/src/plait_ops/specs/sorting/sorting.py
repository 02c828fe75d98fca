"""Sorting along one dimension."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.words import check, int64, require, result, wrap_dim

sort = Operator(
    "sort(Tensor self, int dim|axis=-1, bool descending=False, bool stable=False) -> (Tensor values, Tensor indices)",
    doc="""
    The elements of `self` sorted along `dim`, and the indices that they had, as int64. Equal elements keep their order,
    also without `stable`. nan counts as larger than all numbers.

    Shapes: both results have the shape of `self`. Dtypes: bool, integers and floating-point dtypes.
    Raises: IndexError for a `dim` out of range, DTypeError for other dtypes.

    >>> import plait_core as pc
    >>> [x.tolist() for x in pc.sort(pc.tensor([3, 1, 2]))]
    [[1, 2, 3], [1, 2, 0]]
    """,
    kernel="out[1] is int64; `dim` may be negative.",
    variants="function method",
)
sort.batch("dimensions")
sort.slices(self="dim", result0="dim", result1="dim")
topk = Operator(
    "topk(Tensor self, int k, int dim|axis=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
    doc="""
    The `k` largest (or smallest) elements of `self` along `dim`, the largest (smallest) first, and their indices as int64.
    Of equal elements the first are taken; nan counts as larger than all numbers. The results are sorted also without
    `sorted`.

    Args:
        k: How many elements.

    Shapes: both results have the shape of `self` with `k` along `dim`. Dtypes: bool, integers and floating-point dtypes.
    Raises: IndexError for a `dim` out of range, ShapeError for a `k` larger than the dimension, DTypeError for other
    dtypes.

    >>> import plait_core as pc
    >>> [x.tolist() for x in pc.topk(pc.tensor([3, 1, 2]), 2)]
    [[3, 2], [0, 2]]
    """,
    kernel="out[1] is int64; `dim` may be negative.",
    variants="function method",
)
topk.batch("dimensions")
topk.slices(self="dim", result0="dim", result1="dim")
argsort = Composite(
    "argsort(Tensor self, int dim|axis=-1, bool descending=False, bool stable=False) -> Tensor",
    doc="""
    The indices that sort `self` along `dim`: the second result of `sort`.

    >>> import plait_core as pc
    >>> pc.argsort(pc.tensor([3, 1, 2])).tolist()
    [1, 2, 0]
    """,
    variants="function method",
)


@sort.shape
def _(self, dim):
    wrap_dim("dim", dim, self.shape)
    require("self", self.dtype, "all")
    return result(self.shape, self.dtype), result(self.shape, int64)


@topk.shape
def _(self, k, dim):
    at = wrap_dim("dim", dim, self.shape)
    require("self", self.dtype, "all")
    shape = list(self.shape)
    if self.ndim == 0:
        check(k == 1, f"`k` must be 1 for `self` of shape (); got {k}")
    else:
        check(
            k >= 0 and k <= self.shape[at],
            f"`k` must be in [0, {self.shape[at]}] for dimension {at} of shape {self.shape}; got {k}. selected index k out of range",
        )
        shape[at] = k
    return result(shape, self.dtype), result(shape, int64)


@sort.vjp("self")
@topk.vjp("self")
def _(g0, self, result1, dim):
    zero = op.zeros(
        [], dtype=g0.dtype, device=g0.device
    )  # expanded, so that zeros are written once
    return op.scatter(op.expand(zero, self.shape), dim, result1, g0)


@argsort.decompose
def _(self, dim, descending, stable):
    _values, places = sort(self, dim, descending, stable)
    return places


@topk.decompose
def _(self, k, dim, largest):
    values, places = sort(self, dim, largest, True)
    if self.ndim == 0:
        return values, places
    return op.clone(op.narrow(values, dim, 0, k)), op.clone(op.narrow(places, dim, 0, k))


argsort_rows = Operator(
    "argsort_rows(Tensor self) -> Tensor",
    doc="The indices that sort the rows of a matrix in ascending order. Rows are compared from their first element on; equal rows keep their order.",
    internal=True,
    kernel="the result is int64; nan is the largest number.",
)


@argsort_rows.shape
def _(self):
    check(self.ndim == 2, f"`self` must have 2 dimensions; got shape {self.shape}")
    require("self", self.dtype, "all")
    return result([self.shape[0]], int64)


@argsort_rows.decompose
def _(self):
    # by the last column first: a stable order by the columns before it keeps that of equal elements
    order = op.arange(self.shape[0], device=self.device)
    for column in reversed(range(self.shape[1])):
        elements = op.index_select(op.select(self, 1, column), 0, order)
        _values, places = sort(elements, 0, False, True)
        order = op.index_select(order, 0, places)
    return order


msort = Composite(
    "msort(Tensor self) -> Tensor",
    doc="""
    `self` sorted along dimension 0: ``sort(self, 0)[0]``.

    >>> import plait_core as pc
    >>> pc.msort(pc.tensor([3, 1, 2])).tolist()
    [1, 2, 3]
    """,
    variants="function method",
)


@msort.decompose
def _(self):
    values, _places = sort(self, 0)
    return values
