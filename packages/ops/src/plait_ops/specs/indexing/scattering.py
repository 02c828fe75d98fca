"""Writing along one dimension by an index tensor."""

from plait_ops import calls as op
from plait_ops.spec import Operator
from plait_ops.specs.indexing.gathering import _KERNEL, bytes_moved
from plait_ops.words import (
    cast_argument,
    check,
    fits,
    gather_check,
    int32,
    int64,
    itemsize,
    numel,
    part,
    require_same,
    result,
)

_SCATTER = """
    `self` with {what} `index` along `dim`: ``out[index[i, j], j] {sign} src[i, j]`` for `dim` 0, and so on.{more}
    `index` has as many dimensions as `self`, and its sizes are not larger than those of `src`, nor, except along `dim`,
    than those of `self`.

    Raises: IndexError for a `dim` or an index out of range, ShapeError for other shapes, DTypeError unless `index` holds
    integers and the others have the same dtype.

    >>> import plait_core as pc
    >>> pc.{name}(pc.zeros(3), 0, pc.tensor([2, 0]), pc.tensor([5.0, 6.0])).tolist()
    [6.0, 0.0, 5.0]
    """
scatter_ = Operator(
    "scatter(Tensor self, int dim|axis, Tensor index, Tensor src) -> Tensor",
    doc=_SCATTER.format(
        name="scatter",
        what="the elements of `src` written at",
        sign="=",
        more=" Of several elements for one place the last is kept.",
    ),
    inplace=True,
    dtypes="any",
    kernel=_KERNEL + " Written in order.",
    variants="function method",
)
scatter_.batch("dimensions")
scatter_value_ = Operator(
    "scatter.value(Tensor self, int dim|axis, Tensor index, Scalar value) -> Tensor",
    doc="""
    `self` with `value` written at `index` along `dim`.

    >>> import plait_core as pc
    >>> pc.scatter(pc.zeros(3), 0, pc.tensor([2, 0]), 1).tolist()
    [1.0, 0.0, 1.0]
    """,
    inplace=True,
    dtypes="any",
    kernel=_KERNEL,
    variants="function method",
)
scatter_value_.batch("dimensions")
scatter_add_ = Operator(
    "scatter_add(Tensor self, int dim|axis, Tensor index, Tensor src) -> Tensor",
    doc=_SCATTER.format(
        name="scatter_add",
        what="the elements of `src` added at",
        sign="+=",
        more=" Several elements for one place are all added.",
    ),
    inplace=True,
    dtypes="any",
    kernel=_KERNEL + " Added in order.",
    variants="function method",
)
scatter_add_.batch("dimensions")


@scatter_.shape
@scatter_add_.shape
def _(self, dim, index, src):
    gather_check("self", self.shape, dim, "index", index)
    for d in range(index.ndim):
        check(
            src.ndim == index.ndim and index.shape[d] <= src.shape[d],
            f"`index` of shape {index.shape} must not be larger than `src` of shape {src.shape}",
        )
    check(
        src.ndim == index.ndim,
        f"`src` of shape {src.shape} must have as many dimensions as `index` of shape {index.shape}",
    )
    require_same("self", self, "src", src)
    cast_argument("index", int64)
    return result(self.shape, self.dtype)


@scatter_.cost
def _(self, index, inplace):
    moved = bytes_moved(self, index, numel(index), inplace)
    return 0, moved[0], moved[1]


@scatter_add_.cost
def _(self, index, inplace):
    moved = bytes_moved(self, index, numel(index), inplace)
    given = numel(index) * itemsize(self.dtype)  # and what stands there
    return numel(index), moved[0] + given, moved[1]


@scatter_value_.shape
def _(self, dim, index, value):
    gather_check("self", self.shape, dim, "index", index)
    cast_argument("index", int64)
    fits("value", value, self.dtype)
    return result(self.shape, self.dtype)


@scatter_value_.cost
def _(self, index, inplace):
    moved = bytes_moved(self, index, numel(index), inplace)
    return 0, moved[0] - numel(index) * itemsize(self.dtype), moved[1]


@scatter_value_.decompose
def _(self, dim, index, value):
    one = op.full([1] * index.ndim, value, dtype=self.dtype, device=self.device)
    return op.scatter(self, dim, index, op.expand(one, index.shape))


@scatter_.vjp("self")
@scatter_value_.vjp("self")
def _(g, dim, index):
    return op.scatter_value(g, dim, index, 0)


@scatter_add_.vjp("self")
def _(g):
    return g


@part
def ordinals(shape, device):
    """The positions 0, 1, ... of a shape in C order, in the smallest dtype that holds them."""
    count = numel(shape)
    return op.reshape(
        op.arange(count, dtype=int32 if count <= 2147483647 else int64, device=device), shape
    )


@scatter_.vjp("src")
def _(g, dim, index, src):
    # of several elements for one index the last one is kept; the others have no gradient
    order = ordinals(index.shape, g.device)
    last = scatter_(op.zeros(g.shape, dtype=order.dtype, device=g.device), dim, index, order)
    picked = op.where(op.eq(op.gather(last, dim, index), order), op.gather(g, dim, index), 0.0)
    if picked.shape == src.shape:
        return picked
    return pad_end(picked, src.shape)


@scatter_add_.vjp("src")
def _(g, dim, index, src):
    picked = op.gather(g, dim, index)
    if picked.shape == src.shape:
        return picked
    return pad_end(picked, src.shape)


pad_end = Operator(
    "pad_end(Tensor self, int[] size) -> Tensor",
    doc="`self` extended with zeros at the end of every dimension, up to `size`.",
    kernel="optional: without a kernel other operators compute it; in[0] stands at the beginning of every dimension of the result, which is zero beyond.",
    dtypes="floating",
    internal=True,
)
pad_end.batch("leading")


@pad_end.shape
def _(self, size):
    check(len(size) == self.ndim, f"`size` {size} must have {self.ndim} dimensions")
    for d in range(self.ndim):
        check(
            self.shape[d] <= size[d], f"`size` {size} must not be smaller than shape {self.shape}"
        )
    return result(size, self.dtype)


@pad_end.decompose
def _(self, size):
    made = op.zeros(size, dtype=self.dtype, device=self.device)
    part = op.alias(made)
    for d in range(self.ndim):
        part = op.narrow(part, d, 0, self.shape[d])
    op.copy_(part, self)
    return made


@pad_end.vjp("self")
def _(g, self):
    part = g
    for d in range(self.ndim):
        part = op.narrow(part, d, 0, self.shape[d])
    return part
