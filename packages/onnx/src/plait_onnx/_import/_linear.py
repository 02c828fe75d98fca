"""Matrix products and linear algebra."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import plait_core as pc
import plait_nn.functional as F
from plait_core import Tensor
from plait_onnx._import._pointwise import aligned
from plait_onnx._import._registry import Node, operator

Function = Callable[..., Any]


@operator("MatMul")
def _matmul(_: Node) -> Function:
    return pc.matmul


@operator("Gemm")
def _gemm(node: Node) -> Function:
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    first, second = node.flag("transA"), node.flag("transB")

    def run(a: Tensor, b: Tensor, c: Tensor | None = None) -> Tensor:
        if a.ndim != 2 or b.ndim != 2:
            raise ValueError("A and B must be matrices")
        simple = second and not first and alpha == beta == 1
        if simple and c is not None and c.ndim == 1 and c.shape[0] == b.shape[0]:
            return F.linear(a, b, c)
        a = a.t() if first else a
        product = pc.mm(a, b.t() if second else b)
        if alpha != 1:
            product = product * alpha if a.is_floating_point() else product * int(alpha)
        if c is None or beta == 0:
            return product
        if node.version < 7 and node.flag("broadcast") and c.ndim == 0:
            c = aligned(c, product, None)
        return product + (c if beta == 1 else c * (beta if a.is_floating_point() else int(beta)))

    return run


@operator("Einsum")
def _einsum(node: Node) -> Function:
    equation = node.text("equation").replace(" ", "")
    if len(equation) > 1000 or not re.fullmatch(r"[A-Za-z.,]*(->[A-Za-z.]*)?", equation):
        raise node.error(f"equation {equation[:80]!r} is invalid")
    return lambda *parts: pc.einsum(equation, *parts)


@operator("Det")
def _det(_: Node) -> Function:
    return pc.det
