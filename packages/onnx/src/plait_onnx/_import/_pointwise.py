"""Operators that act on each element: arithmetic, comparisons, activations, casts."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import plait_core as pc
import plait_nn.functional as F
from plait_core import Tensor
from plait_onnx._dtypes import packed_bits
from plait_onnx._import._registry import Node, operator

Function = Callable[..., Any]

UNARY: dict[str, Function] = {
    "Abs": pc.abs, "Acos": pc.acos, "Acosh": pc.acosh, "Asin": pc.asin, "Asinh": pc.asinh,
    "Atan": pc.atan, "Atanh": pc.atanh, "BitwiseNot": pc.bitwise_not, "Ceil": pc.ceil,
    "Cos": pc.cos, "Cosh": pc.cosh, "Erf": pc.erf, "Exp": pc.exp, "Floor": pc.floor,
    "HardSwish": lambda x: x * (x * (1 / 6) + 0.5).clamp(0, 1), "IsNaN": pc.isnan, "Log": pc.log,
    "Mish": F.mish, "Neg": pc.neg, "Not": pc.logical_not, "Reciprocal": pc.reciprocal,
    "Relu": F.relu, "Round": pc.round, "Sigmoid": pc.sigmoid, "Sign": pc.sign, "Sin": pc.sin,
    "Sinh": pc.sinh, "Softplus": F.softplus, "Softsign": F.softsign, "Sqrt": pc.sqrt,
    "Tan": pc.tan, "Tanh": pc.tanh,
}  # fmt: skip
BINARY: dict[str, Function] = {
    "Add": pc.add, "BitwiseAnd": pc.bitwise_and, "BitwiseOr": pc.bitwise_or,
    "BitwiseXor": pc.bitwise_xor, "And": pc.logical_and, "Equal": pc.eq, "Greater": pc.gt,
    "GreaterOrEqual": pc.ge, "Less": pc.lt, "LessOrEqual": pc.le, "Mul": pc.mul,
    "Or": pc.logical_or, "Sub": pc.sub, "Xor": pc.logical_xor,
}  # fmt: skip


def aligned(b: Tensor, a: Tensor, axis: int | None) -> Tensor:
    """Return `b` with dimensions at its end, so that its first one is at `axis` of `a`."""
    if axis is None:
        return b
    axis = axis % a.ndim if a.ndim else 0
    return b.reshape(*b.shape, *[1] * (a.ndim - axis - b.ndim))


def _divide(a: Tensor, b: Tensor) -> Tensor:
    if a.is_floating_point():
        return a / b
    return pc.div(a, b, rounding_mode="trunc")


def _identity(_: Node) -> Function:
    return lambda x, *more: x


for _name, _function in UNARY.items():
    operator(_name)(lambda node, function=_function: function)
for _name, _function in {**BINARY, "Div": _divide}.items():
    operator(_name, 7)(lambda node, function=_function: function)


def _with_axis(function: Function) -> Callable[[Node], Function]:
    """Return the entry of a version before 7, whose second input is aligned by an attribute."""

    def build(node: Node) -> Function:
        if not node.flag("broadcast"):
            return function
        axis = node.integer("axis", None)
        return lambda a, b: function(a, aligned(b, a, axis))

    return build


for _name in ("Add", "Sub", "Mul", "Div", "And", "Or", "Xor", "Equal", "Greater", "Less"):
    operator(_name)(_with_axis(_divide if _name == "Div" else BINARY[_name]))


@operator("Pow")
def _pow_1(node: Node) -> Function:
    return _with_axis(pc.pow)(node)


@operator("Pow", 7)
def _pow(_: Node) -> Function:
    def power(x: Tensor, y: Tensor) -> Tensor:
        if x.dtype == y.dtype:
            return pc.pow(x, y)
        if not x.is_floating_point() and y.is_floating_point():
            return pc.pow(x.to(pc.float64), y).to(x.dtype)
        return pc.pow(x, y.to(x.dtype))

    return power


@operator("Mod")
def _mod(node: Node) -> Function:
    return pc.fmod if node.flag("fmod") else pc.remainder


@operator("BitShift")
def _shift(node: Node) -> Function:
    direction = node.text("direction", choices=("LEFT", "RIGHT"))
    function: Function = pc.bitwise_left_shift if direction == "LEFT" else pc.bitwise_right_shift
    return function


def _of_several(function: Function) -> Callable[[Node], Function]:
    return lambda node: lambda *values: functools.reduce(function, values)


operator("Sum")(_of_several(pc.add))
operator("Max")(_of_several(pc.maximum))
operator("Min")(_of_several(pc.minimum))


@operator("Mean")
def _mean(_: Node) -> Function:
    return lambda *values: functools.reduce(pc.add, values) / len(values)


@operator("Where")
def _where(_: Node) -> Function:
    return pc.where


# ---- activations ---------------------------------------------------------------------------------


@operator("Celu")
def _celu(node: Node) -> Function:
    alpha = node.number("alpha", 1.0)
    return lambda x: F.celu(x, alpha)


@operator("Elu")
def _elu(node: Node) -> Function:
    alpha = node.number("alpha", 1.0)
    return lambda x: F.elu(x, alpha)


@operator("Selu")
def _selu(node: Node) -> Function:
    old = node.version < 6
    alpha = node.number("alpha", 1.6732 if old else 1.67326319217681884765625)
    gamma = node.number("gamma", 1.0507 if old else 1.05070102214813232421875)
    return lambda x: pc.where(x > 0, x, alpha * pc.expm1(x)) * gamma


@operator("LeakyRelu")
def _leaky_relu(node: Node) -> Function:
    alpha = node.number("alpha", 0.01)
    return lambda x: F.leaky_relu(x, alpha)


@operator("ThresholdedRelu")
def _thresholded_relu(node: Node) -> Function:
    alpha = node.number("alpha", 1.0)
    return lambda x: F.threshold(x, alpha, 0.0)


@operator("HardSigmoid")
def _hard_sigmoid(node: Node) -> Function:
    alpha, beta = node.number("alpha", 0.2), node.number("beta", 0.5)
    return lambda x: (x * alpha + beta).clamp(0, 1)


@operator("Swish")
def _swish(node: Node) -> Function:
    alpha = node.number("alpha", 1.0)
    return F.silu if alpha == 1 else lambda x: x * pc.sigmoid(x * alpha)


@operator("Gelu")
def _gelu(node: Node) -> Function:
    approximate = node.text("approximate", "none", ("none", "tanh"))
    return lambda x: F.gelu(x, approximate=approximate)


@operator("PRelu")
def _prelu(node: Node) -> Function:
    def prelu(x: Tensor, slope: Tensor) -> Tensor:
        if node.version < 7 and slope.ndim == 1 and x.ndim > 2 and slope.shape[0] == x.shape[1]:
            slope = slope.reshape(-1, *[1] * (x.ndim - 2))
        return pc.where(x >= 0, x, x * slope)

    return prelu


@operator("Shrink")
def _shrink(node: Node) -> Function:
    bias, edge = node.number("bias", 0.0), node.number("lambd", 0.5)

    def shrink(x: Tensor) -> Tensor:
        zero = pc.zeros_like(x)
        result = pc.where(x < -edge, x + bias, pc.where(x > edge, x - bias, zero))
        return result.to(x.dtype)

    return shrink


@operator("Clip")
def _clip_1(node: Node) -> Function:
    least, most = node.number("min", None), node.number("max", None)
    return lambda x: x if least is None and most is None else pc.clamp(x, least, most)


@operator("Clip", 11, constants=(1, 2))
def _clip(_: Node) -> Function:
    def clip(x: Tensor, least: Any = None, most: Any = None) -> Tensor:
        # the upper limit counts where it is below the lower one
        if isinstance(least, Tensor) or isinstance(most, Tensor):
            for bound, function in ((least, pc.maximum), (most, pc.minimum)):
                if bound is not None:
                    bound = bound if isinstance(bound, Tensor) else pc.tensor(bound)
                    x = function(x, bound.reshape(()))
            return x
        bounds = [None if b is None else b.reshape(-1)[0].item() for b in (least, most)]
        return x if bounds == [None, None] else pc.clamp(x, bounds[0], bounds[1])

    return clip


@operator("IsInf")
def _is_inf(node: Node) -> Function:
    negative, positive = node.flag("detect_negative", True), node.flag("detect_positive", True)
    if negative and positive:
        return pc.isinf
    if positive:
        return pc.isposinf
    return pc.isneginf if negative else lambda x: pc.zeros_like(x, dtype=pc.bool)


@operator("Dropout")
def _dropout_1(node: Node) -> Function:
    if node.version < 7 and not node.flag("is_test"):
        ratio = node.number("ratio", 0.5)
        return lambda x: _dropped(x, ratio)
    kind = pc.bool if node.version >= 10 else None
    return lambda x: (x, pc.ones_like(x, dtype=kind))


@operator("Dropout", 12, host=(1, 2))
def _dropout(node: Node) -> Function:
    def dropout(x: Tensor, ratio: Any = None, training: Any = None) -> Any:
        chance = 0.5 if ratio is None else float(ratio)
        if training is None or not bool(training) or chance == 0:
            return (x, pc.ones_like(x, dtype=pc.bool)) if len(node.outputs) > 1 else x
        return _dropped(x, chance)

    return dropout


def _dropped(x: Tensor, chance: float) -> tuple[Tensor, Tensor]:
    stays = pc.rand_like(x.float()) >= chance
    return x * stays * (1 / (1 - chance)), stays


# ---- dtypes --------------------------------------------------------------------------------------

_WRAP = {21: (4, False), 22: (4, True), 25: (2, False), 26: (2, True)}


def _to_float8(x: Tensor, dtype: Any, saturate: bool, mode: str) -> Tensor:
    """Return numbers of 8 bits; what is too large becomes the largest, or no number."""
    wide = x if x.is_floating_point() and x.itemsize >= 4 else x.to(pc.float32)
    if dtype.name == "float8_e8m0fnu":  # powers of 2
        if mode != "nearest":
            part, exponent = pc.frexp(wide)
            down = (part == 0.5) if mode == "up" else pc.ones_like(part, dtype=pc.bool)
            power = pc.ldexp(pc.ones_like(wide), exponent - down.to(exponent.dtype))
            largest = 2.0**127
            power = power.clamp(max=largest) if saturate else power
            wide = pc.where((wide > 0) & pc.isfinite(wide), power, wide)
        return wide.to(dtype)
    largest = float(pc.finfo(dtype).max)
    if saturate:
        wide = pc.where(pc.isnan(wide), wide, wide.clamp(-largest, largest))
    elif dtype.name == "float8_e4m3fn":  # without infinities: half a step beyond rounds back
        wide = pc.where(pc.abs(wide) > largest + 16, math.nan, wide)
    return wide.to(dtype)


def cast(
    x: Tensor, dtype: Any, element: int = 0, saturate: bool = True, mode: str = "up"
) -> Tensor:
    """Return a tensor in the dtype of an element type."""
    if dtype.name.startswith("float8"):
        return x if x.dtype == dtype else _to_float8(x, dtype, saturate, mode)
    if packed_bits(element):
        bits, signed = _WRAP[element]
        whole = x.to(pc.int32) & ((1 << bits) - 1)
        if signed:
            half = 1 << (bits - 1)
            whole = (whole ^ half) - half
        return whole.to(dtype)
    return x if x.dtype == dtype else x.to(dtype)


@operator("Cast", 6)
def _cast(node: Node) -> Function:
    dtype, element, more = node.dtype("to"), node.integer("to"), _rounding(node)
    return lambda x: cast(x, dtype, element, *more)


def _rounding(node: Node) -> tuple[bool, str]:
    mode = node.text("round_mode", "up", ("up", "down", "nearest"))
    return node.flag("saturate", True), mode


@operator("CastLike")
def _cast_like(node: Node) -> Function:
    element, more = node.element(1), _rounding(node)
    return lambda x, like: cast(x, like.dtype, element, *more)


@operator("BitCast")
def _bit_cast(node: Node) -> Function:
    dtype = node.dtype("to")
    return lambda x: x.contiguous().view(dtype)


@operator("Identity")
def _same(node: Node) -> Function:
    return _identity(node)


@operator("Hardmax", 13)
def _hardmax(node: Node) -> Function:
    axis = node.integer("axis", -1)
    return lambda x: _one_at_largest(x, axis)


def _one_at_largest(x: Tensor, axis: int) -> Tensor:
    index = pc.argmax(x, axis, keepdim=True)
    return pc.zeros_like(x).scatter(axis, index, 1.0)


def flattened(function: Function) -> Callable[[Node], Function]:
    """Return the entry of a version before 13, which takes `x` as a matrix from an axis on."""

    def build(node: Node) -> Function:
        axis = node.integer("axis", 1)

        def run(x: Tensor) -> Any:
            at = axis % max(x.ndim, 1) if axis != x.ndim else axis
            matrix = x.reshape(math.prod(x.shape[:at]), -1)
            return function(matrix, 1).reshape(x.shape)

        return run

    return build


operator("Hardmax")(flattened(_one_at_largest))
operator("Softmax")(flattened(F.softmax))
operator("LogSoftmax")(flattened(F.log_softmax))


@operator("Softmax", 13)
def _softmax(node: Node) -> Function:
    axis = node.integer("axis", -1)
    return lambda x: F.softmax(x, axis)


@operator("LogSoftmax", 13)
def _log_softmax(node: Node) -> Function:
    axis = node.integer("axis", -1)
    return lambda x: F.log_softmax(x, axis)
