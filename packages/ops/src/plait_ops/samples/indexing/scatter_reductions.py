"""Test data of indexing/scatter_reductions: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.samples.indexing.gathering import gather_errors
from plait_ops.specs.indexing.scatter_reductions import (
    cut,
    index_reduce,
    scatter_named,
    scatter_prod_backward,
    scatter_reduce_,
    scatter_value_named,
)


def _ufunc(reduce):
    return {
        "sum": np.add,
        "mean": np.add,
        "prod": np.multiply,
        "amax": np.maximum,
        "amin": np.minimum,
        "max": np.maximum,
        "min": np.minimum,
    }[reduce]


@scatter_reduce_.reference
def _(self, dim, index, src, reduce, include_self=True):
    result = self.reshape(self.shape or (1,)).copy()
    index, src = index.reshape(index.shape or (1,)), src.reshape(src.shape or (1,))
    where = list(np.indices(index.shape))
    where[dim] = np.where(index < 0, index + result.shape[dim], index)
    values = src[tuple(slice(0, n) for n in index.shape)]
    counts = np.zeros(result.shape, "int64")
    np.add.at(counts, tuple(where), 1)
    if not include_self:
        least = result.dtype.kind in "bui"
        info = np.iinfo(result.dtype if result.dtype.kind != "b" else "uint8") if least else None
        identity = {
            "sum": 0,
            "mean": 0,
            "prod": 1,
            "amax": info.min if least else -np.inf,
            "amin": info.max if least else np.inf,
        }[reduce if reduce in ("sum", "mean", "prod") else f"a{reduce.lstrip('a')}"]
        result[counts > 0] = identity
    _ufunc(reduce).at(result, tuple(where), values)
    if reduce == "mean":
        n = np.maximum(counts + include_self, 1)
        result = (result // n if result.dtype.kind in "iu" else result / n).astype(result.dtype)
    return result.reshape(self.shape)


@scatter_reduce_.samples
def _(s):
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        yield s(s.distinct(3, 5), 1, s.indices(5, 3, 4), s.distinct(3, 4) + np.float32(0.1), reduce)
        yield s(
            s.distinct(3, 5), 0, s.indices(3, 4, 5), s.distinct(6, 5), reduce, include_self=False
        )
        yield s(
            s.array(6, dtype="int64"),
            0,
            s.indices(6, 9, negative=True),
            s.array(9, dtype="int64"),
            reduce,
        )
        yield s(s.strided(2, 3, 4), 1, s.indices(3, 2, 5, 4), s.strided(2, 5, 4), reduce)
    yield s(s.array(3, 4), 0, s.indices(3, 5, 4), s.array(5, 4), "amax").without_gradient()
    yield s(
        np.array([2, 0], "float32"), 0, np.array([0, 0, 1]), np.array([0, 3, 0], "float32"), "prod"
    )
    yield s(
        np.array([1, 2], "float32"), 0, np.array([0, 1]), np.array([np.nan, 1], "float32"), "amin"
    ).without_gradient()
    yield s(s.array(), 0, np.array(0), s.array(), "sum")
    yield s(s.array(3), 0, s.indices(3, 4), s.array(4), "max").without_gradient()
    yield s(s.array(3), 0, s.indices(3, 4), s.array(4), "min").without_gradient()
    for reduce in ("sum", "prod", "mean"):
        x = s.array(6, dtype="complex64")
        yield s(x, 0, s.indices(6, 9), s.array(9, dtype="complex64"), reduce, include_self=False)
    yield s(s.array(3, 5), 1, s.indices(5, 3, 0), s.array(3, 0), "mean")


gather_errors(scatter_reduce_, lambda s: s.array(2, 4), lambda s: "sum")
scatter_reduce_.error(
    "ValueError",
    lambda s: s(s.array(3), 0, s.indices(3, 2), s.array(2), "largest"),
    contains=["scatter_reduce", "reduce", "amax", "largest"],
)
scatter_reduce_.error(
    "DTypeError",
    lambda s: s(s.array(3), 0, s.indices(3, 2), s.array(2, dtype="int64"), "sum"),
    contains=["scatter_reduce", "src", "float32", "int64"],
)


cut.reference(lambda self, size: self[tuple(slice(0, n) for n in size)].copy())
cut.samples(lambda s: iter([s(s.array(3, 4), (2, 4)), s(s.array(3), (0,))]))
cut.error("ShapeError", lambda s: s(s.array(3), (4,)), contains=["narrow", "length", "4"])


@scatter_prod_backward.reference
def _(grad, self, dim, index, src, result, include_self):
    own, each = np.zeros_like(self), np.zeros_like(src)

    def run(x, y):
        return scatter_reduce_(x, dim, index, y, "prod", include_self=include_self).astype(
            "float64"
        )

    # the product is linear in each element: the difference between 1 and 0 is its derivative
    for output, first in ((own, True), (each, False)):
        for at in np.ndindex(output.shape):
            low, high = (
                (self if first else src).astype("float64"),
                (self if first else src).astype("float64"),
            )
            low[at], high[at] = 0, 1
            x, y = self.astype("float64"), src.astype("float64")
            change = run(high, y) - run(low, y) if first else run(x, high) - run(x, low)
            output[at] = (grad * change).sum()
    return own, each


@scatter_prod_backward.samples
def _(s):
    yield s(s.array(4), s.array(4), 0, s.indices(4, 6), s.array(6), s.array(4), True)
    zeros = np.array([0, 2, 0, 3, 1, 5], "float32")
    yield s(
        s.array(4),
        np.array([1, 0, 2, 3], "float32"),
        0,
        np.array([0, 0, 1, 2, 2, 1]),
        zeros,
        s.array(4),
        True,
    )


scatter_prod_backward.error(
    "ShapeError",
    lambda s: s(s.array(4), s.array(4), 0, s.indices(4, 2, 2), s.array(6), s.array(4), True),
    contains=["index", "(2, 2)"],
)


_NAMES = {"add": "sum", "multiply": "prod"}
scatter_named.reference(
    lambda self, dim, index, src, reduce: scatter_reduce_(self, dim, index, src, _NAMES[reduce])
)
scatter_value_named.reference(
    lambda self, dim, index, value, reduce: scatter_reduce_(
        self, dim, index, np.full(index.shape, value, self.dtype), _NAMES[reduce]
    )
)
scatter_named.samples(
    lambda s: iter(
        [s(s.array(3, 5), 1, s.indices(5, 3, 4), s.array(3, 4), reduce=name) for name in _NAMES]
    )
)
scatter_value_named.samples(
    lambda s: iter([s(s.array(3, 5), 1, s.indices(5, 3, 4), 1.5, reduce=name) for name in _NAMES])
)
scatter_named.error(
    "ValueError",
    lambda s: s(s.array(3), 0, s.indices(3, 2), s.array(2), reduce="sum"),
    contains=["scatter", "reduce", "add", "sum"],
)
scatter_value_named.error(
    "ValueError",
    lambda s: s(s.array(3), 0, s.indices(3, 2), 1.0, reduce="sum"),
    contains=["scatter", "reduce", "add", "sum"],
)


@index_reduce.reference
def _(self, dim, index, source, reduce, include_self=True):
    shape = [1] * self.ndim
    shape[dim] = index.size
    positions = np.broadcast_to(index.reshape(shape), source.shape)
    return scatter_reduce_(self, dim, positions, source, reduce, include_self=include_self)


@index_reduce.samples
def _(s):
    for reduce in ("prod", "mean", "amax", "amin"):
        yield s(s.distinct(3, 5), 1, s.indices(5, 4), s.distinct(3, 4), reduce)
        yield s(s.distinct(4, 2), 0, s.indices(4, 7), s.distinct(7, 2), reduce, include_self=False)


index_reduce.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), 0, s.indices(2, 1), s.array(2, 3), "prod"),
    contains=["index_reduce", "source", "(1, 3)", "(2, 3)"],
)
index_reduce.error(
    "ValueError",
    lambda s: s(s.array(2), 0, s.indices(2, 1), s.array(1), "max"),
    contains=["index_reduce", "reduce", "max"],
)
