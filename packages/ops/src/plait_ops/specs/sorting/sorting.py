"""Sorting along one dimension."""

import numpy as np

from plait_ops.calls import scatter, zeros
from plait_ops.spec import Composite, Operator
from plait_ops.words import check, int64, require, result, wrap_dim

sort = Operator(
    "sort(Tensor self, int dim|axis=-1, bool descending=False, bool stable=False) -> (Tensor, Tensor)",
    doc="""
    The elements of `self` sorted along `dim`, and where they were, as int64. Equal elements keep their order, whatever
    `stable` says; nan counts as the largest number.

    Shapes: both results have the shape of `self`. Dtypes: bool, integers and floating-point dtypes.
    Raises: IndexError for a `dim` out of range, DTypeError for other dtypes.

    >>> import plait_core as pc
    >>> [x.tolist() for x in pc.sort(pc.tensor([3, 1, 2]))]
    [[1, 2, 3], [1, 2, 0]]
    """,
    out=True,
    kernel="out[1] is int64; `dim` is not wrapped.",
)
topk = Operator(
    "topk(Tensor self, int k, int dim|axis=-1, bool largest=True, bool sorted=True) -> (Tensor, Tensor)",
    doc="""
    The `k` largest (or smallest) elements of `self` along `dim`, the largest (smallest) first, and where they were, as
    int64. Of equal elements the first are taken; nan counts as the largest number. They are sorted, whatever `sorted` says.

    Shapes: both results have the shape of `self` with `k` along `dim`. Dtypes: bool, integers and floating-point dtypes.
    Raises: IndexError for a `dim` out of range, ShapeError for a `k` larger than the dimension, DTypeError.

    >>> import plait_core as pc
    >>> [x.tolist() for x in pc.topk(pc.tensor([3, 1, 2]), 2)]
    [[3, 2], [0, 2]]
    """,
    out=True,
    kernel="out[1] is int64; `dim` is not wrapped.",
)
argsort = Composite(
    "argsort(Tensor self, int dim|axis=-1, bool descending=False, bool stable=False) -> Tensor",
    doc="""
    Where the elements of the sorted `self` were: the second result of `sort`.

    >>> import plait_core as pc
    >>> pc.argsort(pc.tensor([3, 1, 2])).tolist()
    [1, 2, 0]
    """,
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
            f"`k` must be in [0, {self.shape[at]}] for dimension {at} of shape {self.shape}; got {k}",
        )
        shape[at] = k
    return result(shape, self.dtype), result(shape, int64)


@sort.vjp("self")
@topk.vjp("self")
def _(g0, self, result1, dim):
    return scatter(zeros(self.shape, dtype=g0.dtype, device=g0.device), dim, result1, g0)


@argsort.decompose
def _(self, dim, descending, stable):
    _values, places = sort(self, dim, descending, stable)
    return places


def _order(x, dim, descending):
    """Return the places of a stable sort in which nan is the largest."""
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    backwards = np.argsort(np.flip(x, dim), axis=dim, kind="stable")
    return x.shape[dim] - 1 - np.flip(backwards, dim)


@sort.reference
def _(self, dim=-1, descending=False):
    if self.ndim == 0:
        return self, np.zeros((), "int64")
    places = _order(self, dim, descending)
    return np.take_along_axis(self, places, dim), places


@topk.reference
def _(self, k, dim=-1, largest=True):
    if self.ndim == 0:
        return self, np.zeros((), "int64")
    places = np.take(_order(self, dim, largest), np.arange(k), dim)
    return np.take_along_axis(self, places, dim), places


argsort.reference(lambda self, dim=-1, descending=False: sort(self, dim, descending)[1])

_NAN = np.array([[2, np.nan, -np.inf, 1], [np.nan, 0, np.inf, np.nan]], "float32")


