"""Elements by rank: the k-th smallest, medians, the most frequent, quantiles."""

import numpy as np

from plait_ops.calls import full, index_backward, median_dim, nanmedian_dim, reshape
from plait_ops.spec import Composite, Operator
from plait_ops.words import check, int64, numel, reduced, require, result, wrap_dim

_RAISES = "Raises: IndexError for a `dim` out of range, ShapeError for a dimension without elements, DTypeError for complex numbers."
_KERNEL = "out[1] is int64; `dim` is not wrapped; a 0-d input counts as one of shape (1,)."


def _ranked(name, arguments, text, example, dtypes="all"):
    operator = Operator(
        f"{name}(Tensor self, {arguments}, bool keepdim|keepdims=False) -> (Tensor, Tensor)",
        doc=f"""
    {text}

    {_RAISES}

    >>> import plait_core as pc
    >>> [x.tolist() for x in pc.{name.partition(".")[0]}({example[0]})]
    {example[1]}
    """,
        out=True,
        dtypes=dtypes,
        kernel=_KERNEL,
    )

    @operator.vjp("self")
    def _(g0, self, result1, dim, keepdim):
        if self.ndim == 0:
            return g0
        return index_backward(g0, result1, self.shape, dim, keepdim)

    operator.error(
        "IndexError",
        _call(name, lambda s: s.array(2, 3), 2),
        contains=[name[:4], "dim", "(2, 3)", "2"],
    )
    operator.error(
        "ShapeError", _call(name, lambda s: s.array(2, 0), 1), contains=[name[:4], "self", "(2, 0)"]
    )
    operator.error(
        "DTypeError",
        _call(name, lambda s: s.array(2, dtype="complex64"), 0),
        contains=[name[:4], "self", "complex64"],
    )
    return operator


def _call(name, array, dim):
    if name == "kthvalue":
        return lambda s: s(array(s), 1, dim)
    return lambda s: s(array(s), dim)


kthvalue_ = _ranked(
    "kthvalue",
    "int k, int dim|axis=-1",
    "The `k`-th smallest elements along `dim`, counted from 1, and where they are, as int64. nan counts as the largest number.",
    ("pc.tensor([5, 1, 3]), 2", "[3, 2]"),
)


# the whole forms stand before the overloads
def _whole(name, text, example):
    operator = Composite(
        f"{name}(Tensor self) -> Tensor",
        doc=f"""
    {text} Of an even number of elements it is the lower of the two in the middle.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([{example}])).item()
    3.0
    """,
    )
    operator.error(
        "DTypeError", lambda s: s(s.array(2, dtype="complex64")), contains=["median", "complex64"]
    )
    return operator


median = _whole(
    "median", "The median of all elements; nan if one is nan, and of none.", "5.0, 1.0, 3.0, 4.0"
)
nanmedian = _whole(
    "nanmedian",
    "The median of all elements that are not nan; nan if there are none.",
    "5.0, 1.0, 3.0, float('nan')",
)
median_along = _ranked(
    "median.dim",
    "int dim|axis",
    """
    The medians of the elements along `dim`, and where they are, as int64: of an even number of elements the lower of the two
    in the middle; nan if one is nan.
    """,
    ("pc.tensor([[5, 1, 3, 4]]), 1", "[[3], [2]]"),
)
nanmedian_along = _ranked(
    "nanmedian.dim",
    "int dim|axis",
    "The medians of the elements along `dim` that are not nan, and where they are, as int64; nan if there are none.",
    ("pc.tensor([[5.0, 1.0, float('nan'), 4.0]]), 1", "[[4.0], [3]]"),
)
mode = _ranked(
    "mode",
    "int dim|axis=-1",
    "The most frequent elements along `dim`, of several the smallest, and where they stand last, as int64. Every nan is one of its own.",
    ("pc.tensor([2, 1, 2, 3])", "[2, 2]"),
)


@kthvalue_.shape
def _(self, k, dim, keepdim):
    at = wrap_dim("dim", dim, self.shape)
    require("self", self.dtype, "all")
    n = self.shape[at] if self.ndim > 0 else 1
    check(
        n > 0,
        f"`self` of shape {self.shape} has no elements along dimension {at}",
    )
    check(
        k >= 1 and k <= n,
        f"`k` must be in [1, {n}] for dimension {at} of shape {self.shape}; got {k}",
        "IndexError",
    )
    shape = reduced(self.shape, [at], keepdim)
    return result(shape, self.dtype), result(shape, int64)


@median_along.shape
@nanmedian_along.shape
@mode.shape
def _(self, dim, keepdim):
    at = wrap_dim("dim", dim, self.shape)
    require("self", self.dtype, "all")
    check(
        self.ndim == 0 or self.shape[at] > 0,
        f"`self` of shape {self.shape} has no elements along dimension {at}",
    )
    shape = reduced(self.shape, [at], keepdim)
    return result(shape, self.dtype), result(shape, int64)


@median.decompose
def _(self):
    if numel(self.shape) == 0:
        require("self", self.dtype, "floating")
        return full([], NAN, dtype=self.dtype, device=self.device)
    values, _places = median_dim(reshape(self, [-1]), 0)
    return values


@nanmedian.decompose
def _(self):
    if numel(self.shape) == 0:
        require("self", self.dtype, "floating")
        return full([], NAN, dtype=self.dtype, device=self.device)
    values, _places = nanmedian_dim(reshape(self, [-1]), 0)
    return values


NAN = float("nan")


def _rows(self, dim, keepdim, place):
    """Run `place` on each row along `dim`; return values and places."""
    x = np.moveaxis(self.reshape(self.shape or (1,)), dim, -1)
    at = np.empty(x.shape[:-1], "int64")
    for i in np.ndindex(at.shape):
        at[i] = place(x[i])
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
