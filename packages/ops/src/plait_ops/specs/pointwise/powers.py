"""Powers and roots."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Pointwise
from plait_ops.unary import float_function
from plait_ops.words import (
    check,
    complex128,
    conjugate,
    dtype_of,
    float64,
    is_complex,
    is_tensor,
    part,
    to_dtype,
)

sqrt = float_function(
    "sqrt",
    "The square root; nan below 0.",
    9.0,
    3.0,
    (0.2, 3.0),
    variants="function function_ method",
    libm="complex",
    zero_preserving=True,
)
rsqrt = float_function(
    "rsqrt",
    "``1 / sqrt(self)``; inf at 0, nan below.",
    4.0,
    0.5,
    (0.2, 3.0),
    variants="function function_ method",
    libm="complex",
)
reciprocal = float_function(
    "reciprocal",
    "``1 / self``; inf at 0.",
    4.0,
    0.25,
    (0.2, 3.0),
    variants="function function_ method",
)
square = Pointwise(
    "square(Tensor self) -> Tensor",
    doc="""
    ``self * self``; bools count as integers.

    >>> import plait_core as pc
    >>> pc.square(pc.tensor([3, -2])).tolist()
    [9, 4]
    """,
    promote="number",
    dtypes="any",
    variants="function function_ method",
    zero_preserving=True,
)


@sqrt.vjp("self")
def _(g, result):
    return g / conjugate(result * 2.0)


@rsqrt.vjp("self")
def _(g, result):
    return g * conjugate(result * result * result) * -0.5


@reciprocal.vjp("self")
def _(g, result):
    return -g * conjugate(result * result)


@square.vjp("self")
def _(g, self):
    return g * conjugate(self * 2.0)


@rsqrt.decompose
def _(self):
    return 1.0 / sqrt(self)


@reciprocal.decompose
def _(self):
    return 1.0 / self


@square.decompose
def _(self):
    return self * self


pow_ = Pointwise(
    "pow(Tensor|Scalar self, Tensor|Scalar exponent|other) -> Tensor",
    doc="""
    ``self ** exponent``. A negative power of an integer is 0, unless the integer is 1 or -1.

    >>> import plait_core as pc
    >>> pc.pow(pc.tensor([1, 2, 3]), 2).tolist()
    [1, 4, 9]
    """,
    dtypes="arithmetic",
    domain=(0.5, 2.5),
    exact=True,
    variants="function method",
    libm="wide",
)


@pow_.vjp("self")
def _(g, self, exponent):
    # avoids a factor 0 ** -1 for the exponent 0
    if is_tensor(exponent):
        slope = conjugate(exponent * pow_(self, op.sub(exponent, 1)))
        return op.where(op.eq(exponent, 0), 0.0, g * slope)
    if is_complex(dtype_of(exponent)):
        less = op.sub(op.full_like(g, exponent), 1)
        return g * conjugate(exponent * pow_(self, less))
    if float(exponent) == 0.0:
        return op.zeros_like(g)
    if float(exponent) == 2.0:
        return g * conjugate(exponent * self)
    return g * conjugate(exponent * pow_(self, float(exponent) - 1.0))


@pow_.vjp("exponent")
def _(g, self, exponent, result):
    # powers of 0 with an exponent that is not negative are constant: log(0) must be avoided
    if is_complex(exponent.dtype):
        falls = op.logical_or(op.ne(op.imag(exponent), 0), op.lt(op.real(exponent), 0))
    else:
        falls = op.lt(exponent, 0)
    base = to_dtype(self, g.dtype) if is_tensor(self) else op.full_like(g, self)
    base = op.where(op.logical_or(op.ne(base, 0), falls), base, 1.0)
    return g * conjugate(result * op.log(base))


@part
def _widest(dtype):
    return complex128 if is_complex(dtype) else float64


float_power = Composite(
    "float_power(Tensor|Scalar self, Tensor|Scalar exponent) -> Tensor",
    doc="""
    ``self ** exponent``, computed in float64.

    Shapes: both broadcast. Dtypes: float64.

    >>> import plait_core as pc
    >>> pc.float_power(pc.tensor([2.0, 3.0], dtype=pc.float64), 2).tolist()
    [4.0, 9.0]
    """,
    inplace=True,
    variants="function method",
)


@float_power.decompose
def _(self, exponent):
    check(
        is_tensor(self) or is_tensor(exponent),
        "`self` or `exponent` must be a Tensor; got numbers only",
        "TypeError",
    )
    if not is_tensor(self):
        return op.pow(self, to_dtype(exponent, _widest(exponent.dtype)))
    base = to_dtype(self, _widest(self.dtype))
    if not is_tensor(exponent):
        return op.pow(base, exponent)
    return op.pow(base, to_dtype(exponent, _widest(exponent.dtype)))
