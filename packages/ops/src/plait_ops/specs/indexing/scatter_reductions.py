"""Scattering that combines what falls on one place: sums, products, means, extremes."""

import numpy as np

from plait_ops.calls import (
    alias,
    cat,
    clone,
    div,
    eq,
    expand,
    flip,
    full,
    gather,
    lt,
    masked_fill,
    narrow,
    ones_like,
    reshape,
    scatter,
    scatter_add,
    scatter_reduce,
    scatter_value,
    sort,
    where,
    zeros_like,
)
from plait_ops.spec import Composite, Operator
from plait_ops.specs.indexing.gathering import _KERNEL, _gather_errors
from plait_ops.specs.indexing.scattering import pad_end
from plait_ops.words import (
    cast_argument,
    check,
    conjugate,
    gather_check,
    int64,
    numel,
    part,
    require,
    require_same,
    result,
    to_dtype,
    wrap_dim,
)

scatter_reduce_ = Operator(
    "scatter_reduce(Tensor self, int dim|axis, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor",
    doc="""
    `self` in which each place that `index` names along `dim` holds the sum, the product, the mean, the largest or the smallest
    (`reduce` is "sum", "prod", "mean", "amax" or "amin"; also "max" and "min") of the elements of `src` that fall on it and, with `include_self`, of
    what was there. Other places stay as they are. A mean of integers is rounded down. nan wins.

    Shape: as for `scatter`. Dtypes: numbers; for sums bool too. Among equal extremes the gradient is divided evenly.
    Raises: ValueError for another `reduce`, else as `scatter`.

    >>> import plait_core as pc
    >>> index = pc.tensor([0, 0, 1])
    >>> pc.scatter_reduce(pc.ones(3), 0, index, pc.tensor([2.0, 5.0, 3.0]), "amax").tolist()
    [5.0, 3.0, 1.0]
    >>> pc.scatter_reduce(pc.ones(3), 0, index, pc.tensor([2.0, 5.0, 3.0]), "mean", include_self=False).tolist()
    [3.5, 3.0, 1.0]
    """,
    inplace=True,
    dtypes="any",
    kernel=_KERNEL + " Combined in order.",
    out=True,
)


