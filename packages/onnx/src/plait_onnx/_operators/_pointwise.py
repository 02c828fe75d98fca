"""Operators that compute each element on its own: arithmetic, comparisons, activations."""

from __future__ import annotations

import math
from typing import Any

import plait_core as pc
from plait_onnx._builder import Builder, Value
from plait_onnx._table import lowers


def operand(b: Builder, x: Any, dtype: Any) -> str:
    """Return a tensor or a number in a dtype."""
    return b.cast(x, dtype) if isinstance(x, (Value, str)) else b.number(x, dtype)


def common_dtype(*values: Any) -> Any:
    """Return the dtype to which tensors and numbers promote."""
    examples = [
        pc.empty(value.shape, dtype=value.dtype, device="meta")
        if isinstance(value, Value)
        else value
        if isinstance(value, (bool, int, float))
        else getattr(value, "factor", 1)
        for value in values
    ]
    result: Any = examples[0] if len(examples) == 1 else pc.result_type(examples[0], examples[1])
    return result.dtype if len(examples) == 1 else result


# ---- one operand, of the same name -------------------------------------------------------------

_UNARY = {
    "abs": "Abs",
    "neg": "Neg",
    "negative": "Neg",
    "floor": "Floor",
    "ceil": "Ceil",
    "round": "Round",
    "relu": "Relu",
    "sign": "Sign",
}
_FLOATING = {
    "sigmoid": "Sigmoid",
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "reciprocal": "Reciprocal",
    "erf": "Erf",
    "tanh": "Tanh",
    "sinh": "Sinh",
    "cosh": "Cosh",
    "asinh": "Asinh",
    "acosh": "Acosh",
    "atanh": "Atanh",
    "sin": "Sin",
    "cos": "Cos",
    "tan": "Tan",
    "asin": "Asin",
    "acos": "Acos",
    "atan": "Atan",
    "softsign": "Softsign",
}


def _unary(name: str, kind: str, keeps_integers: bool) -> None:
    @lowers(name)
    def _(b: Builder, self: Value) -> str:
        if keeps_integers and not self.is_floating and kind in ("Floor", "Ceil", "Round"):
            return self.name
        if keeps_integers and self.is_unsigned and kind == "Neg":
            return b.op("Sub", b.number(0, self.dtype), self)
        return b.op(kind, b.cast(self, b.results[0].dtype))


for _name, _kind in _UNARY.items():
    _unary(_name, _kind, True)
for _name, _kind in _FLOATING.items():
    _unary(_name, _kind, False)


def _floating(b: Builder, x: Value) -> str:
    return b.cast(x, b.results[0].dtype)


def _scaled(b: Builder, x: str, factor: float) -> str:
    return b.op("Mul", x, b.number(factor, b.results[0].dtype))


@lowers("positive", "alias", "detach", "conj", "conj_physical", "dense")
def positive(b: Builder, self: Value) -> str:
    return self.name


@lowers("clone", "contiguous")
def clone(b: Builder, self: Value) -> str:
    return self.name


@lowers("cast")
def cast(b: Builder, self: Value) -> str:
    return b.cast(self, b.results[0].dtype)


@lowers("erfc")
def erfc(b: Builder, self: Value) -> str:
    x = _floating(b, self)
    return b.op("Sub", b.number(1, b.results[0].dtype), b.op("Erf", x))


@lowers("special_ndtr")
def ndtr(b: Builder, self: Value) -> str:
    """As (1 + erf(x / sqrt(2))) / 2, of which small values have the absolute error of `Erf`."""
    error = b.op("Erf", _scaled(b, _floating(b, self), math.sqrt(0.5)))
    return _scaled(b, b.op("Add", error, b.number(1, b.results[0].dtype)), 0.5)


@lowers("expm1")
def expm1(b: Builder, self: Value) -> str:
    """As 2 sinh(x / 2) exp(x / 2), which keeps the digits of small values."""
    half = _scaled(b, _floating(b, self), 0.5)
    return _scaled(b, b.op("Mul", b.op("Sinh", half), b.op("Exp", half)), 2.0)


@lowers("log1p")
def log1p(b: Builder, self: Value) -> str:
    """As 2 atanh(x / (2 + x)), which keeps the digits of small values; log(1 + x) of others."""
    x, dtype = _floating(b, self), b.results[0].dtype
    ratio = b.op("Div", x, b.op("Add", x, b.number(2, dtype)))
    small = b.op("Less", b.op("Abs", x), b.number(0.5, dtype))
    near = _scaled(b, b.op("Atanh", b.op("Where", small, ratio, b.number(0, dtype))), 2.0)
    return b.op("Where", small, near, b.op("Log", b.op("Add", x, b.number(1, dtype))))


