"""Scattering with reduction of elements that have the same index: sums, products, means, extremes."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.specs.indexing.gathering import _KERNEL, bytes_moved
from plait_ops.specs.indexing.scattering import pad_end
from plait_ops.words import (
    cast_argument,
    check,
    conjugate,
    gather_check,
    int64,
    itemsize,
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
    `self` in which the elements of `src` are combined at the places that `index` names along `dim`. `reduce` is "sum",
    "prod", "mean", "amax" or "amin" (also "max" and "min"), and each place holds the sum, product, mean, largest or
    smallest of the elements for it and, with `include_self`, of the element that was there. Other places keep their
    elements. A mean of integers is rounded down. For the largest and the smallest, nan counts before all numbers.

    Shape: as for `scatter`. Dtypes: numbers; for sums also bool. The gradient is divided evenly among equal largest or
    smallest elements.
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
    variants="function method",
)
scatter_reduce_.batch("dimensions")


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


@scatter_reduce_.cost
def _(self, index, inplace):
    moved = bytes_moved(self, index, numel(index), inplace)
    given = numel(index) * itemsize(self.dtype)  # and what stands there
    return numel(index), moved[0] + given, moved[1]


@scatter_reduce_.vjp("self", "src")
def _(g, self, dim, index, src, reduce, include_self, result):
    part = src
    if src.shape != index.shape:
        part = cut(src, index.shape)
    # the gradient of the old value and of each source element, for each index
    if reduce == "sum":
        own = g
        each = op.gather(g, dim, index)
    elif reduce == "mean":
        ones = op.ones_like(part)
        count = op.scatter_add(
            op.ones_like(self) if include_self else op.zeros_like(self), dim, index, ones
        )
        own = op.div(g, op.masked_fill(count, op.eq(count, 0), 1))
        each = op.gather(own, dim, index)
        if not include_self:
            own = g
    elif reduce == "prod":
        own, each = scatter_prod_backward(g, self, dim, index, part, result, include_self)
    else:
        mine = to_dtype(op.eq(self, result), g.dtype)
        theirs = to_dtype(op.eq(part, op.gather(result, dim, index)), g.dtype)
        hits = op.scatter_add(
            mine if include_self else op.scatter_value(op.zeros_like(mine), dim, index, 0),
            dim,
            index,
            theirs,
        )
        share = op.div(g, op.masked_fill(hits, op.eq(hits, 0), 1))
        own = share * mine
        each = op.gather(share, dim, index) * theirs
        own = op.where(op.eq(hits, 0), g, own)
    if not include_self:
        own = op.scatter_value(own if reduce == "sum" or reduce == "mean" else g, dim, index, 0)
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
    part = op.alias(self)
    for d in range(self.ndim):
        part = op.narrow(part, d, 0, size[d])
    return part


scatter_prod_backward = Composite(
    "scatter_prod_backward(Tensor grad, Tensor self, int dim, Tensor index, Tensor src, Tensor result, bool include_self)"
    " -> (Tensor, Tensor)",
    doc="The derivative of `scatter_reduce` with products, with respect to `self` and `src`, correct also where elements are 0.",
    dtypes="floating",
    internal=True,
)


@part
def _products_before(x, keys, at):
    """The product of the elements before each element along `at` that have its key; equal keys are
    adjacent. Every step doubles the number of factors.
    """
    n = x.shape[at]
    one = op.ones_like(op.narrow(x, at, 0, 1))
    same = op.eq(op.narrow(keys, at, 1, n - 1), op.narrow(keys, at, 0, n - 1))
    made = op.cat([one, op.where(same, op.narrow(x, at, 0, n - 1), 1.0)], at)
    step = 1
    while step < n:
        same = op.eq(op.narrow(keys, at, step, n - step), op.narrow(keys, at, 0, n - step))
        earlier = op.where(same, op.narrow(made, at, 0, n - step), 1.0)
        made = op.cat(
            [op.narrow(made, at, 0, step), op.narrow(made, at, step, n - step) * earlier], at
        )
        step = step * 2
    return made


@scatter_prod_backward.decompose
def _(grad, self, dim, index, src, result, include_self):
    # products of the other elements without a division, so that they are right for zeros, and so
    # are their derivatives
    base = self if include_self else op.scatter_value(self, dim, index, 1)
    own = grad * conjugate(op.scatter_reduce(op.ones_like(base), dim, index, src, "prod"))
    pull = op.gather(grad * conjugate(base), dim, index)
    if index.ndim == 0 or numel(index.shape) == 0:
        return own, op.clone(pull)
    at = wrap_dim("dim", dim, self.shape)
    places = op.where(op.lt(index, 0), index + self.shape[at], index)
    keys, order = op.sort(places, at)
    x = op.gather(src, at, order)
    before = _products_before(x, keys, at)
    after = op.flip(_products_before(op.flip(x, [at]), op.flip(keys, [at]), at), [at])
    others = op.scatter(op.zeros_like(src), at, order, before * after)
    return own, pull * conjugate(others)


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
    variants="function method",
)
scatter_value_named = Composite(
    "scatter.combined_value(Tensor self, int dim|axis, Tensor index, Scalar value, *, str reduce) -> Tensor",
    doc='`scatter_reduce` of one number with `reduce` "add" or "multiply".',
    inplace=True,
    variants="function method",
)


@scatter_named.decompose
def _(self, dim, index, src, reduce):
    check(
        reduce == "add" or reduce == "multiply",
        f'`reduce` must be "add" or "multiply"; got "{reduce}"',
        "ValueError",
    )
    if reduce == "add":
        return op.scatter_reduce(self, dim, index, src, "sum")
    return op.scatter_reduce(self, dim, index, src, "prod")


@scatter_value_named.decompose
def _(self, dim, index, value, reduce):
    check(
        reduce == "add" or reduce == "multiply",
        f'`reduce` must be "add" or "multiply"; got "{reduce}"',
        "ValueError",
    )
    src = op.full(index.shape, value, dtype=self.dtype, device=self.device)
    if reduce == "add":
        return op.scatter_reduce(self, dim, index, src, "sum")
    return op.scatter_reduce(self, dim, index, src, "prod")


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
    variants="function method",
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
        flat = op.scatter_reduce(
            op.reshape(self, [1]),
            0,
            op.reshape(index, [-1]),
            op.reshape(source, [-1]),
            reduce,
            include_self=include_self,
        )
        return op.reshape(flat, [])
    want = list(self.shape)
    want[at] = numel(index.shape)
    check(
        source.shape == want,
        f"`source` must have shape {tuple(want)} for `self` of shape {self.shape}; got {source.shape}",
    )
    shape = [1] * self.ndim
    shape[at] = want[at]
    places = op.expand(op.reshape(index, shape), want)
    return op.scatter_reduce(self, at, places, source, reduce, include_self=include_self)
