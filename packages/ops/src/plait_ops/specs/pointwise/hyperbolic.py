"""Hyperbolic functions and their inverses."""

from plait_ops import calls as op
from plait_ops.spec import Pointwise
from plait_ops.unary import float_function
from plait_ops.words import conjugate, is_complex

asinh = float_function(
    "asinh",
    "The number whose hyperbolic sine is `self`.",
    0.0,
    0.0,
    variants="function function_ method",
    widens=True,
    libm="wide",
    zero_preserving=True,
)
acosh = float_function(
    "acosh",
    "The number, 0 or larger, whose hyperbolic cosine is `self`; nan below 1.",
    1.0,
    0.0,
    (1.2, 9.0),
    variants="function function_ method",
    widens=True,
    libm="wide",
)
atanh = float_function(
    "atanh",
    "The number whose hyperbolic tangent is `self`; infinite at -1 and 1, nan outside.",
    0.0,
    0.0,
    (-0.9, 0.9),
    variants="function function_ method",
    widens=True,
    libm="wide",
    zero_preserving=True,
)


@asinh.vjp("self")
def _(g, self):
    return g * conjugate(op.rsqrt(op.square(self) + 1.0))


@acosh.vjp("self")
def _(g, self):
    return g * conjugate(op.rsqrt(self - 1.0) * op.rsqrt(self + 1.0))


@atanh.vjp("self")
def _(g, self):
    return g / conjugate(1.0 - op.square(self))


tanh = float_function(
    "tanh",
    "The hyperbolic tangent.",
    0.0,
    0.0,
    variants="function function_ method",
    libm="wide",
    zero_preserving=True,
)


tanh_backward = Pointwise(
    "tanh_backward(Tensor grad, Tensor result) -> Tensor",
    doc="``grad * (1 - result ** 2)``: the derivative of `tanh`.",
    dtypes="floating",
    internal=True,
)


@tanh.vjp("self")
def _(g, result):
    if is_complex(g.dtype):
        return g * op.conj(1.0 - result * result)
    return tanh_backward(g, result)


@tanh_backward.vjp("grad")
def _(g, result):
    return tanh_backward(g, result)


@tanh_backward.vjp("result")
def _(g, grad, result):
    return op.mul(g * grad * -2.0, result)


@tanh_backward.decompose
def _(grad, result):
    return grad * (1.0 - result * result)


sinh = float_function(
    "sinh",
    "The hyperbolic sine.",
    0.0,
    0.0,
    variants="function function_ method",
    libm="wide",
    zero_preserving=True,
)
cosh = float_function(
    "cosh", "The hyperbolic cosine.", 0.0, 1.0, variants="function function_ method", libm="wide"
)


@sinh.vjp("self")
def _(g, self):
    return g * conjugate(cosh(self))


@cosh.vjp("self")
def _(g, self):
    return g * conjugate(sinh(self))
