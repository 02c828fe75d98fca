"""Complex numbers: their parts as views, and how they are made."""

import math

from plait_ops import calls as op
from plait_ops.spec import Composite, Pointwise, View
from plait_ops.unary import predicate
from plait_ops.words import (
    bool_,
    broadcast,
    check,
    complex_dtype,
    float32,
    float64,
    is_complex,
    numel,
    real_dtype,
    require_same,
    to_dtype,
    view,
    view_parts,
)

PI = math.pi


real_ = View(
    "real(Tensor(a) self) -> Tensor(a)",
    doc="""
    The real parts, as a view of the same memory; of a real tensor, the tensor itself. ``x.real`` is the same.

    Shape: that of `self`. Dtypes: all; complex64 gives float32, complex128 float64.

    >>> import plait_core as pc
    >>> pc.real(pc.tensor([1 + 2j, 3 - 4j])).tolist()
    [1.0, 3.0]
    """,
)
real_.batch("leading")
imag = View(
    "imag(Tensor(a) self) -> Tensor(a)",
    doc="""
    The imaginary parts, as a view of the same memory. ``x.imag`` is the same.

    Shape: that of `self`. Dtypes: complex64 gives float32, complex128 float64.
    Raises: DTypeError for real dtypes, which have no imaginary part.

    >>> import plait_core as pc
    >>> pc.imag(pc.tensor([1 + 2j, 3 - 4j])).tolist()
    [2.0, -4.0]
    """,
)
imag.batch("leading")
view_as_real = View(
    "view_as_real(Tensor(a) self) -> Tensor(a)",
    doc="""
    A complex tensor as pairs of real numbers: a view with a last dimension of 2, the real and the imaginary part.

    Shapes: `self` has shape (*), the result (*, 2). Dtypes: complex64 gives float32, complex128 float64.
    Raises: DTypeError for real dtypes.

    >>> import plait_core as pc
    >>> pc.view_as_real(pc.tensor([1 + 2j, 3 - 4j])).tolist()
    [[1.0, 2.0], [3.0, -4.0]]
    """,
)
view_as_real.batch("leading")
view_as_complex = View(
    "view_as_complex(Tensor(a) self) -> Tensor(a)",
    doc="""
    Pairs of real numbers as complex ones: a view without the last dimension, which must have 2 adjacent elements.

    Shapes: `self` has shape (*, 2), the result (*). Dtypes: float32 gives complex64, float64 complex128.
    Raises: DTypeError for other dtypes, ShapeError unless the last dimension has size 2 and stride 1 and the other
    strides are even.

    >>> import plait_core as pc
    >>> pc.view_as_complex(pc.tensor([[1.0, 2.0], [3.0, -4.0]])).tolist()
    [(1+2j), (3-4j)]
    """,
)
view_as_complex.batch("leading")


@real_.shape
def _(self):
    if not is_complex(self.dtype):
        return view(self, self.shape, self.strides)
    strides = list(self.strides)
    for i in range(self.ndim):
        strides[i] = strides[i] * 2
    return view_parts(self, real_dtype(self.dtype), self.shape, strides, 0)


@imag.shape
def _(self):
    check(is_complex(self.dtype), f"`self` must be complex; got {self.dtype}", "DTypeError")
    strides = list(self.strides)
    for i in range(self.ndim):
        strides[i] = strides[i] * 2
    return view_parts(self, real_dtype(self.dtype), self.shape, strides, 1)


@view_as_real.shape
def _(self):
    check(is_complex(self.dtype), f"`self` must be complex; got {self.dtype}", "DTypeError")
    strides = list(self.strides)
    for i in range(self.ndim):
        strides[i] = strides[i] * 2
    return view_parts(self, real_dtype(self.dtype), self.shape + [2], strides + [1], 0)


@view_as_complex.shape
def _(self):
    check(
        self.dtype == float32 or self.dtype == float64,
        f"`self` must be float32 or float64, the parts of complex64 and complex128; got {self.dtype}",
        "DTypeError",
    )
    check(
        self.ndim > 0 and self.shape[-1] == 2,
        f"`self` must have a last dimension of size 2; got shape {self.shape}",
    )
    check(
        self.strides[-1] == 1 or numel(self.shape) == 0,
        f"`self` must have adjacent parts; got stride {self.strides[-1]} in the last dimension; call contiguous() first",
    )
    strides = list(self.strides[:-1])
    for i in range(self.ndim - 1):
        check(
            self.shape[i] < 2 or strides[i] % 2 == 0 or numel(self.shape) == 0,
            f"`self` must have even strides but for the last one; got {self.strides}; call contiguous() first",
        )
        strides[i] = strides[i] // 2
    return view_parts(self, complex_dtype(self.dtype), self.shape[:-1], strides, 0)