@sort.samples
@argsort.samples
def _(s):
    yield s(s.distinct(3, 4))
    yield s(s.distinct(3, 4), 0)
    yield s(s.distinct(4, 3, 5), 1, True)
    yield s(s.distinct(6, 4)[::-2, ::2].T, 0, False, True)
    yield s(s.array(100, dtype="int64"))
    yield s(s.array(100, dtype="int8"), 0, True)
    yield s(s.array(3, 40, dtype="uint8"), -1, True)
    yield s(s.array(9, dtype="bool"))
    yield s(s.distinct(2, 70, dtype="float64"), 1, descending=True)
    yield s(_NAN).without_gradient()
    yield s(_NAN, 1, True).without_gradient()
    yield s(s.array())
    yield s(s.array(0, 3), 0)
    yield s(s.array(3, 0), 0, True)


@topk.samples
def _(s):
    yield s(s.distinct(3, 4), 2)
    yield s(s.distinct(3, 4), 2, 0)
    yield s(s.distinct(4, 3, 5), 3, 1, False)
    yield s(s.distinct(6, 4)[::-2, ::2].T, 1, 0, sorted=False)
    yield s(s.array(50, dtype="int64"), 20)
    yield s(s.array(50, dtype="uint8"), 20, largest=False)
    yield s(s.distinct(5, dtype="float64"), 5)
    yield s(_NAN, 2).without_gradient()
    yield s(_NAN, 2, 1, False).without_gradient()
    yield s(s.array(), 1)
    yield s(s.array(2, 3), 0)
    yield s(s.array(0, 3), 2)


for each in (sort, argsort):
    each.error("IndexError", lambda s: s(s.array(2, 3), 2), contains=["sort", "dim", "(2, 3)", "2"])
    each.error(
        "DTypeError",
        lambda s: s(s.array(2, dtype="complex64")),
        contains=["sort", "self", "complex64"],
    )
topk.error("IndexError", lambda s: s(s.array(2, 3), 1, 2), contains=["topk", "dim", "(2, 3)", "2"])
topk.error("ShapeError", lambda s: s(s.array(2, 3), 4), contains=["topk", "k", "(2, 3)", "4"])
topk.error("ShapeError", lambda s: s(s.array(2, 3), -1), contains=["topk", "k", "-1"])
topk.error(
    "DTypeError",
    lambda s: s(s.array(2, dtype="complex64"), 1),
    contains=["topk", "self", "complex64"],
)

argsort_rows = Operator(
    "argsort_rows(Tensor self) -> Tensor",
    doc="The places of the rows of a matrix in ascending order, compared from their first element on; equal rows keep theirs.",
    internal=True,
    kernel="the result is int64; nan is the largest number.",
)


@argsort_rows.shape
def _(self):
    check(self.ndim == 2, f"`self` must have 2 dimensions; got shape {self.shape}")
    require("self", self.dtype, "all")
    return result([self.shape[0]], int64)


@argsort_rows.reference
def _(self):
    if self.shape[1] == 0:
        return np.arange(len(self))
    return np.lexsort(self.T[::-1]).astype("int64")


argsort_rows.samples(
    lambda s: iter(
        [
            s(s.array(40, 3, dtype="int8") % 3),
            s(s.distinct(5, 2)),
            s(s.array(300, 2, dtype="bool")),
            s(s.array(0, 3)),
            s(s.array(3, 0)),
            s(s.strided(9, 2)),
        ]
    )
)
argsort_rows.error("ShapeError", lambda s: s(s.array(3)), contains=["argsort_rows", "self", "(3,)"])

msort = Composite(
    "msort(Tensor self) -> Tensor",
    doc="""
    `self` sorted along dimension 0: ``sort(self, 0)[0]``.

    >>> import plait_core as pc
    >>> pc.msort(pc.tensor([3, 1, 2])).tolist()
    [1, 2, 3]
    """,
    out=True,
)


@msort.decompose
def _(self):
    values, _places = sort(self, 0)
    return values


msort.reference(lambda self: np.sort(self, 0) if self.ndim else self.copy())
msort.samples(lambda s: iter([s(s.distinct(5)), s(s.distinct(4, 3)), s(s.array())]))
msort.error(
    "DTypeError", lambda s: s(s.array(2, dtype="complex64")), contains=["sort", "complex64"]
)
