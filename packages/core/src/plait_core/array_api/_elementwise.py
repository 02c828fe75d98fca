"""Elementwise functions of the standard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from plait_core._core import Tensor, is_tensor
from plait_core.array_api._data_types import promote, result_type
from plait_core.array_api._operators import call

Function = TypeVar("Function", bound=Callable[..., Tensor])
Unary = Callable[[Tensor], Tensor]
Binary = Callable[[Any, Any], Tensor]

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]


def _named(function: Function, name: str, doc: str) -> Function:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _unary(name: str, doc: str, operator: str = "") -> Unary:
    def function(x: Tensor, /) -> Tensor:
        return call(operator or name, x)

    return _named(function, name, doc)


def common(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Return two operands in their common dtype: an array of no dimensions counts like any other,
    a Python number takes the dtype of the array.
    """
    if is_tensor(x1) and is_tensor(x2):
        if x1.dtype is not x2.dtype:
            dtype = promote(x1.dtype, x2.dtype)
            return x1.to(dtype), x2.to(dtype)
        return x1, x2
    if is_tensor(x1):
        return x1, call("full", (), x2, dtype=result_type(x1, x2), device=x1.device)
    if is_tensor(x2):
        return call("full", (), x1, dtype=result_type(x1, x2), device=x2.device), x2
    raise TypeError("at least one array is required, got two numbers")


def _binary(name: str, doc: str, operator: str = "") -> Binary:
    def function(x1: Any, x2: Any, /) -> Tensor:
        return call(operator or name, *common(x1, x2))

    return _named(function, name, doc)


abs = _unary("abs", "The magnitudes; of complex numbers real ones.")
acos = _unary("acos", "The inverse cosine, in [0, pi]; NaN outside [-1, 1].")
acosh = _unary("acosh", "The inverse hyperbolic cosine; NaN below 1.")
asin = _unary("asin", "The inverse sine, in [-pi/2, pi/2]; NaN outside [-1, 1].")
asinh = _unary("asinh", "The inverse hyperbolic sine.")
atan = _unary("atan", "The inverse tangent, in [-pi/2, pi/2].")
atanh = _unary("atanh", "The inverse hyperbolic tangent; NaN outside [-1, 1].")
bitwise_invert = _unary(
    "bitwise_invert", "Every bit of integers inverted; of bools, the opposite.", "bitwise_not"
)
cos = _unary("cos", "The cosine of angles in radians.")
cosh = _unary("cosh", "The hyperbolic cosine.")
exp = _unary("exp", "The exponential ``e**x``.")
expm1 = _unary("expm1", "``e**x - 1``, exact for small `x`.")
isfinite = _unary("isfinite", "Whether elements are neither infinite nor NaN.")
isinf = _unary("isinf", "Whether elements are infinite.")
isnan = _unary("isnan", "Whether elements are NaN.")
log = _unary("log", "The natural logarithm; NaN below 0.")
log10 = _unary("log10", "The logarithm to base 10; NaN below 0.")
log1p = _unary("log1p", "``log(1 + x)``, exact for small `x`.")
log2 = _unary("log2", "The logarithm to base 2; NaN below 0.")
logical_not = _unary("logical_not", "Whether elements are False.")
negative = _unary("negative", "The elements with the opposite sign.", "neg")
reciprocal = _unary("reciprocal", "``1 / x``.")
signbit = _unary("signbit", "Whether the sign bit is set: that of -0.0 is.")
sin = _unary("sin", "The sine of angles in radians.")
sinh = _unary("sinh", "The hyperbolic sine.")
sqrt = _unary("sqrt", "The square root; NaN below 0.")
square = _unary("square", "``x * x``.")
tan = _unary("tan", "The tangent of angles in radians.")
tanh = _unary("tanh", "The hyperbolic tangent.")