@lowers("log2")
def log2(b: Builder, self: Value) -> str:
    return _scaled(b, b.op("Log", _floating(b, self)), 1 / math.log(2))


@lowers("log10")
def log10(b: Builder, self: Value) -> str:
    return _scaled(b, b.op("Log", _floating(b, self)), 1 / math.log(10))


@lowers("rsqrt")
def rsqrt(b: Builder, self: Value) -> str:
    return b.op("Reciprocal", b.op("Sqrt", _floating(b, self)))


@lowers("square")
def square(b: Builder, self: Value) -> str:
    return b.op("Mul", self, self)


@lowers("signbit")
def signbit(b: Builder, self: Value) -> str:
    if not self.is_floating:
        return (
            _all_false(b, self) if self.is_unsigned else b.op("Less", self, b.number(0, self.dtype))
        )
    negative = b.op("Less", self, b.number(0, self.dtype))
    # 1 / -0 is -inf
    zero = b.op("Equal", self, b.number(0, self.dtype))
    below = b.op("Less", b.op("Reciprocal", self), b.number(0, self.dtype))
    return b.op("Or", negative, b.op("And", zero, below))


@lowers("isnan")
def isnan(b: Builder, self: Value) -> str:
    return b.op("IsNaN", self) if self.is_floating else _all_false(b, self)


def _all_false(b: Builder, x: Value) -> str:
    return b.op("Not", b.op("Equal", x, x))


@lowers("isinf")
def isinf(b: Builder, self: Value) -> str:
    return b.op("IsInf", _wide(b, self)) if self.is_floating else _all_false(b, self)


def _wide(b: Builder, x: Value) -> str:
    return b.cast(x, "float32") if x.dtype.name in ("float16", "bfloat16") else x.name


@lowers("isfinite")
def isfinite(b: Builder, self: Value) -> str:
    if not self.is_floating:
        return b.op("Equal", self, self)
    return b.op("Not", b.op("Or", b.op("IsNaN", self), b.op("IsInf", _wide(b, self))))


@lowers("logical_not")
def logical_not(b: Builder, self: Value) -> str:
    return b.op("Not", b.cast(self, "bool"))


@lowers("bitwise_not")
def bitwise_not(b: Builder, self: Value) -> str:
    if self.dtype == pc.bool:
        return b.op("Not", self)
    b.need(18, "bitwise_not of integers")
    return b.op("BitwiseNot", self)


# ---- two operands ------------------------------------------------------------------------------


def _both(b: Builder, x: Any, y: Any, dtype: Any) -> tuple[str, str]:
    return operand(b, x, dtype), operand(b, y, dtype)


def _sum(b: Builder, kind: str, x: Any, y: Any, alpha: Any) -> str:
    dtype = b.results[0].dtype
    if dtype == pc.bool:  # addition of truth values
        return b.op("Or", *_both(b, x, y, dtype))
    left, right = _both(b, x, y, dtype)
    if alpha != 1:
        right = b.op("Mul", right, b.number(alpha, dtype))
    return b.op(kind, left, right)


@lowers("add")
def add(b: Builder, self: Any, other: Any, alpha: Any) -> str:
    return _sum(b, "Add", self, other, alpha)


@lowers("sub", "subtract")
def sub(b: Builder, self: Any, other: Any, alpha: Any) -> str:
    return _sum(b, "Sub", self, other, alpha)


@lowers("rsub")
def rsub(b: Builder, self: Any, other: Any, alpha: Any) -> str:
    return _sum(b, "Sub", other, self, alpha)


@lowers("mul", "multiply")
def mul(b: Builder, self: Any, other: Any) -> str:
    dtype = b.results[0].dtype
    return b.op("And" if dtype == pc.bool else "Mul", *_both(b, self, other, dtype))


@lowers("true_divide")
def true_divide(b: Builder, self: Any, other: Any) -> str:
    return b.op("Div", *_both(b, self, other, b.results[0].dtype))


@lowers("div", "divide")
def div(b: Builder, self: Any, other: Any, rounding_mode: str | None) -> str:
    if rounding_mode is None:
        return true_divide(b, self, other)
    return floor_divide(b, self, other) if rounding_mode == "floor" else div_trunc(b, self, other)


def _is_floating(dtype: Any) -> bool:
    return dtype.name in ("float16", "bfloat16", "float32", "float64")