# ---- made of real numbers ------------------------------------------------------------------------
complex__ = Composite(
    "complex(Tensor real, Tensor imag) -> Tensor",
    doc="""
    ``real + i * imag``.

    Shapes: `real` and `imag` broadcast. Dtypes: both float32, which gives complex64, or both float64, which gives
    complex128. Raises: DTypeError for other dtypes, ShapeError if the shapes do not broadcast.

    >>> import plait_core as pc
    >>> pc.complex(pc.tensor([1.0, 2.0]), pc.tensor([0.5, -1.0])).tolist()
    [(1+0.5j), (2-1j)]
    """,
    dtypes="floating",
)
polar = Composite(
    "polar(Tensor abs, Tensor angle) -> Tensor",
    doc="""
    ``abs * (cos(angle) + i * sin(angle))``.

    Shapes: `abs` and `angle` broadcast. Dtypes: both float32, which gives complex64, or both float64, which gives
    complex128. Raises: DTypeError for other dtypes, ShapeError if the shapes do not broadcast.

    >>> import plait_core as pc
    >>> pc.polar(pc.tensor([2.0]), pc.tensor([0.0])).tolist()
    [(2+0j)]
    """,
    dtypes="floating",
)


@complex__.decompose
def _(real, imag):
    check(
        real.dtype == float32 or real.dtype == float64,
        f"`real` must be float32 or float64; got {real.dtype}",
        "DTypeError",
    )
    require_same("real", real, "imag", imag)
    shape = broadcast("real", real.shape, "imag", imag.shape)
    # `stack` keeps the order of dimensions of inputs in channels_last
    return view_as_complex(
        op.contiguous(op.stack([op.expand(real, shape), op.expand(imag, shape)], -1))
    )


@polar.decompose
def _(abs, angle):
    check(
        abs.dtype == float32 or abs.dtype == float64,
        f"`abs` must be float32 or float64; got {abs.dtype}",
        "DTypeError",
    )
    require_same("abs", abs, "angle", angle)
    return op.complex(op.mul(abs, op.cos(angle)), op.mul(abs, op.sin(angle)))


# ---- pointwise -----------------------------------------------------------------------------------
conj_ = Pointwise(
    "conj(Tensor self) -> Tensor",
    doc="""
    The complex conjugate: the sign of the imaginary part is changed. It is computed at once; plait has no lazy conjugates.

    >>> import plait_core as pc
    >>> pc.conj(pc.tensor([1 + 2j])).tolist()
    [(1-2j)]
    """,
    inplace=False,
    dtypes="any",
    variants="function method",
    zero_preserving=True,
)
angle = Pointwise(
    "angle(Tensor self) -> Tensor",
    doc="""
    The angle in the complex plane, in radians from -pi to pi: ``atan2(imag, real)``. For a real number it is 0, or pi if
    the number is negative; nan for nan.

    >>> import plait_core as pc
    >>> pc.angle(pc.tensor([1 + 0j, 0j])).tolist()
    [0.0, 0.0]
    """,
    promote="float",
    dtypes="any",
    real=True,
    inplace=False,
    variants="function method",
    libm="complex",
    zero_preserving=True,
)


@conj_.vjp("self")
def _(g):
    return op.conj(g)


@angle.vjp("self")
def _(g, self):
    if not is_complex(self.dtype):
        return op.zeros_like(g)
    slope = op.complex(-imag(self), real_(self)) / op.square(op.abs(self))
    return op.where(op.eq(self, 0), 0.0, g * slope)


@conj_.decompose
def _(self):
    if not is_complex(self.dtype):
        return op.clone(self)
    return op.complex(real_(self), -imag(self))


@angle.decompose
def _(self):
    if is_complex(self.dtype):
        return op.atan2(imag(self), real_(self))
    return op.where(op.ne(self, self), self, to_dtype(op.lt(self, 0), self.dtype) * PI)


@real_.vjp("self")
def _(g, self):
    return to_dtype(g, self.dtype)


@imag.vjp("self")
def _(g):
    return op.complex(op.zeros_like(g), g)


@view_as_real.vjp("self")
def _(g):
    return view_as_complex(op.contiguous(g))


@view_as_complex.vjp("self")
def _(g):
    return view_as_real(g)


isreal = predicate(
    "isreal",
    "Whether an element has no imaginary part; True for real dtypes.",
    "[True, True]",
    "any",
)


@isreal.decompose
def _(self):
    if is_complex(self.dtype):
        return op.eq(imag(self), 0)
    return op.ones_like(self, dtype=bool_)