add = _binary("add", "The sum ``x1 + x2``.")
atan2 = _binary("atan2", "The angle of the point (`x2`, `x1`), in [-pi, pi].")
bitwise_and = _binary("bitwise_and", "``x1 & x2`` of integers or bools.")
bitwise_left_shift = _binary("bitwise_left_shift", "``x1 << x2`` of integers.")
bitwise_or = _binary("bitwise_or", "``x1 | x2`` of integers or bools.")
bitwise_right_shift = _binary("bitwise_right_shift", "``x1 >> x2`` of integers; the sign stays.")
bitwise_xor = _binary("bitwise_xor", "``x1 ^ x2`` of integers or bools.")
copysign = _binary("copysign", "The magnitude of `x1` with the sign of `x2`.")
divide = _binary("divide", "The quotient ``x1 / x2``, never rounded to integers.", "div")
equal = _binary("equal", "Whether ``x1 == x2``, element by element.", "eq")
greater = _binary("greater", "Whether ``x1 > x2``, element by element.", "gt")
greater_equal = _binary("greater_equal", "Whether ``x1 >= x2``, element by element.", "ge")
hypot = _binary("hypot", "``sqrt(x1**2 + x2**2)`` without overflow in between.")
less = _binary("less", "Whether ``x1 < x2``, element by element.", "lt")
less_equal = _binary("less_equal", "Whether ``x1 <= x2``, element by element.", "le")
logaddexp = _binary("logaddexp", "``log(exp(x1) + exp(x2))`` without overflow in between.")
logical_and = _binary("logical_and", "Whether both are True.")
logical_or = _binary("logical_or", "Whether at least one is True.")
logical_xor = _binary("logical_xor", "Whether exactly one is True.")
maximum = _binary("maximum", "The larger of both; NaN if one is NaN.")
minimum = _binary("minimum", "The smaller of both; NaN if one is NaN.")
multiply = _binary("multiply", "The product ``x1 * x2``.", "mul")
nextafter = _binary(
    "nextafter", "The next number of the dtype after `x1` in the direction of `x2`."
)
not_equal = _binary("not_equal", "Whether ``x1 != x2``, element by element.", "ne")
pow = _binary("pow", "``x1 ** x2``.")
remainder = _binary("remainder", "What is left of ``x1 / x2``, with the sign of `x2`.")
subtract = _binary("subtract", "The difference ``x1 - x2``.", "sub")


def _rounding(name: str, direction: str) -> Unary:
    """Return a rounding function that copies integers and rounds the parts of complex numbers."""

    def function(x: Tensor, /) -> Tensor:
        if x.dtype.is_complex:
            return call("complex", function(real(x)), function(imag(x)))
        return call(name, x) if x.dtype.is_floating_point else x.clone()

    return _named(function, name, f"The integers that elements are rounded to: {direction}.")


ceil = _rounding("ceil", "up")
floor = _rounding("floor", "down")
round = _rounding("round", "to the nearest one, halves to the even one")
trunc = _rounding("trunc", "towards 0")


def floor_divide(x1: Any, x2: Any, /) -> Tensor:
    """Return the quotient rounded down; infinite operands give what `divide` gives."""
    a, b = common(x1, x2)
    result = call("floor_divide", a, b)
    if not result.dtype.is_floating_point:
        return result
    infinite = call("logical_or", call("isinf", a), call("isinf", b))
    return call("where", infinite, a / b, result)


def conj(x: Tensor, /) -> Tensor:
    """Return the complex conjugate; real numbers are their own."""
    return call("conj", x) if x.dtype.is_complex else x.clone()


def real(x: Tensor, /) -> Tensor:
    """Return the real part."""
    return call("real", x) if x.dtype.is_complex else x.clone()


def imag(x: Tensor, /) -> Tensor:
    """Return the imaginary part; 0 for real numbers."""
    return call("imag", x) if x.dtype.is_complex else call("zeros_like", x)


def positive(x: Tensor, /) -> Tensor:
    """Return a copy of the array."""
    return x.clone()


def sign(x: Tensor, /) -> Tensor:
    """Return -1, 0 or 1; of complex numbers ``x / |x|``."""
    return call("sgn" if x.dtype.is_complex else "sign", x)


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Return the elements, none below `min` and none above `max`: numbers, arrays or None."""
    result = x
    for name, bound in (("maximum", min), ("minimum", max)):
        if bound is not None:
            limit = bound if is_tensor(bound) else call("full", (), bound, dtype=x.dtype)
            result = call(name, *common(result, limit))
    return result.to(x.dtype) if result is not x else x.clone()