@scatter_reduce_.shape
def _(self, dim, index, src, reduce):
    check(
        reduce in ("sum", "prod", "mean", "amax", "amin", "max", "min"),
        f'`reduce` must be "sum", "prod", "mean", "amax" or "amin"; got "{reduce}"',
        "ValueError",
    )
    gather_check("self", self.shape, dim, "index", index)
    check(
        src.ndim == index.ndim,
        f"`src` of shape {src.shape} must have as many dimensions as `index` of shape {index.shape}",
    )
    for d in range(index.ndim):
        check(
            index.shape[d] <= src.shape[d],
            f"`index` of shape {index.shape} must not be larger than `src` of shape {src.shape}",
        )
    require_same("self", self, "src", src)
    if reduce in ("amax", "amin", "max", "min"):
        require("self", self.dtype, "all")
    cast_argument("index", int64)
    return result(self.shape, self.dtype)


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
    made = self.reshape(self.shape or (1,)).copy()
    index, src = index.reshape(index.shape or (1,)), src.reshape(src.shape or (1,))
    where = list(np.indices(index.shape))
    where[dim] = np.where(index < 0, index + made.shape[dim], index)
    values = src[tuple(slice(0, n) for n in index.shape)]
    counts = np.zeros(made.shape, "int64")
    np.add.at(counts, tuple(where), 1)
    if not include_self:
        least = made.dtype.kind in "bui"
        info = np.iinfo(made.dtype if made.dtype.kind != "b" else "uint8") if least else None
        identity = {
            "sum": 0,
            "mean": 0,
            "prod": 1,
            "amax": info.min if least else -np.inf,
            "amin": info.max if least else np.inf,
        }[reduce if reduce in ("sum", "mean", "prod") else f"a{reduce.lstrip('a')}"]
        made[counts > 0] = identity
    _ufunc(reduce).at(made, tuple(where), values)
    if reduce == "mean":
        n = np.maximum(counts + include_self, 1)
        made = (made // n if made.dtype.kind in "iu" else made / n).astype(made.dtype)
    return made.reshape(self.shape)


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


_gather_errors(scatter_reduce_, lambda s: s.array(2, 4), lambda s: "sum")
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


@scatter_reduce_.vjp("self", "src")
def _(g, self, dim, index, src, reduce, include_self, result):
    part = src
    if src.shape != index.shape:
        part = cut(src, index.shape)
    # what each place gives to what it was, and to each addend
    if reduce == "sum":
        own = g
        each = gather(g, dim, index)
    elif reduce == "mean":
        ones = ones_like(part)
        count = scatter_add(ones_like(self) if include_self else zeros_like(self), dim, index, ones)
        own = div(g, masked_fill(count, eq(count, 0), 1))
        each = gather(own, dim, index)
        if not include_self:
            own = g
    elif reduce == "prod":
        own, each = scatter_prod_backward(g, self, dim, index, part, result, include_self)
    else:
        mine = to_dtype(eq(self, result), g.dtype)
        theirs = to_dtype(eq(part, gather(result, dim, index)), g.dtype)
        hits = scatter_add(
            mine if include_self else scatter_value(zeros_like(mine), dim, index, 0),
            dim,
            index,
            theirs,
        )
        share = div(g, masked_fill(hits, eq(hits, 0), 1))
        own = share * mine
        each = gather(share, dim, index) * theirs
        own = where(eq(hits, 0), g, own)
    if not include_self:
        own = scatter_value(own if reduce == "sum" or reduce == "mean" else g, dim, index, 0)
    if src.shape != index.shape:
        each = pad_end(each, src.shape)
    return own, each


cut = Composite(
    "cut(Tensor self, int[] size) -> Tensor",
    doc="The first `size` elements of `self` in each dimension.",
    dtypes="any",
    internal=True,
)


@cut.decompose
def _(self, size):
    check(len(size) == self.ndim, f"`size` {size} must have {self.ndim} dimensions")
    part = alias(self)
    for d in range(self.ndim):
        part = narrow(part, d, 0, size[d])
    return part


cut.reference(lambda self, size: self[tuple(slice(0, n) for n in size)].copy())
cut.samples(lambda s: iter([s(s.array(3, 4), (2, 4)), s(s.array(3), (0,))]))
cut.error("ShapeError", lambda s: s(s.array(3), (4,)), contains=["narrow", "length", "4"])

scatter_prod_backward = Composite(
    "scatter_prod_backward(Tensor grad, Tensor self, int dim, Tensor index, Tensor src, Tensor result, bool include_self)"
    " -> (Tensor, Tensor)",
    doc="The derivative of `scatter_reduce` with products for `self` and `src`; right with zeros too.",
    dtypes="floating",
    internal=True,
)


@part
def _products_before(x, keys, at):
    """The product of what stands before each element along `at` and has its key; equal keys stand
    together. Every step takes in twice as many.
    """
    n = x.shape[at]
    one = ones_like(narrow(x, at, 0, 1))
    same = eq(narrow(keys, at, 1, n - 1), narrow(keys, at, 0, n - 1))
    made = cat([one, where(same, narrow(x, at, 0, n - 1), 1.0)], at)
    step = 1
    while step < n:
        same = eq(narrow(keys, at, step, n - step), narrow(keys, at, 0, n - step))
        earlier = where(same, narrow(made, at, 0, n - step), 1.0)
        made = cat([narrow(made, at, 0, step), narrow(made, at, step, n - step) * earlier], at)
        step = step * 2
    return made


@scatter_prod_backward.decompose
def _(grad, self, dim, index, src, result, include_self):
    # products of others without a division: right where there are zeros, and so are their
    # derivatives
    base = self if include_self else scatter_value(self, dim, index, 1)
    own = grad * conjugate(scatter_reduce(ones_like(base), dim, index, src, "prod"))
    pull = gather(grad * conjugate(base), dim, index)
    if index.ndim == 0 or numel(index.shape) == 0:
        return own, clone(pull)
    at = wrap_dim("dim", dim, self.shape)
    places = where(lt(index, 0), index + self.shape[at], index)
    keys, order = sort(places, at)
    x = gather(src, at, order)
    before = _products_before(x, keys, at)
    after = flip(_products_before(flip(x, [at]), flip(keys, [at]), at), [at])
    others = scatter(zeros_like(src), at, order, before * after)
    return own, pull * conjugate(others)


@scatter_prod_backward.reference
def _(grad, self, dim, index, src, result, include_self):
    own, each = np.zeros_like(self), np.zeros_like(src)

    def run(x, y):
        return scatter_reduce_(x, dim, index, y, "prod", include_self=include_self).astype(
            "float64"
        )

    # the product is linear in each element: the difference between 1 and 0 is its derivative
    for made, first in ((own, True), (each, False)):
        for place in np.ndindex(made.shape):
            low, high = (
                (self if first else src).astype("float64"),
                (self if first else src).astype("float64"),
            )
            low[place], high[place] = 0, 1
            x, y = self.astype("float64"), src.astype("float64")
            change = run(high, y) - run(low, y) if first else run(x, high) - run(x, low)
            made[place] = (grad * change).sum()
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

# ---- the older spelling ------------------------------------------------------------------------
scatter_named = Composite(
    "scatter.combined(Tensor self, int dim|axis, Tensor index, Tensor src, *, str reduce) -> Tensor",
    doc="""
    `scatter_reduce` with `reduce` "add" or "multiply".

    >>> import plait_core as pc
    >>> pc.scatter(pc.ones(2), 0, pc.tensor([0, 0]), pc.tensor([2.0, 3.0]), reduce="multiply").tolist()
    [6.0, 1.0]
    """,
    inplace=True,
)
scatter_value_named = Composite(
    "scatter.combined_value(Tensor self, int dim|axis, Tensor index, Scalar value, *, str reduce) -> Tensor",
    doc='`scatter_reduce` of one number with `reduce` "add" or "multiply".',
    inplace=True,
)


@scatter_named.decompose
def _(self, dim, index, src, reduce):
    check(
        reduce == "add" or reduce == "multiply",
        f'`reduce` must be "add" or "multiply"; got "{reduce}"',
        "ValueError",
    )
    if reduce == "add":
        return scatter_reduce(self, dim, index, src, "sum")
    return scatter_reduce(self, dim, index, src, "prod")


@scatter_value_named.decompose
def _(self, dim, index, value, reduce):
    check(
        reduce == "add" or reduce == "multiply",
        f'`reduce` must be "add" or "multiply"; got "{reduce}"',
        "ValueError",
    )
    src = full(index.shape, value, dtype=self.dtype, device=self.device)
    if reduce == "add":
        return scatter_reduce(self, dim, index, src, "sum")
    return scatter_reduce(self, dim, index, src, "prod")


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

index_reduce = Composite(
    "index_reduce(Tensor self, int dim|axis, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
    doc="""
    `scatter_reduce` of whole slices: the slices of `source` are combined with those of `self` at `index` along `dim`, by
    `reduce` "prod", "mean", "amax" or "amin" (also "sum").

    Shape: `source` has that of `self` with the length of `index` along `dim`.
    Raises: as `scatter_reduce`, ShapeError for another shape.

    >>> import plait_core as pc
    >>> pc.index_reduce(pc.ones(2), 0, pc.tensor([1, 1]), pc.tensor([2.0, 3.0]), "prod").tolist()
    [1.0, 6.0]
    """,
    inplace=True,
    out=True,
)


@index_reduce.decompose
def _(self, dim, index, source, reduce, include_self):
    at = wrap_dim("dim", dim, self.shape)
    check(
        reduce in ("sum", "prod", "mean", "amax", "amin"),
        f'`reduce` must be "prod", "mean", "amax", "amin" or "sum"; got "{reduce}"',
        "ValueError",
    )
    check(index.ndim <= 1, f"`index` must have 1 dimension; got shape {index.shape}")
    require("index", index.dtype, "integer")
    if self.ndim == 0:
        check(
            numel(source.shape) == numel(index.shape),
            f"`source` must have {numel(index.shape)} elements; got shape {source.shape}",
        )
        flat = scatter_reduce(
            reshape(self, [1]),
            0,
            reshape(index, [-1]),
            reshape(source, [-1]),
            reduce,
            include_self=include_self,
        )
        return reshape(flat, [])
    want = list(self.shape)
    want[at] = numel(index.shape)
    check(
        source.shape == want,
        f"`source` must have shape {tuple(want)} for `self` of shape {self.shape}; got {source.shape}",
    )
    shape = [1] * self.ndim
    shape[at] = want[at]
    places = expand(reshape(index, shape), want)
    return scatter_reduce(self, at, places, source, reduce, include_self=include_self)


@index_reduce.reference
def _(self, dim, index, source, reduce, include_self=True):
    shape = [1] * self.ndim
    shape[dim] = index.size
    places = np.broadcast_to(index.reshape(shape), source.shape)
    return scatter_reduce_(self, dim, places, source, reduce, include_self=include_self)


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
