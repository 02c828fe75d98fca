"""Copies and writes: clone, cast, copy_, fill_."""

from plait_ops import calls as op
from plait_ops.costs import nbytes
from plait_ops.spec import Composite, Operator
from plait_ops.words import (
    broadcast,
    check,
    contiguous_strides,
    dense_strides,
    fits,
    format_strides,
    is_in_format,
    result_as,
    sum_to,
    to_dtype,
    warn_of_real,
)

clone = Operator(
    'clone(Tensor self, *, str memory_format="preserve_format") -> Tensor',
    doc="""
    A copy of `self` with its own memory, without gaps. The dimensions lie in memory in the order that they have in `self`,
    or in that of `memory_format`: `contiguous_format`, `channels_last` (4 dimensions) or `channels_last_3d` (5).

    Raises: ShapeError if `memory_format` is for another number of dimensions; ValueError if there is no such format.

    >>> import plait_core as pc
    >>> pc.clone(pc.ones(2)).tolist()
    [1.0, 1.0]
    """,
    kernel="in[0] has any strides; the result is dense, in the order of dimensions that `memory_format` names.",
    dtypes="any",
    variants="function method",
)
clone.shard("elements", linear=["self"])
clone.batch("leading")


@clone.shape
def _(self, memory_format):
    strides = format_strides(memory_format, self.shape, dense_strides(self))
    return result_as(self.shape, self.dtype, strides)


contiguous = Composite(
    'contiguous(Tensor(a) self, *, str memory_format="contiguous_format") -> Tensor(a)',
    doc="""
    `self` if its elements lie in C order in memory, else a copy in which they do. `memory_format` may name another order:
    `channels_last` (4 dimensions) or `channels_last_3d` (5).

    Raises: ShapeError if `memory_format` is for another number of dimensions; ValueError if there is no such format.

    >>> import plait_core as pc
    >>> pc.zeros(2, 3).t().contiguous().is_contiguous()
    True
    """,
    dtypes="any",
    variants="method",
)
contiguous.shard("elements")
dense = Operator(
    "dense(Tensor self) -> Tensor",
    doc="A copy of `self` in C order.",
    dtypes="any",
    kernel="copies, like clone; the result is in C order.",
    internal=True,
)
dense.batch("leading")


@dense.shape
def _(self):
    return result_as(self.shape, self.dtype, contiguous_strides(self.shape))


@dense.decompose
def _(self):
    return copy_(op.empty(self.shape, dtype=self.dtype, device=self.device), self)


@clone.vjp("self")
@dense.vjp("self")
def _(g):
    return g


@contiguous.decompose
def _(self, memory_format):
    if is_in_format(memory_format, self):
        return self
    if memory_format == "contiguous_format":
        return dense(self)
    return clone(self, memory_format=memory_format)


cast = Operator(
    "cast(Tensor self, dtype dtype) -> Tensor",
    doc="""
    A copy of `self` in another dtype. Floating-point numbers are rounded towards 0 to become integers; for numbers outside
    the range of the integer dtype the result is not defined, but there is no error. Numbers other than 0 become True.
    Complex numbers lose their imaginary part. `Tensor.to`, `.float()` and similar methods call it.

    >>> import plait_abi, plait_core as pc
    >>> plait_abi.operator("cast")(pc.tensor([0.5, -1.5]), "int64").tolist()
    [0, -1]
    """,
    dtypes="any",
    kernel="all pairs of dtypes; the result is dense in the order of dimensions of in[0].",
    variants="",
)
cast.shard("elements")
cast.batch("leading")


@cast.shape
def _(self, dtype):
    warn_of_real(self.dtype, dtype)
    return result_as(self.shape, dtype, dense_strides(self))


@cast.vjp("self")
def _(g, self):
    return to_dtype(g, self.dtype)


copy_ = Operator(
    "copy_(Tensor(a)! self, Tensor src|other, bool non_blocking=False) -> Tensor(a)!",
    doc="""
    Write `src` into `self`: `src` broadcasts to the shape of `self` and is cast to its dtype. Returns `self`. The two may
    be on different devices. A copy between the host and a device is complete when the call returns. With `non_blocking` and
    pinned memory of the host, the call may return earlier; that memory must then not be changed until the copy is complete.

    Args:
        src: The tensor whose values are copied, and cast; its shape broadcasts.

    Raises: ShapeError if `src` does not broadcast to `self`.

    >>> import plait_core as pc
    >>> x = pc.zeros(2, 2)
    >>> x.copy_(pc.tensor([1, 2])).tolist()
    [[1.0, 2.0], [1.0, 2.0]]
    """,
    dtypes="any",
    any_device=True,
    kernel="in[0] and in[1] have any strides and dtypes and are on one device; in[1] broadcasts to in[0].",
    variants="method",
)
copy_.shard("elements")


@copy_.shape
def _(self, src, non_blocking):
    shape = broadcast("self", self.shape, "src", src.shape)
    check(
        shape == list(self.shape),
        f"`src` of shape {src.shape} must broadcast to the shape of `self`, {self.shape}",
    )
    warn_of_real(src.dtype, self.dtype)
    return self


@copy_.cost
def _(self, src):
    return 0, nbytes(src), nbytes(self)


@copy_.vjp("src")
def _(g, src):
    return to_dtype(sum_to(g, src.shape), src.dtype)


fill_ = Operator(
    "fill_(Tensor(a)! self, Scalar value) -> Tensor(a)!",
    doc="""
    Write `value`, cast to the dtype of `self`, to every element of `self`. Returns `self`.

    Args:
        value: The value of the elements, a number or a 0-d tensor.

    >>> import plait_core as pc
    >>> pc.zeros(2).fill_(3).tolist()
    [3.0, 3.0]
    """,
    dtypes="any",
    kernel="in[0] has any strides.",
    variants="function method",
)
fill_.shard("elements")
fill_tensor = Composite(
    "fill_.tensor(Tensor(a)! self, Tensor value) -> Tensor(a)!",
    doc="""
    Write the element of the 0-d tensor `value`, cast to the dtype of `self`, to every element of `self`. A gradient flows
    to `value`. Returns `self`.

    Args:
        value: The value of the elements, a number or a 0-d tensor.

    Raises: ShapeError if `value` has dimensions, DTypeError if it is complex and `self` is not.

    >>> import plait_core as pc
    >>> pc.zeros(2).fill_(pc.tensor(3.0)).tolist()
    [3.0, 3.0]
    """,
    dtypes="any",
    variants="function method",
)
zero_ = Operator(
    "zero_(Tensor(a)! self) -> Tensor(a)!",
    doc="""
    Write 0 to every element of `self`. Returns `self`.

    >>> import plait_core as pc
    >>> pc.ones(2).zero_().tolist()
    [0.0, 0.0]
    """,
    kernel="optional: without a kernel other operators compute it; writes in[0], which has any strides and no two elements in one place, and reads nothing of it; any dtype.",
    dtypes="any",
    variants="function method",
)
zero_.shard("elements")


@fill_.shape
def _(self, value):
    fits("value", value, self.dtype)
    return self


@zero_.shape
def _(self):
    return self


@fill_.cost
@zero_.cost
def _(self):
    return 0, 0, nbytes(self)


@copy_.vjp("self")
@fill_.vjp("self")
@zero_.vjp("self")
def _(g):
    return op.zeros_like(g)


@fill_tensor.decompose
def _(self, value):
    check(value.ndim == 0, f"`value` must be a number or a 0-d tensor; got shape {value.shape}")
    fits("value", value, self.dtype)
    return copy_(self, value)


@zero_.decompose
def _(self):
    return fill_(self, 0)
