"""Activations and their gradients at nan, infinities, zeros and corners, compared with PyTorch.

PyTorch's kernels differ between single elements and blocks of them in some of these places; either
of its values is right. The sign of a zero is not compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

import plait_core as pc
import plait_nn.functional as ours

theirs = torch.nn.functional

POINTS = [
    *(math.nan, math.inf, -math.inf, 0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 6.0),
    *(20.0, 20.5, -20.0, 1e-30, -1e-30, 1e30, -1e30, 3e38, -3e38),
]

ACTIVATIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "threshold": lambda F, lib, x: F.threshold(x, 1.0, 2.0),
    "threshold_below": lambda F, lib, x: F.threshold(x, -1.0, -2.0),
    "hardtanh_wide": lambda F, lib, x: F.hardtanh(x, -2.0, 3.0),
    "leaky_relu_negative": lambda F, lib, x: F.leaky_relu(x, -0.5),
    "elu_alpha": lambda F, lib, x: F.elu(x, 2.0),
    "celu_alpha": lambda F, lib, x: F.celu(x, 2.0),
    "softplus_beta": lambda F, lib, x: F.softplus(x, 2.0, 6.0),
    "hardshrink_one": lambda F, lib, x: F.hardshrink(x, 1.0),
    "softshrink_one": lambda F, lib, x: F.softshrink(x, 1.0),
    "gelu_tanh": lambda F, lib, x: F.gelu(x, approximate="tanh"),
    "prelu": lambda F, lib, x: F.prelu(x, lib.tensor([0.25], dtype=x.dtype)),
    "glu": lambda F, lib, x: F.glu(lib.stack([x, x], -1)).reshape(-1),
    "tanh": lambda F, lib, x: lib.tanh(x),
    "sigmoid": lambda F, lib, x: lib.sigmoid(x),
    **{
        name: lambda F, lib, x, name=name: getattr(F, name)(x)  # type: ignore[misc]
        for name in (
            *("relu", "relu6", "leaky_relu", "elu", "selu", "celu", "silu", "mish", "softplus"),
            *("logsigmoid", "tanhshrink", "softsign", "hardtanh", "hardsigmoid", "hardswish"),
            *("hardshrink", "softshrink", "gelu", "rrelu"),
        )
    },
}

DIFFERENCES = {
    # the polynomial overflows in torch's gradient, and infinity times zero is nan; ours is 0 or 1
    ("gelu_tanh", "gradient"): (1e30, -1e30, 3e38, -3e38),
}


def values(name: str, lib: Any, functional: Any, dtype: str, size: int) -> list[tuple[Any, Any]]:
    results = []
    for point in POINTS:
        x = lib.full((size,), point, dtype=getattr(lib, dtype), requires_grad=True)
        y = ACTIVATIONS[name](functional, lib, x)
        y.sum().backward()
        results.append((y.detach()[0].item(), x.grad[0].item()))
    return results


def alike(a: float, b: float, tolerance: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or math.isclose(
        a, b, rel_tol=tolerance, abs_tol=tolerance
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_values_and_gradients(name: str, dtype: str) -> None:
    tolerance = 2e-6 if dtype == "float32" else 1e-7
    allowed = [values(name, torch, theirs, dtype, size) for size in (1, 64)]
    for size in (1, 5, 64):
        result = values(name, pc, ours, dtype, size)
        for i, point in enumerate(POINTS):
            for k, kind in enumerate(("value", "gradient")):
                want = [each[i][k] for each in allowed]
                if any(alike(result[i][k], each, tolerance) for each in want):
                    continue
                assert point in DIFFERENCES.get((name, kind), ()), (
                    f"{kind} at {point} of {size} elements: {result[i][k]}, PyTorch's {want}"
                )