def _truncated(b: Builder, x: str, dtype: Any) -> str:
    negative = b.op("Less", x, b.number(0, dtype))
    return b.op("Where", negative, b.op("Ceil", x), b.op("Floor", x))


@lowers("trunc", "fix")
def trunc(b: Builder, self: Value) -> str:
    return _truncated(b, self.name, self.dtype) if self.is_floating else self.name


@lowers("div_trunc")
def div_trunc(b: Builder, self: Any, other: Any) -> str:
    dtype = b.results[0].dtype
    quotient = b.op("Div", *_both(b, self, other, dtype))
    return _truncated(b, quotient, dtype) if _is_floating(dtype) else quotient


@lowers("floor_divide")
def floor_divide(b: Builder, self: Any, other: Any) -> str:
    dtype = b.results[0].dtype
    x, y = _both(b, self, other, dtype)
    if _is_floating(dtype):
        return b.op("Floor", b.op("Div", x, y))
    if dtype.name.startswith("uint"):
        return b.op("Div", x, y)
    return b.op("Div", b.op("Sub", x, b.op("Mod", x, y)), y)


@lowers("remainder")
def remainder(b: Builder, self: Any, other: Any) -> str:
    dtype = b.results[0].dtype
    x, y = _both(b, self, other, dtype)
    if not _is_floating(dtype):
        return b.op("Mod", x, y)
    rest, zero = b.op("Mod", x, y, fmod=1), b.number(0, dtype)
    differs = b.op("Xor", b.op("Less", rest, zero), b.op("Less", y, zero))
    moves = b.op("And", differs, b.op("Not", b.op("Equal", rest, zero)))
    return b.op("Where", moves, b.op("Add", rest, y), rest)


@lowers("fmod")
def fmod(b: Builder, self: Any, other: Any) -> str:
    return b.op("Mod", *_both(b, self, other, b.results[0].dtype), fmod=1)


@lowers("pow", "float_power")
def pow_(b: Builder, self: Any, exponent: Any) -> str:
    dtype = b.results[0].dtype
    x = operand(b, self, dtype)
    if exponent in (1, 2) and not isinstance(exponent, Value):
        return b.op("Mul", x, x) if exponent == 2 else x
    if exponent == 0.5 and not isinstance(exponent, Value):
        return b.op("Sqrt", x)
    return b.op("Pow", x, operand(b, exponent, dtype))


@lowers("maximum", "max.other")
def maximum(b: Builder, self: Value, other: Value) -> str:
    dtype = b.results[0].dtype
    return b.op("Or" if dtype == pc.bool else "Max", *_both(b, self, other, dtype))


@lowers("minimum", "min.other")
def minimum(b: Builder, self: Value, other: Value) -> str:
    dtype = b.results[0].dtype
    return b.op("And" if dtype == pc.bool else "Min", *_both(b, self, other, dtype))


@lowers("atan2", "arctan2")
def atan2(b: Builder, self: Value, other: Value) -> str:
    dtype = b.results[0].dtype
    y, x = _both(b, self, other, dtype)
    zero, pi = b.number(0, dtype), b.number(math.pi, dtype)
    quotient = b.op("Atan", b.op("Div", y, x))
    left = b.op("Less", x, zero)
    turn = b.op("Where", b.op("Less", y, zero), b.op("Neg", pi), pi)
    result = b.op("Where", left, b.op("Add", quotient, turn), quotient)
    both = b.op("And", b.op("Equal", x, zero), b.op("Equal", y, zero))
    return b.op("Where", both, zero, result)


# ---- comparisons -------------------------------------------------------------------------------

_COMPARISONS = {
    "eq": "Equal",
    "lt": "Less",
    "le": "LessOrEqual",
    "gt": "Greater",
    "ge": "GreaterOrEqual",
}


def _compared(b: Builder, kind: str, x: Any, y: Any) -> str:
    dtype = common_dtype(x, y)
    if dtype == pc.bool and kind != "Equal":
        dtype = pc.int32
    return b.op(kind, *_both(b, x, y, dtype))


def _comparison(name: str, kind: str) -> None:
    @lowers(name)
    def _(b: Builder, self: Any, other: Any) -> str:
        return _compared(b, kind, self, other)


for _name, _kind in _COMPARISONS.items():
    _comparison(_name, _kind)


@lowers("ne")
def ne(b: Builder, self: Any, other: Any) -> str:
    return b.op("Not", _compared(b, "Equal", self, other))


