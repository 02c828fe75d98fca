"""Signs, magnitudes and the step function."""

from plait_ops import calls as op
from plait_ops.spec import Pointwise
from plait_ops.unary import function_of_one, predicate
from plait_ops.words import bool_, is_complex, is_tensor, part, to_dtype

signbit = predicate(
    "signbit",
    "Whether the sign bit is set: True for numbers below 0 and for -0.0.",
    "[True, False]",
    zero_preserving=True,
)


heaviside = Pointwise(
    "heaviside(Tensor self, Tensor values) -> Tensor",
    doc="""
    The step function: 0 where `self` is below 0 or nan, 1 where it is above 0, and `values` where it is 0.

    Args:
        values: The results where `input` is 0.

    >>> import plait_core as pc
    >>> pc.heaviside(pc.tensor([-2.0, 0.0, 3.0]), pc.tensor([0.5])).tolist()
    [0.0, 0.5, 1.0]
    """,
    variants="function method",
)


@heaviside.vjp("self")
def _(g):
    return op.zeros_like(g)


@heaviside.vjp("values")
def _(g, self):
    return op.where(op.eq(self, 0), g, 0.0)


@heaviside.decompose
def _(self, values):
    return op.where(op.eq(self, 0), values, to_dtype(op.gt(self, 0), self.dtype))


abs_ = function_of_one(
    "abs", "The magnitude.", "[1.5, 2.5]", "any", real=True, libm="complex", zero_preserving=True
)
sign = function_of_one(
    "sign",
    "-1, 0 or 1; nan for nan.",
    "[-1.0, 1.0]",
    variants="function method",
    zero_preserving=True,
)


@abs_.vjp("self")
def _(g, self):
    return op.mul(g, sgn(self))


@sign.vjp("self")
def _(g):
    return op.zeros_like(g)


@sign.decompose
def _(self):
    if self.dtype == bool_:
        return op.clone(self)
    up = to_dtype(op.gt(self, 0), self.dtype)
    return op.where(op.ne(self, self), self, up - to_dtype(op.lt(self, 0), self.dtype))


copysign = Pointwise(
    "copysign(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    doc="""
    The magnitude of `self` with the sign of `other`; the sign of -0.0 counts.

    >>> import plait_core as pc
    >>> pc.copysign(pc.tensor([1.0, 2.0]), -1.0).tolist()
    [-1.0, -2.0]
    """,
    promote="float",
    variants="function method",
)


@copysign.vjp("self")
def _(g, self, result):
    # at 0 that of the magnitude is taken: 0
    return op.where(op.eq(self, 0), 0.0, op.where(op.eq(result, self), g, -g))


@copysign.vjp("other")
def _(g):
    return op.zeros_like(g)


@part
def _with_sign(magnitude, other):
    return op.where(op.signbit(other), -magnitude, magnitude)


@copysign.decompose
def _(self, other):
    if not is_tensor(self):
        return _with_sign(op.abs(op.full_like(other, self)), other)
    if not is_tensor(other):
        return _with_sign(op.abs(self), op.full_like(self, other))
    return _with_sign(op.abs(self), other)


sgn = Pointwise(
    "sgn(Tensor self) -> Tensor",
    doc="""
    ``self / abs(self)``, and 0 at 0: the direction of a complex number, the sign of a real one.

    >>> import plait_core as pc
    >>> pc.sgn(pc.tensor([3 + 4j, 0j])).tolist()
    [(0.6000000238418579+0.800000011920929j), 0j]
    """,
    dtypes="any",
    variants="function method",
    libm="complex",
    zero_preserving=True,
)


@sgn.vjp("self")
def _(g, self, result):
    if not is_complex(self.dtype):
        return op.zeros_like(g)
    # a change of the magnitude alone does not change the result
    along = result * op.real(g * op.conj(result))
    return op.where(op.eq(self, 0), 0.0, (g - along) / abs_(self))


@sgn.decompose
def _(self):
    if not is_complex(self.dtype):
        return sign(self)
    size = op.abs(self)
    whole = op.where(op.eq(size, 0), 1.0, size)
    return op.complex(op.real(self) / whole, op.imag(self) / whole)
