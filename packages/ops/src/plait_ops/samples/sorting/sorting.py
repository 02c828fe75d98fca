"""Test data of sorting/sorting: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.sorting.sorting import argsort, argsort_rows, msort, sort, topk


def _order(x, dim, descending):
    """Return the indices of a stable sort in which nan is the largest."""
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    backwards = np.argsort(np.flip(x, dim), axis=dim, kind="stable")
    return x.shape[dim] - 1 - np.flip(backwards, dim)


@sort.reference
def _(self, dim=-1, descending=False):
    if self.ndim == 0:
        return self, np.zeros((), "int64")
    indices = _order(self, dim, descending)
    return np.take_along_axis(self, indices, dim), indices


@topk.reference
def _(self, k, dim=-1, largest=True):
    if self.ndim == 0:
        return self, np.zeros((), "int64")
    indices = np.take(_order(self, dim, largest), np.arange(k), dim)
    return np.take_along_axis(self, indices, dim), indices


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
msort.reference(lambda self: np.sort(self, 0) if self.ndim else self.copy())
msort.samples(lambda s: iter([s(s.distinct(5)), s(s.distinct(4, 3)), s(s.array())]))
msort.error(
    "DTypeError", lambda s: s(s.array(2, dtype="complex64")), contains=["sort", "complex64"]
)
