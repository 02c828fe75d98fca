"""Writing whole slices, masked elements and elements of the flattened tensor."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.words import (
    broadcast,
    check,
    fits,
    is_tensor,
    item,
    numel,
    require,
    require_same,
    viewable,
    wrap_dim,
)

_READS = "this operator takes no kernel, since it reads values; replace the operators that it calls instead."


def _both(name, arguments, text, more, example, reads=False):
    """Define ``name_``, which writes, and ``name``, which writes a copy. `reads`: what is written
    depends on values of an argument, so layers see the whole.
    """
    kind = Operator if reads else Composite
    kernel = _READS if reads else ""
    doc = f"""
    {text}
    {more}

    >>> import plait_core as pc
    >>> {example[0]}
    {example[1]}
    """
    writes = kind(
        f"{name}_(Tensor(a)! self, {arguments}) -> Tensor(a)!",
        doc=doc.replace(f".{name}(", f".{name}_("),
        dtypes="any",
        kernel=kernel,
        variants="method",
    )
    return writes, kind(
        f"{name}(Tensor self, {arguments}) -> Tensor",
        doc=doc,
        dtypes="any",
        kernel=kernel,
        variants="function method",
    )


# ---- slices along a dimension ------------------------------------------------------------------
index_copy_, index_copy = _both(
    "index_copy",
    "int dim|axis, Tensor index, Tensor source",
    "`self` with the slices of `source` written at `index` along `dim`: ``self[index[i]] = source[i]``.",
    """
    Shape: `source` has the shape of `self`, with the length of `index` along `dim`. If `index` names a place several times,
    one of the slices is kept; which one is not defined.
    Raises: IndexError for a `dim` or an index out of range, ShapeError for other shapes, DTypeError unless `index` holds
    integers and the others have the same dtype.
    """,
    (
        "pc.zeros(3).index_copy(0, pc.tensor([2, 0]), pc.tensor([5.0, 6.0])).tolist()",
        "[6.0, 0.0, 5.0]",
    ),
)
index_fill_, index_fill = _both(
    "index_fill",
    "int dim|axis, Tensor index, Tensor|Scalar value",
    "`self` with `value`, a number or a 0-d tensor, in its slices at `index` along `dim`.",
    """
    Raises: IndexError for a `dim` or an index out of range, ShapeError if `value` has dimensions, DTypeError unless
    `index` holds integers.
    """,
    ("pc.zeros(3).index_fill(0, pc.tensor([2, 0]), 1).tolist()", "[1.0, 0.0, 1.0]"),
)


@index_copy_.decompose
def _(self, dim, index, source):
    at = wrap_dim("dim", dim, self.shape)
    check(index.ndim <= 1, f"`index` must have 1 dimension; got shape {index.shape}")
    require("index", index.dtype, "integer")
    require_same("self", self, "source", source)
    want = list(self.shape)
    if self.ndim > 0:
        want[at] = numel(index.shape)
    check(
        source.shape == want or (self.ndim <= 1 and numel(source.shape) == numel(index.shape)),
        f"`source` must have shape {tuple(want)} for `self` of shape {self.shape}; got {source.shape}",
    )
    places = []
    for _i in range(at):
        places.append(None)
    places.append(op.reshape(index, [-1]))
    flat = op.view(self, [1]) if self.ndim == 0 else self
    rows = op.reshape(source, [-1]) if self.ndim <= 1 else source
    op.index_put_tensors_(flat, places, rows)
    return self


@index_fill_.decompose
def _(self, dim, index, value):
    at = wrap_dim("dim", dim, self.shape)
    check(index.ndim <= 1, f"`index` must have 1 dimension; got shape {index.shape}")
    require("index", index.dtype, "integer")
    if is_tensor(value):
        check(value.ndim == 0, f"`value` must be a number or a 0-d tensor; got shape {value.shape}")
    fits("value", value, self.dtype)
    places = []
    for _i in range(at):
        places.append(None)
    places.append(op.reshape(index, [-1]))
    flat = op.view(self, [1]) if self.ndim == 0 else self
    op.index_put_tensors_(flat, places, value)
    return self


@index_copy.decompose
def _(self, dim, index, source):
    return index_copy_(op.clone(self, memory_format="contiguous_format"), dim, index, source)


@index_fill.decompose
def _(self, dim, index, value):
    return index_fill_(op.clone(self), dim, index, value)


# ---- arrays of indices -------------------------------------------------------------------------
index_put = Composite(
    "index_put(Tensor self, Tensor?[] indices, Tensor|Scalar values, bool accumulate=False) -> Tensor",
    doc="""
    A copy of `self` to which `index_put_` has been applied.

    Args:
        indices: For each dimension the indices, int64 or bool, or None for all.

    >>> import plait_core as pc
    >>> pc.zeros(3).index_put([pc.tensor([0, 0])], pc.tensor(1.0), accumulate=True).tolist()
    [2.0, 0.0, 0.0]
    """,
    dtypes="any",
    variants="function method",
)


@index_put.decompose
def _(self, indices, values, accumulate):
    return op.index_put_(op.clone(self), indices, values, accumulate)


# ---- masks -------------------------------------------------------------------------------------
masked_scatter_, masked_scatter = _both(
    "masked_scatter",
    "Tensor mask, Tensor source",
    "`self` with the elements of `source`, in order, where `mask` is True.",
    """
    Shape: `mask` broadcasts to that of `self`; `source` has at least as many elements as `mask` has True ones.
    Raises: DTypeError unless `mask` is bool and the others have the same dtype, ShapeError for other shapes or a `source`
    that is too short.
    """,
    (
        "pc.zeros(3).masked_scatter(pc.tensor([True, False, True]), pc.tensor([5.0, 6.0])).tolist()",
        "[5.0, 0.0, 6.0]",
    ),
    reads=True,
)


@masked_scatter_.decompose
def _(self, mask, source):
    require("mask", mask.dtype, "bool")
    require_same("self", self, "source", source)
    shape = broadcast("self", self.shape, "mask", mask.shape)
    check(self.shape == shape, f"`mask` of shape {mask.shape} must broadcast to shape {self.shape}")
    wide = op.expand(mask, shape)
    count = item(op.count_nonzero(wide))
    have = numel(source.shape)
    check(
        count <= have,
        f"`source` must have at least {count} elements, one for each True of `mask`; got {have}",
    )
    op.masked_write_(self, wide, op.narrow(op.reshape(source, [-1]), 0, 0, count))
    return self


@masked_scatter.decompose
def _(self, mask, source):
    shape = broadcast("self", self.shape, "mask", mask.shape)
    return masked_scatter_(
        op.clone(op.expand(self, shape), memory_format="contiguous_format"), mask, source
    )


# ---- places of the flattened tensor ------------------------------------------------------------
put_, put = _both(
    "put",
    "Tensor index, Tensor source, bool accumulate=False",
    "`self` with the elements of `source` written at the places `index` of the flattened tensor, or added to them with `accumulate`.",
    """
    Raises: IndexError for an index out of range, ShapeError unless `index` and `source` have the same number of elements,
    DTypeError unless `index` holds integers and the others have the same dtype.
    """,
    (
        "pc.zeros(2, 2).put(pc.tensor([3, 0]), pc.tensor([5.0, 6.0])).tolist()",
        "[[6.0, 0.0], [0.0, 5.0]]",
    ),
)


@put_.decompose
def _(self, index, source, accumulate):
    require("index", index.dtype, "integer")
    require_same("self", self, "source", source)
    check(
        numel(index.shape) == numel(source.shape),
        f"`index` of shape {index.shape} and `source` of shape {source.shape} must have the same number of elements",
    )
    places = [op.reshape(index, [-1])]
    if viewable(self, [numel(self.shape)]):
        op.index_put_tensors_(op.view(self, [-1]), places, op.reshape(source, [-1]), accumulate)
    else:
        flat = op.clone(op.reshape(self, [-1]))
        op.index_put_tensors_(flat, places, op.reshape(source, [-1]), accumulate)
        op.copy_(self, op.reshape(flat, self.shape))
    return self


@put.decompose
def _(self, index, source, accumulate):
    return put_(op.clone(self), index, source, accumulate)