def _logical(name: str, kind: str) -> None:
    @lowers(f"logical_{name}")
    def _(b: Builder, self: Value, other: Value) -> str:
        return b.op(kind, b.cast(self, "bool"), b.cast(other, "bool"))

    @lowers(f"bitwise_{name}")
    def _(b: Builder, self: Any, other: Any) -> str:
        dtype = b.results[0].dtype
        if dtype == pc.bool:
            return b.op(kind, *_both(b, self, other, dtype))
        b.need(18, f"bitwise_{name} of integers")
        return b.op(f"Bitwise{kind}", *_both(b, self, other, dtype))


for _name, _kind in {"and": "And", "or": "Or", "xor": "Xor"}.items():
    _logical(_name, _kind)


def _shifted(b: Builder, x: Any, y: Any, direction: str) -> str:
    """Shift integers; shifts by the bits of the dtype or more, or by less than 0, leave nothing."""
    dtype = b.results[0].dtype
    bits = int(dtype.name.lstrip("uint"))
    if dtype.name.startswith("uint"):
        number, count = _both(b, x, y, dtype)
        is_near = b.op("Less", count, b.number(bits, dtype))
        moved = b.op("BitShift", number, count, direction=direction)
        return b.op("Where", is_near, moved, b.number(0, dtype))
    number, count, zero = operand(b, x, "int64"), operand(b, y, "int64"), b.constant(0)
    is_near = b.op("Less", count, b.constant(bits))
    is_near = b.op("And", is_near, b.op("GreaterOrEqual", count, zero))
    power = b.op("Pow", b.constant(2), b.op("Where", is_near, count, zero))
    if direction == "LEFT":
        return b.cast(b.op("Where", is_near, b.op("Mul", number, power), zero), dtype)
    moved = b.op("Div", b.op("Sub", number, b.op("Mod", number, power)), power)
    sign = b.op("Where", b.op("Less", number, zero), b.constant(-1), zero)
    return b.cast(b.op("Where", is_near, moved, sign), dtype)


@lowers("bitwise_left_shift")
def bitwise_left_shift(b: Builder, self: Any, other: Any) -> str:
    return _shifted(b, self, other, "LEFT")


@lowers("bitwise_right_shift")
def bitwise_right_shift(b: Builder, self: Any, other: Any) -> str:
    return _shifted(b, self, other, "RIGHT")


# ---- choices -----------------------------------------------------------------------------------


@lowers("where")
def where(b: Builder, condition: Value, self: Any, other: Any) -> str:
    return b.op("Where", b.cast(condition, "bool"), *_both(b, self, other, b.results[0].dtype))


@lowers("masked_fill")
def masked_fill(b: Builder, self: Value, mask: Value, value: Any) -> str:
    return b.op("Where", mask, operand(b, value, self.dtype), self)


@lowers("clamp", "clip", "clamp_between")
def clamp(b: Builder, self: Value, min: Any, max: Any) -> str:
    dtype = b.results[0].dtype
    x = b.cast(self, dtype)
    if min is not None:
        x = b.op("Max", x, operand(b, min, dtype))
    return x if max is None else b.op("Min", x, operand(b, max, dtype))


@lowers("clamp_min")
def clamp_min(b: Builder, self: Value, min: Any) -> str:
    return clamp(b, self, min, None)


@lowers("clamp_max")
def clamp_max(b: Builder, self: Value, max: Any) -> str:
    return clamp(b, self, None, max)


@lowers("hardtanh")
def hardtanh(b: Builder, self: Value, min_val: float, max_val: float) -> str:
    return b.op("Clip", self, b.number(min_val, self.dtype), b.number(max_val, self.dtype))


@lowers("relu6")
def relu6(b: Builder, self: Value) -> str:
    return hardtanh(b, self, 0, 6)


# ---- activations -------------------------------------------------------------------------------


@lowers("leaky_relu")
def leaky_relu(b: Builder, self: Value, negative_slope: float) -> str:
    return b.op("LeakyRelu", self, alpha=float(negative_slope))


@lowers("prelu_elements")
def prelu_elements(b: Builder, self: Value, weight: Value) -> str:
    return b.op("PRelu", self, weight)


@lowers("elu")
def elu(b: Builder, self: Value, alpha: float) -> str:
    return b.op("Elu", self, alpha=float(alpha))


@lowers("celu")
def celu(b: Builder, self: Value, alpha: float) -> str:
    return b.op("Celu", self, alpha=float(alpha))


@lowers("selu")
def selu(b: Builder, self: Value) -> str:
    return b.op("Selu", self)


@lowers("silu")
def silu(b: Builder, self: Value) -> str:
    return b.op("Mul", self, b.op("Sigmoid", self))


