"""Test data of reduction/ranking: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.reduction.ranking import (
    kthvalue_,
    median,
    median_along,
    mode,
    nanmedian,
    nanmedian_along,
)


def _ranked(operator):
    name = operator.schema.base

    operator.error(
        "IndexError",
        _call(name, lambda s: s.array(2, 3), 2),
        contains=[name[:4], "dim", "(2, 3)", "2"],
    )
    operator.error(
        "IndexError", _call(name, lambda s: s.array(2, 0), 1), contains=[name[:4], "self", "(2, 0)"]
    )
    operator.error(
        "DTypeError",
        _call(name, lambda s: s.array(2, dtype="complex64"), 0),
        contains=[name[:4], "self", "complex64"],
    )


def _call(name, array, dim):
    if name == "kthvalue":
        return lambda s: s(array(s), 1, dim)
    return lambda s: s(array(s), dim)


_ranked(kthvalue_)


def _whole(operator):
    operator.error(
        "DTypeError", lambda s: s(s.array(2, dtype="complex64")), contains=["median", "complex64"]
    )


_whole(median)
_whole(nanmedian)
_ranked(median_along)
_ranked(nanmedian_along)
_ranked(mode)


def _rows(self, dim, keepdim, choose):
    """Run `choose` on each row along `dim`; return values and indices."""
    x = np.moveaxis(self.reshape(self.shape or (1,)), dim, -1)
    at = np.empty(x.shape[:-1], "int64")
    for i in np.ndindex(at.shape):
        at[i] = choose(x[i])
    values = np.take_along_axis(x, at[..., None], -1)[..., 0]
    if keepdim and self.ndim:
        return np.expand_dims(values, dim), np.expand_dims(at, dim)
    return values.reshape(values.shape if self.ndim else ()), at.reshape(
        at.shape if self.ndim else ()
    )


def _kth(k):
    return lambda row: np.argsort(row, kind="stable")[k - 1]


def _middle(row):
    nan = np.isnan(row) if row.dtype.kind == "f" else np.zeros(row.shape, bool)
    return int(np.argmax(nan)) if nan.any() else _kth((len(row) + 1) // 2)(row)


def _nan_middle(row):
    nan = np.isnan(row) if row.dtype.kind == "f" else np.zeros(row.shape, bool)
    return 0 if nan.all() else _kth((int((~nan).sum()) + 1) // 2)(row)


def _most(row):
    values, counts = np.unique(row, return_counts=True, equal_nan=False)
    best = values[np.argmax(counts)]
    return len(row) - 1 - int(np.argmax(row[::-1] == best)) if best == best else len(row) - 1


kthvalue_.reference(lambda self, k, dim=-1, keepdim=False: _rows(self, dim, keepdim, _kth(k)))
median_along.reference(lambda self, dim, keepdim=False: _rows(self, dim, keepdim, _middle))
nanmedian_along.reference(lambda self, dim, keepdim=False: _rows(self, dim, keepdim, _nan_middle))
mode.reference(lambda self, dim=-1, keepdim=False: _rows(self, dim, keepdim, _most))
median.reference(
    lambda self: (
        _rows(self.reshape(-1), 0, False, _middle)[0]
        if self.size
        else np.asarray(np.nan, self.dtype)
    )
)
nanmedian.reference(
    lambda self: (
        _rows(self.reshape(-1), 0, False, _nan_middle)[0]
        if self.size
        else np.asarray(np.nan, self.dtype)
    )
)

_NAN = np.array([[2, np.nan, -np.inf, 1], [3, 0, np.inf, 0], [np.nan] * 4], "float32")


def _arrays(s):
    yield s.distinct(3, 5), 1, False
    yield s.distinct(3, 4), 0, True
    yield s.distinct(2, 700), -1, False
    yield s.distinct(6, 4)[::-2, ::2].T, 0, False
    yield s.array(3, 40, dtype="int64"), 1, False
    yield s.array(50, dtype="int8"), 0, False
    yield s.array(3, 9, dtype="bool"), -1, True
    yield s.distinct(3, 5, dtype="float64"), 1, False
    yield s.array(), 0, False
    yield _NAN, 1, False


@kthvalue_.samples
def _(s):
    for x, dim, keepdim in _arrays(s):
        n = x.shape[dim] if x.ndim else 1
        for k in {1, (n + 1) // 2, n}:
            if x is not _NAN or k == 1:
                yield s(x, k, dim, keepdim)


@median_along.samples
@nanmedian_along.samples
@mode.samples
def _(s):
    for x, dim, keepdim in _arrays(s):
        sample = s(x, dim, keepdim)
        yield sample.without_gradient() if x is _NAN else sample
    yield s(s.array(4, 60, low=-1, high=1).round(1).astype("float32"), 1).without_gradient()


median.samples(lambda s: iter([s(x) for x, _, _ in _arrays(s)] + [s(s.array(0))]))
nanmedian.samples(lambda s: iter([s(x) for x, _, _ in _arrays(s)] + [s(s.array(0))]))
kthvalue_.error(
    "IndexError", lambda s: s(s.array(2, 3), 4), contains=["kthvalue", "k", "(2, 3)", "4"]
)
kthvalue_.error("IndexError", lambda s: s(s.array(2, 3), 0), contains=["kthvalue", "k", "0"])
