"""Creation: fresh tensors, constant ones, ranges."""

import numpy as np

from plait_ops.calls import empty_like, fill_
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
    A tensor of shape `size` whose elements nobody has set; `dtype` None is the default dtype.

    Raises: ShapeError if `size` holds negative sizes, more than 64 of them, or names 2**63 elements or more.

    >>> import plait_core as pc
    >>> tuple(pc.empty(2, 3).shape)
    (2, 3)
    """,
    fresh=True,
    method=False,
)


@empty.shape
def _(size, dtype, memory_format):
    sizes("size", size)
    strides = format_strides(memory_format, size, contiguous_strides(size))
    return result_as(size, dtype if dtype is not None else default_dtype(), strides)


@empty.reference
def _(size, dtype=None, memory_format=None):
    return np.zeros(size, dtype or "float32")


@empty.samples
def _(s):
    yield s((2, 3))
    yield s(2, 3, dtype="int64")
    yield s(())
    yield s((0, 4), dtype="bool")
    yield s((2, 3, 2, 2), memory_format="channels_last")


empty.error(
    "ShapeError",
    lambda s: s((2, 3), memory_format="channels_last"),
    contains=["empty", "memory_format", "(2, 3)"],
)
empty.error("ShapeError", lambda s: s((2, -1)), contains=["empty", "size", "(2, -1)"])
empty.error("ShapeError", lambda s: s((2**40, 2**40)), contains=["empty", "size", "2**63"])
empty.error("ShapeError", lambda s: s((1,) * 65), contains=["empty", "size", "64", "65"])


empty_like = View(
    "empty_like(Tensor self, *, dtype? dtype=None, device? device=None, "
    'str memory_format="preserve_format") -> Tensor',
    doc="""
    A tensor of the shape of `self` whose elements nobody has set, in the order of dimensions that `self` has in memory.
    `dtype` and `device` None are those of `self`.

    >>> import plait_core as pc
    >>> tuple(pc.empty_like(pc.zeros(2, 3)).shape)
    (2, 3)
    """,
    fresh=True,
    method=False,
)


@empty_like.shape
def _(self, dtype, memory_format):
    strides = format_strides(memory_format, self.shape, dense_strides(self))
    return result_as(self.shape, dtype if dtype is not None else self.dtype, strides)


@empty_like.reference
def _(self, dtype=None, memory_format=None):
    return np.empty_like(self, dtype=dtype)


@empty_like.samples
def _(s):
    yield s(s.array(2, 3))
    yield s(s.array(2, 3, 4).transpose(2, 0, 1), dtype="int32")
    yield s(s.array(0))


full = Operator(
    "full(int[] size, Scalar value|fill_value, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    A tensor of shape `size` with `value` everywhere; `dtype` None: bool, int64, the default dtype or its complex, as `value` is.

    Raises: ShapeError if `size` holds negative sizes, more than 64 of them, or names 2**63 elements or more.

    >>> import plait_core as pc
    >>> pc.full((2, 2), 7).tolist()
    [[7, 7], [7, 7]]
    """,
    dtypes="any",
    kernel="writes in[1] to every element of a dense result.",
    out=True,
)


@full.shape
def _(size, value, dtype):
    sizes("size", size)
    made = dtype if dtype is not None else dtype_of(value)
    fits("value", value, made)
    return result(size, made)


@full.reference
def _(size, value, dtype=None):
    return np.full(
        size,
        value,
        dtype
        or {"b": "bool", "i": "int64", "f": "float32", "c": "complex64"}[
            np.asarray(value).dtype.kind
        ],
    )


@full.samples
def _(s):
    yield s((2, 3), 1.5)
    yield s((4,), 7)
    yield s((), True)
    yield s((0, 2), 1)
    yield s((2,), 3, dtype="float64")
    yield s((3,), 1, dtype="uint8")


full.error("ShapeError", lambda s: s((2, -1), 0), contains=["full", "size", "(2, -1)"])
full.error("ShapeError", lambda s: s((2**62, 4), 0), contains=["full", "size", "2**63"])
full.error("ShapeError", lambda s: s((1,) * 65, 0), contains=["full", "size", "64", "65"])
full.error("TypeError", lambda s: s((2,), "x"), contains=["full", "value"])