@lowers("mish")
def mish(b: Builder, self: Value) -> str:
    return b.op("Mul", self, b.op("Tanh", b.op("Softplus", self)))


@lowers("softplus")
def softplus(b: Builder, self: Value, beta: float, threshold: float) -> str:
    if beta == 1:
        return b.op("Softplus", self)
    scaled = b.op("Mul", self, b.number(beta, self.dtype))
    result = b.op("Div", b.op("Softplus", scaled), b.number(beta, self.dtype))
    return b.op("Where", b.op("Greater", scaled, b.number(threshold, self.dtype)), self, result)


@lowers("log_sigmoid")
def log_sigmoid(b: Builder, self: Value) -> str:
    return b.op("Neg", b.op("Softplus", b.op("Neg", self)))


@lowers("hardsigmoid")
def hardsigmoid(b: Builder, self: Value) -> str:
    return b.op("HardSigmoid", self, alpha=1 / 6, beta=0.5)


@lowers("hardswish")
def hardswish(b: Builder, self: Value) -> str:
    return b.op("HardSwish", self)


def gelu_nodes(b: Builder, x: Value, approximate: str) -> str:
    """Return nodes of the activation: one node from opset 20 on."""
    if b.opset >= 20:
        return b.op("Gelu", x, approximate=approximate)
    dtype = x.dtype
    if approximate == "tanh":
        cube = b.op("Mul", b.op("Mul", x, x), x)
        inner = b.op("Add", x, b.op("Mul", cube, b.number(0.044715, dtype)))
        value = b.op("Tanh", b.op("Mul", inner, b.number(math.sqrt(2 / math.pi), dtype)))
    else:
        value = b.op("Erf", b.op("Mul", x, b.number(math.sqrt(0.5), dtype)))
    half = b.op("Mul", x, b.number(0.5, dtype))
    return b.op("Mul", half, b.op("Add", value, b.number(1, dtype)))


@lowers("gelu_erf")
def gelu_erf(b: Builder, self: Value) -> str:
    return gelu_nodes(b, self, "none")


@lowers("gelu_tanh")
def gelu_tanh(b: Builder, self: Value) -> str:
    return gelu_nodes(b, self, "tanh")


@lowers("gelu")
def gelu(b: Builder, self: Value, approximate: str) -> str:
    return gelu_nodes(b, self, approximate)


@lowers("threshold_elements", "threshold")
def threshold_elements(b: Builder, self: Value, threshold: Any, value: Any) -> str:
    above = b.op("Greater", self, b.number(threshold, self.dtype))
    return b.op("Where", above, self, b.number(value, self.dtype))


def activated(
    b: Builder,
    x: str,
    dtype: Any,
    activation: str,
    min_val: float,
    max_val: float,
    negative_slope: float,
) -> str:
    """Return the activation that is a part of another operator, such as a convolution's."""
    if activation == "hardtanh":
        return b.op("Clip", x, b.number(min_val, dtype), b.number(max_val, dtype))
    if activation == "leaky_relu":
        return b.op("LeakyRelu", x, alpha=float(negative_slope))
    if activation == "silu":
        return b.op("Mul", x, b.op("Sigmoid", x))
    return b.op({"relu": "Relu", "hardswish": "HardSwish"}[activation], x)


@lowers("bce_elements")
def bce_elements(b: Builder, input: Value, target: Value) -> str:
    """Cross entropy of two classes, whose logarithms are at least -100."""
    one, least = b.number(1.0, input.dtype), b.number(-100.0, input.dtype)
    right = b.op("Max", b.op("Log", input), least)
    wrong = b.op("Max", b.op("Log", b.op("Sub", one, input)), least)
    gain = b.op("Mul", target, right)
    return b.op("Neg", b.op("Add", gain, b.op("Mul", b.op("Sub", one, target), wrong)))


@lowers("addcmul", "addcdiv")
def addcmul(b: Builder, self: Value, tensor1: Value, tensor2: Value, value: Any) -> str:
    dtype = b.results[0].dtype
    kind = "Mul" if b.call == "addcmul" else "Div"
    change = b.op(kind, *_both(b, tensor1, tensor2, dtype))
    if value != 1:
        change = b.op("Mul", change, b.number(value, dtype))
    return b.op("Add", b.cast(self, dtype), change)


@lowers("lerp")
def lerp(b: Builder, self: Value, end: Value, weight: Any) -> str:
    dtype = b.results[0].dtype
    x, y = _both(b, self, end, dtype)
    return b.op("Add", x, b.op("Mul", operand(b, weight, dtype), b.op("Sub", y, x)))
