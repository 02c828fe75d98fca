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


def _unary(name: str, operator: str = "") -> Unary:
    def function(x: Tensor, /) -> Tensor:
        return call(operator or name, x)

    return _named(function, name, f"The operator `{operator or name}`, as the standard names it.")


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


def _binary(name: str, operator: str = "") -> Binary:
    def function(x1: Any, x2: Any, /) -> Tensor:
        return call(operator or name, *common(x1, x2))

    return _named(function, name, f"The operator `{operator or name}`, as the standard names it.")


abs = _unary("abs")
acos = _unary("acos")
acosh = _unary("acosh")
asin = _unary("asin")
asinh = _unary("asinh")
atan = _unary("atan")
atanh = _unary("atanh")
bitwise_invert = _unary("bitwise_invert", "bitwise_not")
cos = _unary("cos")
cosh = _unary("cosh")
exp = _unary("exp")
expm1 = _unary("expm1")
isfinite = _unary("isfinite")
isinf = _unary("isinf")
isnan = _unary("isnan")
log = _unary("log")
log10 = _unary("log10")
log1p = _unary("log1p")
log2 = _unary("log2")
logical_not = _unary("logical_not")
negative = _unary("negative", "neg")
reciprocal = _unary("reciprocal")
signbit = _unary("signbit")
sin = _unary("sin")
sinh = _unary("sinh")
sqrt = _unary("sqrt")
square = _unary("square")
tan = _unary("tan")
tanh = _unary("tanh")

add = _binary("add")
atan2 = _binary("atan2")
bitwise_and = _binary("bitwise_and")
bitwise_left_shift = _binary("bitwise_left_shift")
bitwise_or = _binary("bitwise_or")
bitwise_right_shift = _binary("bitwise_right_shift")
bitwise_xor = _binary("bitwise_xor")
copysign = _binary("copysign")
divide = _binary("divide", "div")
equal = _binary("equal", "eq")
greater = _binary("greater", "gt")
greater_equal = _binary("greater_equal", "ge")
hypot = _binary("hypot")
less = _binary("less", "lt")
less_equal = _binary("less_equal", "le")
logaddexp = _binary("logaddexp")
logical_and = _binary("logical_and")
logical_or = _binary("logical_or")
logical_xor = _binary("logical_xor")
maximum = _binary("maximum")
minimum = _binary("minimum")
multiply = _binary("multiply", "mul")
nextafter = _binary("nextafter")
not_equal = _binary("not_equal", "ne")
pow = _binary("pow")
remainder = _binary("remainder")
subtract = _binary("subtract", "sub")


def _rounding(name: str) -> Unary:
    """A function that leaves integers alone, and rounds the parts of complex numbers."""

    def function(x: Tensor, /) -> Tensor:
        if x.dtype.is_complex:
            return call("complex", function(real(x)), function(imag(x)))
        return call(name, x) if x.dtype.is_floating_point else x.clone()

    return _named(function, name, f"The operator `{name}`; integers stay what they are.")


ceil = _rounding("ceil")
floor = _rounding("floor")
round = _rounding("round")
trunc = _rounding("trunc")


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
