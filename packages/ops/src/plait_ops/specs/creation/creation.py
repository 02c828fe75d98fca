"""Creation: uninitialised tensors, constants, ranges."""

from plait_ops import calls as op
from plait_ops.costs import nbytes
from plait_ops.spec import Operator, View
from plait_ops.words import (
    contiguous_strides,
    default_dtype,
    dense_strides,
    dtype_of,
    fits,
    format_strides,
    result,
    result_as,
    sizes,
)

empty = View(
    "empty(int[]* size, *, dtype? dtype=None, device? device=None, "
    'str memory_format="contiguous_format") -> Tensor',
    doc="""
    A tensor of shape `size` whose elements are not initialised; `dtype` None is the default dtype.

    Raises: ShapeError if `size` holds a negative size or more than 64 sizes, or if there would be 2**63 elements or more.

    >>> import plait_core as pc
    >>> tuple(pc.empty(2, 3).shape)
    (2, 3)
    """,
    out=True,
    fresh=True,
)


@empty.shape
def _(size, dtype, memory_format):
    sizes("size", size)
    strides = format_strides(memory_format, size, contiguous_strides(size))
    return result_as(size, dtype if dtype is not None else default_dtype(), strides)


empty_like = View(
    "empty_like(Tensor self, *, dtype? dtype=None, device? device=None, "
    'str memory_format="preserve_format") -> Tensor',
    doc="""
    A tensor of the shape of `self` whose elements are not initialised. Its dimensions lie in memory in the order that they
    have in `self`. `dtype` and `device` None mean those of `self`.

    >>> import plait_core as pc
    >>> tuple(pc.empty_like(pc.zeros(2, 3)).shape)
    (2, 3)
    """,
    fresh=True,
)
empty_like.shard("elements")
empty_like.batch("leading")


full = Operator(
    "full(int[] size, Scalar value|fill_value, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    A tensor of shape `size` with `value` everywhere; `dtype` None: bool, int64, the default dtype or the complex dtype of
    it, according to the type of `value`.

    Args:
        value: The value of the elements, a number or a 0-d tensor.

    Raises: ShapeError if `size` holds a negative size or more than 64 sizes, or if there would be 2**63 elements or more.

    >>> import plait_core as pc
    >>> pc.full((2, 2), 7).tolist()
    [[7, 7], [7, 7]]
    """,
    dtypes="any",
    kernel="writes in[1] to every element of a dense result.",
)


@full.shape
def _(size, value, dtype):
    sizes("size", size)
    made = dtype if dtype is not None else dtype_of(value)
    fits("value", value, made)
    return result(size, made)


@full.decompose
def _(size, value, dtype, device):
    made = dtype if dtype is not None else dtype_of(value)
    return op.fill_(empty(size, dtype=made, device=device), value)


full_like = Operator(
    "full_like(Tensor self, Scalar value|fill_value, *, dtype? dtype=None, device? device=None, "
    'str memory_format="preserve_format") -> Tensor',
    doc="""
    A tensor of the shape of `self` with `value` everywhere. `dtype` and `device` None mean those of `self`.

    Args:
        value: The value of the elements, a number or a 0-d tensor.

    >>> import plait_core as pc
    >>> pc.full_like(pc.zeros(2), 7.0).tolist()
    [7.0, 7.0]
    """,
    dtypes="any",
    kernel="writes in[1] to every element; the result may be dense in another order of dimensions.",
)
full_like.shard("elements")
full_like.batch("leading")


@full_like.shape
def _(self, value, dtype, memory_format):
    made = dtype if dtype is not None else self.dtype
    fits("value", value, made)
    strides = format_strides(memory_format, self.shape, dense_strides(self))
    return result_as(self.shape, made, strides)


@full_like.decompose
def _(self, value, dtype, device, memory_format):
    fresh = empty_like(self, dtype=dtype, device=device, memory_format=memory_format)
    return op.fill_(fresh, value)


zeros = Operator(
    "zeros(int[]* size, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    A tensor of shape `size` full of 0; `dtype` None is the default dtype.

    Raises: ShapeError if `size` holds a negative size or more than 64 sizes, or if there would be 2**63 elements or more.

    >>> import plait_core as pc
    >>> pc.zeros(2, 2).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """,
    kernel="optional: without a kernel other operators compute it; the result is in C order, of any dtype.",
    dtypes="any",
)
ones = Operator(
    "ones(int[]* size, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    A tensor of shape `size` full of 1; `dtype` None is the default dtype.

    Raises: ShapeError if `size` holds a negative size or more than 64 sizes, or if there would be 2**63 elements or more.

    >>> import plait_core as pc
    >>> pc.ones(2, dtype="int64").tolist()
    [1, 1]
    """,
    kernel="optional: without a kernel other operators compute it; the result is in C order, of any dtype.",
    dtypes="any",
)


@zeros.shape
@ones.shape
def _(size, dtype):
    sizes("size", size)
    return result(size, dtype if dtype is not None else default_dtype())


@zeros.decompose
def _(size, dtype, device):
    return full(size, 0, dtype=dtype if dtype is not None else default_dtype(), device=device)


@ones.decompose
def _(size, dtype, device):
    return full(size, 1, dtype=dtype if dtype is not None else default_dtype(), device=device)


zeros_like = Operator(
    "zeros_like(Tensor self, *, dtype? dtype=None, device? device=None, "
    'str memory_format="preserve_format") -> Tensor',
    doc="""
    A tensor of the shape of `self` full of 0. `dtype` and `device` None mean those of `self`.

    >>> import plait_core as pc
    >>> pc.zeros_like(pc.ones(2)).tolist()
    [0.0, 0.0]
    """,
    kernel="optional: without a kernel other operators compute it; the result is dense, in the order of dimensions that `memory_format` names; in[0] is not read.",
    dtypes="any",
)
zeros_like.shard("elements")
zeros_like.batch("leading")
ones_like = Operator(
    "ones_like(Tensor self, *, dtype? dtype=None, device? device=None, "
    'str memory_format="preserve_format") -> Tensor',
    doc="""
    A tensor of the shape of `self` full of 1. `dtype` and `device` None mean those of `self`.

    >>> import plait_core as pc
    >>> pc.ones_like(pc.zeros(2)).tolist()
    [1.0, 1.0]
    """,
    kernel="optional: without a kernel other operators compute it; the result is dense, in the order of dimensions that `memory_format` names; in[0] is not read.",
    dtypes="any",
)
ones_like.shard("elements")
ones_like.batch("leading")


@empty_like.shape
@zeros_like.shape
@ones_like.shape
def _(self, dtype, memory_format):
    strides = format_strides(memory_format, self.shape, dense_strides(self))
    return result_as(self.shape, dtype if dtype is not None else self.dtype, strides)


@full_like.cost
@zeros_like.cost
@ones_like.cost
def _(result):
    return 0, 0, nbytes(result)


@zeros_like.decompose
def _(self, dtype, device, memory_format):
    return full_like(self, 0, dtype=dtype, device=device, memory_format=memory_format)


@ones_like.decompose
def _(self, dtype, device, memory_format):
    return full_like(self, 1, dtype=dtype, device=device, memory_format=memory_format)