full_like = Operator(
    "full_like(Tensor self, Scalar value|fill_value, *, dtype? dtype=None, device? device=None, "
    'str memory_format="preserve_format") -> Tensor',
    doc="""
    A tensor of the shape of `self` with `value` everywhere. `dtype` and `device` None are those of `self`.

    >>> import plait_core as pc
    >>> pc.full_like(pc.zeros(2), 7.0).tolist()
    [7.0, 7.0]
    """,
    dtypes="any",
    kernel="writes in[1] to every element; the result may be dense in another order of dimensions.",
    method=False,
)


@full_like.shape
def _(self, dtype, memory_format):
    strides = format_strides(memory_format, self.shape, dense_strides(self))
    return result_as(self.shape, dtype if dtype is not None else self.dtype, strides)


@full_like.decompose
def _(self, value, dtype, device, memory_format):
    fresh = empty_like(self, dtype=dtype, device=device, memory_format=memory_format)
    return fill_(fresh, value)


@full_like.reference
def _(self, value, dtype=None, memory_format=None):
    return np.full_like(self, value, dtype=dtype)


@full_like.samples
def _(s):
    yield s(s.array(2, 3), 1.5)
    yield s(s.strided(2, 3), 4, dtype="int64")
    yield s(s.array(dtype="int32"), 2)


zeros = Operator(
    "zeros(int[]* size, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    A tensor of shape `size` full of 0; `dtype` None is the default dtype.

    Raises: ShapeError if `size` holds negative sizes, more than 64 of them, or names 2**63 elements or more.

    >>> import plait_core as pc
    >>> pc.zeros(2, 2).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """,
    dtypes="any",
    method=False,
    out=True,
)
ones = Operator(
    "ones(int[]* size, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    A tensor of shape `size` full of 1; `dtype` None is the default dtype.

    Raises: ShapeError if `size` holds negative sizes, more than 64 of them, or names 2**63 elements or more.

    >>> import plait_core as pc
    >>> pc.ones(2, dtype="int64").tolist()
    [1, 1]
    """,
    dtypes="any",
    method=False,
    out=True,
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
    A tensor of the shape of `self` full of 0. `dtype` and `device` None are those of `self`.

    >>> import plait_core as pc
    >>> pc.zeros_like(pc.ones(2)).tolist()
    [0.0, 0.0]
    """,
    dtypes="any",
    method=False,
)
ones_like = Operator(
    "ones_like(Tensor self, *, dtype? dtype=None, device? device=None, "
    'str memory_format="preserve_format") -> Tensor',
    doc="""
    A tensor of the shape of `self` full of 1. `dtype` and `device` None are those of `self`.

    >>> import plait_core as pc
    >>> pc.ones_like(pc.zeros(2)).tolist()
    [1.0, 1.0]
    """,
    dtypes="any",
    method=False,
)


@zeros_like.shape
@ones_like.shape
def _(self, dtype, memory_format):
    strides = format_strides(memory_format, self.shape, dense_strides(self))
    return result_as(self.shape, dtype if dtype is not None else self.dtype, strides)


@zeros_like.decompose
def _(self, dtype, device, memory_format):
    return full_like(self, 0, dtype=dtype, device=device, memory_format=memory_format)


@ones_like.decompose
def _(self, dtype, device, memory_format):
    return full_like(self, 1, dtype=dtype, device=device, memory_format=memory_format)


zeros.reference(lambda size, dtype=None: np.zeros(size, dtype or "float32"))
ones.reference(lambda size, dtype=None: np.ones(size, dtype or "float32"))
zeros_like.reference(lambda self, dtype=None, memory_format=None: np.zeros_like(self, dtype=dtype))
ones_like.reference(lambda self, dtype=None, memory_format=None: np.ones_like(self, dtype=dtype))


@zeros.samples
@ones.samples
def _(s):
    yield s((2, 3))
    yield s(2, 3, dtype="int64")
    yield s(())
    yield s((0, 4), dtype="bool")


@zeros_like.samples
@ones_like.samples
def _(s):
    yield s(s.array(2, 3))
    yield s(s.array(2, 3, 4).transpose(2, 0, 1), dtype="int32")
    yield s(s.backwards(3))


for each in (zeros, ones):
    each.error("ShapeError", lambda s: s((2, -1)), contains=[each.name, "size", "(2, -1)"])
    each.error("ShapeError", lambda s: s((2**40, 2**40)), contains=[each.name, "size", "2**63"])
    each.error("ShapeError", lambda s: s((1,) * 65), contains=[each.name, "size", "64", "65"])
for each in (zeros_like, ones_like, empty_like):
    each.error("TypeError", lambda s: s("x"), contains=[each.name, "self"])
full_like.error("TypeError", lambda s: s(s.array(2), "x"), contains=["full_like", "value"])
