"""Integers that stand for real numbers, by a scale and a zero point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_onnx._import._convolution import convolve
from plait_onnx._import._errors import dtype_of
from plait_onnx._import._registry import Node, operator

Function = Callable[..., Any]
_PACKED_RANGES = {21: (0, 15), 22: (-8, 7), 25: (0, 3), 26: (-2, 1)}


def _spread(node: Node, value: Tensor, x: Tensor, axis: int, block: int) -> Tensor:
    """Return scales or zero points with the shape of `x`, or one that broadcasts to it."""
    if value.numel() == 1 and value.ndim < 2:
        return value.reshape(())
    at = axis % x.ndim
    if block:
        n = x.shape[at]
        node.check_size([*value.shape, block], value.itemsize)
        repeated = pc.repeat_interleave(value, block, at)
        return repeated.narrow(at, 0, n)
    if value.ndim == 1:
        if value.shape[0] != x.shape[at]:
            raise ValueError(f"{value.shape[0]} scales for dimension {at} of {list(x.shape)}")
        return value.reshape(-1, *[1] * (x.ndim - 1 - at))
    return value


def _range(dtype: Any, element: int) -> tuple[int, int]:
    if element in _PACKED_RANGES:
        return _PACKED_RANGES[element]
    limits = pc.iinfo(dtype)
    return limits.min, limits.max


def quantized(x: Tensor, scale: Tensor, zero: Any, dtype: Any, element: int = 0) -> Tensor:
    """Return the integers for real numbers, saturated."""
    low, high = _range(dtype, element)
    whole = pc.round(x / scale)
    if zero is not None:
        whole = whole + zero.to(whole.dtype)
    return whole.clamp(low, high).to(dtype)


@operator("QuantizeLinear")
def _quantize(node: Node) -> Function:
    axis, block = node.integer("axis", 1), node.integer("block_size", 0)
    element = node.integer("output_dtype", 0) or node.element(2) or 2
    saturate = node.flag("saturate", True)
    precision = node.integer("precision", 0)

    def run(x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
        dtype = dtype_of(element, node.where) if zero is None else zero.dtype
        wide = pc.float32 if x.itemsize < 4 or not x.is_floating_point() else x.dtype
        if precision:
            wide = dtype_of(precision, node.where)
        share = _spread(node, scale, x, axis, block)
        offset = None if zero is None else _spread(node, zero, x, axis, block)
        if dtype.is_floating_point:
            y = x.to(wide) / share.to(wide)
            return _saturated(y, dtype).to(dtype) if saturate else y.to(dtype)
        return quantized(x.to(wide), share.to(wide), offset, dtype, element)

    return run


def _saturated(x: Tensor, dtype: Any) -> Tensor:
    largest = pc.finfo(dtype).max
    return pc.where(pc.isnan(x), x, x.clamp(-largest, largest))


@operator("DequantizeLinear")
def _dequantize(node: Node) -> Function:
    axis, block = node.integer("axis", 1), node.integer("block_size", 0)
    dtype = node.dtype("output_dtype", None) if node.version >= 23 else None

    def run(x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
        result = scale.dtype if dtype is None else dtype
        wide = pc.float32 if scale.itemsize < 4 else scale.dtype
        whole = x.to(wide)
        if zero is not None:
            whole = whole - _spread(node, zero, x, axis, block).to(wide)
        return (whole * _spread(node, scale, x, axis, block).to(wide)).to(result)

    return run


@operator("DynamicQuantizeLinear")
def _dynamic_quantize(_: Node) -> Function:
    def run(x: Tensor) -> tuple[Tensor, ...]:
        high = pc.amax(x).clamp(min=0.0)
        low = pc.amin(x).clamp(max=0.0)
        scale = (high - low) / 255
        zero = pc.round(-low / scale).clamp(0, 255)
        y = (pc.round(x / scale) + zero).clamp(0, 255)
        return y.to(pc.uint8), scale, zero.to(pc.uint8)

    return run


def _shifted(x: Tensor, zero: Tensor | None, axis: int | None = None) -> Tensor:
    """Return integers without their zero point, in float64, where sums of products are exact."""
    wide = x.to(pc.float64)
    if zero is None:
        return wide
    if zero.ndim == 1 and zero.numel() > 1 and axis is not None:
        zero = zero.reshape(-1, *[1] * (x.ndim - 1 - axis))
    return wide - (zero.reshape(()) if zero.numel() == 1 else zero).to(pc.float64)


@operator("MatMulInteger")
def _matmul_integer(_: Node) -> Function:
    def run(a: Tensor, b: Tensor, a_zero: Any = None, b_zero: Any = None) -> Tensor:
        left = _shifted(a, a_zero, a.ndim - 2 if a.ndim > 1 else None)
        right = _shifted(b, b_zero)
        return pc.matmul(left, right).to(pc.int32)

    return run


@operator("ConvInteger")
def _conv_integer(node: Node) -> Function:
    convolution = convolve(node)

    def run(x: Tensor, weight: Tensor, x_zero: Any = None, w_zero: Any = None) -> Any:
        return convolution(_shifted(x, x_zero), _shifted(weight, w_zero, 0)).to(pc.int32)

    return run


def _per_row(value: Tensor, axis: int, ndim: int) -> Tensor:
    if value.numel() == 1:
        return value.reshape(())
    return value.reshape(-1, *[1] * (ndim - 1 - axis)) if value.ndim == 1 else value


@operator("QLinearMatMul")
def _quantized_matmul(_: Node) -> Function:
    def run(
        a: Tensor, a_scale: Tensor, a_zero: Tensor, b: Tensor, b_scale: Tensor, b_zero: Tensor,
        y_scale: Tensor, y_zero: Tensor,
    ) -> Tensor:  # fmt: skip
        product = pc.matmul(_shifted(a, a_zero, max(a.ndim - 2, 0)), _shifted(b, b_zero))
        rows = max(product.ndim - 2, 0)
        scale = _per_row(a_scale, rows, product.ndim).to(pc.float64) * b_scale.to(pc.float64)
        out = _per_row(y_scale, rows, product.ndim).to(pc.float64)
        return quantized(product * scale, out, _per_row(y_zero, rows, product.ndim), y_zero.dtype)

    return run


@operator("QLinearConv")
def _quantized_conv(node: Node) -> Function:
    convolution = convolve(node)

    def run(
        x: Tensor, x_scale: Tensor, x_zero: Tensor, w: Tensor, w_scale: Tensor, w_zero: Tensor,
        y_scale: Tensor, y_zero: Tensor, bias: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        total = convolution(_shifted(x, x_zero), _shifted(w, w_zero, 0))
        dims = x.ndim - 2
        if bias is not None:
            total = total + bias.to(pc.float64).reshape(-1, *[1] * dims)
        scale = x_scale.reshape(()).to(pc.float64) * w_scale.to(pc.float64)
        share = scale.reshape(()) if scale.numel() == 1 else scale.reshape(-1, *[1] * dims)
        return quantized(
            total * share, y_scale.reshape(()).to(pc.float64), y_zero.reshape(()), y_zero.dtype
        )

    return run
