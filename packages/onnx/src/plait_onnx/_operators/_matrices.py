"""Products of matrices, linear layers, embeddings, attention."""

from __future__ import annotations

import math
from typing import Any

import plait_core as pc
from plait_onnx._builder import Builder, Unsupported, Value
from plait_onnx._operators._pointwise import operand
from plait_onnx._table import lowers

_PRODUCTS = ("float16", "float32", "float64", "bfloat16", "int32", "int64", "uint32", "uint64")


def product(b: Builder, x: Value, y: Value) -> str:
    """Return a matrix product in the dtype of the result."""
    dtype = b.results[0].dtype
    if dtype.name in _PRODUCTS:
        return b.op("MatMul", b.cast(x, dtype), b.cast(y, dtype))
    wide = b.op("MatMul", b.cast(x, "int32"), b.cast(y, "int32"))
    return b.cast(b.cast(wide, "bool"), dtype) if dtype == pc.bool else b.cast(wide, dtype)


@lowers("mm", "bmm", "mv", "matmul", "linalg_matmul", "dot")
def matmul(b: Builder, arguments: dict[str, Any]) -> str:
    x, y = arguments.values()
    return product(b, x, y)


@lowers("linear")
def linear(b: Builder, input: Value, weight: Value, bias: Value | None) -> str:
    if input.ndim == 2 and weight.ndim == 2 and (bias is None or bias.ndim == 1):
        return b.op("Gemm", input, weight, bias, transB=1)
    turned = b.permute(weight, [1, 0]) if weight.ndim == 2 else weight.name
    result = b.op("MatMul", input, turned)
    return result if bias is None else b.op("Add", result, bias)


def _weighted(b: Builder, x: str, factor: Any) -> str:
    return x if factor == 1 else b.op("Mul", x, b.number(factor, b.results[0].dtype))


@lowers("addmm", "baddbmm", "addmv")
def addmm(b: Builder, arguments: dict[str, Any]) -> str:
    bias, x, y, beta, alpha = arguments.values()
    result = _weighted(b, product(b, x, y), alpha)
    return result if beta == 0 else b.op("Add", _weighted(b, bias.name, beta), result)


@lowers("embedding")
def embedding(b: Builder, weight: Value, indices: Value) -> str:
    return b.op("Gather", weight, b.cast(indices, "int64"), axis=0)


@lowers("attention_forward")
def attention_forward(
    b: Builder,
    query: Value,
    key: Value,
    value: Value,
    mask: Value | None,
    is_causal: bool,
    scale: float,
) -> tuple[str, str | None]:
    """Scores, softmax and product; rows that attend to nothing give 0."""
    dtype = query.dtype
    order = [*range(key.ndim - 2), key.ndim - 1, key.ndim - 2]
    root = b.number(math.sqrt(scale), dtype) if scale > 0 else None
    if root is None:
        raise Unsupported("attention with a scale that is not positive")
    scores = b.op("MatMul", b.op("Mul", query, root), b.op("Mul", b.permute(key, order), root))
    nothing = b.number(-math.inf, dtype)
    hides = False
    if mask is not None and mask.dtype == pc.bool:
        scores = b.op("Where", mask, scores, nothing)
        hides = True
    elif mask is not None:
        scores = b.op("Add", scores, operand(b, mask, dtype))
        hides = True
    if is_causal:
        rows = b.unsqueeze(b.positions(b.size(query, -2)), 1)
        seen = b.op("LessOrEqual", b.positions(b.size(key, -2)), rows)
        scores = b.op("Where", seen, scores, nothing)
    weights = b.op("Softmax", scores, axis=-1)
    if hides:  # a row without attention has 0 / 0
        weights = b.op("Where", b.op("IsNaN", weights), b.number(0.0, dtype), weights)
    total = None
    if b.results[1] is not None:
        total = b.reduce("ReduceLogSumExp", scores, [query.ndim - 1], False)
        blind = b.op("Equal", total, nothing)
        total = b.op("Where", blind, b.number(math.inf, dtype), total)
    return b.op("MatMul", weights, value), total


@lowers("linalg_det", "det")
def det(b: Builder, arguments: dict[str, Any]) -> str:
    (x,) = arguments.values()
    return b.op("Det", x)


@lowers("linalg_slogdet", "slogdet")
def slogdet(b: Builder, arguments: dict[str, Any]) -> tuple[str, str]:
    (x,) = arguments.values()
    value = b.op("Det", x)
    return b.op("Sign", value), b.op("Log", b.op("Abs", value))


@lowers("logdet")
def logdet(b: Builder, self: Value) -> str:
    return b.op("Log", b.op("Det", self))
