"""Softmax, layer normalisation and batch normalisation, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from emulation_control import Emulation
from on_both import check, numbers

import plait_core as pc
from plait_abi import operator

FLOATING = ["float32", "float64", "float16", "bfloat16"]
SIZES = [1, 2, 5, 31, 32, 33, 255, 256, 257, 1025, 4096, 4100, 9001]


def internal(name: str) -> Callable[..., Any]:
    """Return an operator that no module shows."""
    return operator(name)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("n", SIZES)
def test_softmax_of_rows_of_any_length(n: int, dtype: str) -> None:
    x = numbers((3, n), dtype, n)
    check(lambda t: pc.softmax(t, 1), x)
    check(lambda t: pc.log_softmax(t, 1), x)
    g = numbers((3, n), dtype, n + 1)
    check(lambda t, g: internal("softmax_backward")(g, t, 1), pc.softmax(x, 1), g)
    check(lambda t, g: internal("log_softmax_backward")(g, t, 1), pc.log_softmax(x, 1), g)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("shape", [(5, 3), (300, 33), (4, 7, 50), (2, 1000, 3), (1, 9, 70)])
def test_softmax_along_other_dimensions(shape: tuple[int, ...], dtype: str) -> None:
    x, g = numbers(shape, dtype), numbers(shape, dtype, 1)
    for dim in range(len(shape) - 1):
        check(lambda t, dim=dim: pc.softmax(t, dim), x)
        check(lambda t, dim=dim: pc.log_softmax(t, dim), x)
        for name in ("softmax", "log_softmax"):
            y = getattr(pc, name)(x, dim)
            backward = internal(f"{name}_backward")
            check(lambda t, g, dim=dim, backward=backward: backward(g, t, dim), y, g)


def test_softmax_that_no_shared_memory_holds() -> None:
    x = numbers((2, 70_000), "float32")
    check(lambda t: pc.softmax(t, 1), x)
    check(lambda t: pc.log_softmax(t[:, 1:], 1), x)


def test_softmax_of_views_scalars_and_nothing() -> None:
    x = numbers((40, 33), "float32")
    check(lambda t: pc.softmax(t.t(), 1), x)
    check(lambda t: pc.softmax(t[::2, 1:], -1), x)
    check(lambda t: pc.softmax(t[0, 0], 0), x)
    check(lambda t: pc.softmax(t, 1), pc.zeros((0, 3)))
    check(lambda t: pc.softmax(t, 1), pc.zeros((3, 0)))
    check(lambda t: pc.softmax(t, 1, dtype=pc.float64), x)


def test_softmax_of_infinities_and_nan() -> None:
    inf, nan = np.inf, np.nan
    rows = [[-inf, -inf, -inf], [-inf, 1, 2], [nan, 1, 2], [1000, 1000, -1000], [-inf, nan, 1]]
    x = pc.tensor(np.array(rows, np.float32))
    for call in (pc.softmax, pc.log_softmax):
        check(lambda t, call=call: call(t, 1), x)
        check(lambda t, call=call: call(t.t(), 0), x)


def factors(n: int, dtype: str) -> tuple[Any, Any]:
    return numbers((n,), dtype, 7), numbers((n,), dtype, 8)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("n", SIZES)
def test_layer_norm_of_rows_of_any_length(n: int, dtype: str) -> None:
    x, g = numbers((5, n), dtype, n), numbers((5, n), dtype, n + 1)
    weight, bias = factors(n, dtype)
    forward, backward = internal("native_layer_norm"), internal("layer_norm_backward")
    tolerance = 3e-2 if dtype == "bfloat16" else None
    check(lambda t, w, b: tuple(forward(t, [n], w, b, 1e-5)), x, weight, bias, tolerance=tolerance)
    check(lambda t: tuple(forward(t, [n], None, None, 1e-5)), x)
    check(lambda t, b: tuple(forward(t, [n], None, b, 1e-5)), x, bias, tolerance=tolerance)
    _, mean, scale = forward(x, [n], weight, bias, 1e-5)
    if n == 1:
        return  # the normal elements are what rounding leaves
    for w in (weight, None):
        arguments = [g, x, mean, scale] + ([] if w is None else [w])
        check(
            lambda g, x, m, s, w=None: tuple(backward(g, x, m, s, w, [n])),
            *arguments,
            tolerance=5e-2 if dtype in ("float16", "bfloat16") else None,
        )
    alone = internal("layer_norm_backward_input")
    check(
        lambda *a: alone(*a, [n]),
        *(g, x, mean, scale),
        tolerance=5e-2 if dtype in ("float16", "bfloat16") else None,
    )


def test_layer_norm_over_several_dimensions_and_of_views() -> None:
    x = numbers((6, 7, 5, 4), "float32")
    weight = numbers((5, 4), "float32", 3)
    forward, backward = internal("native_layer_norm"), internal("layer_norm_backward")
    check(lambda t, w: tuple(forward(t, [5, 4], w, w, 1e-5)), x, weight)
    check(lambda t, w: tuple(forward(t.permute(1, 0, 2, 3), [5, 4], w, None, 0.1)), x, weight)
    check(lambda t, w: tuple(forward(t, [4, 5], w.t(), w.t(), 1e-5)), x.permute(0, 1, 3, 2), weight)
    _, mean, scale = forward(x, [5, 4], weight, None, 1e-5)
    check(lambda *a: tuple(backward(*a, [5, 4])), x * 2 + 1, x, mean, scale, weight)
    many = numbers((5000, 8), "float32")
    _, mean, scale = forward(many, [8], None, None, 1e-5)
    check(lambda *a: tuple(backward(*a, None, [8])), many * many, many, mean, scale)


def test_layer_norm_far_from_zero_and_of_nothing() -> None:
    forward = internal("native_layer_norm")
    x = pc.tensor((np.random.default_rng(0).normal(size=(3, 5000)) + 1000).astype(np.float32))
    for n in (40, 3000, 5000):
        check(lambda t, n=n: tuple(forward(t[:, :n], [n], None, None, 1e-5)), x, tolerance=1e-4)
    check(lambda t: tuple(forward(t, [3], None, None, 1e-5)), pc.zeros((0, 3)))
    check(lambda t: tuple(forward(t, [4], None, None, 1e-5)), pc.full((2, 4), 1e30))


SHAPES = [(4, 3), (300, 33), (2, 5, 16), (3, 4, 7, 9), (20, 3, 40, 40), (1, 2, 3), (2, 64, 2, 2)]
ACTIVATIONS = ["relu", "hardtanh", "leaky_relu", "silu", "hardswish"]
LIMITS = (-0.5, 0.7, 0.1)


@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("shape", SHAPES)
def test_batch_norm(shape: tuple[int, ...], dtype: str) -> None:
    forward, backward = internal("native_batch_norm"), internal("batch_norm_backward")
    x, g = numbers(shape, dtype), numbers(shape, dtype, 1)
    w, b = factors(shape[1], dtype)
    half = dtype in ("float16", "bfloat16")
    check(lambda *a: tuple(forward(*a, 1e-5)), x, w, b, tolerance=3e-2 if half else None)
    check(lambda t: tuple(forward(t, None, None, 1e-5)), x, tolerance=3e-2 if half else None)
    _, mean, var = forward(x, w, b, 1e-5)
    bound = 5e-2 if half else 2e-5 if dtype == "float32" else None
    check(lambda *a: tuple(backward(*a, 1e-5)), g, x, mean, var, w, tolerance=bound)
    check(lambda *a: tuple(backward(*a, None, 1e-5)), g, x, mean, var, tolerance=bound)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_batch_norm_with_what_follows(shape: tuple[int, ...], activation: str) -> None:
    forward = internal("native_batch_norm_activation")
    added = internal("native_batch_norm_add_activation")
    x, g, r = (numbers(shape, "float32", seed) for seed in range(3))
    w, b = factors(shape[1], "float32")
    rest = (1e-5, activation, *LIMITS)
    check(lambda *a: tuple(forward(*a, *rest)), x, w, b)
    _, mean, var = forward(x, w, b, *rest)
    backward = internal("batch_norm_activation_backward")
    check(lambda *a: tuple(backward(*a, *rest)), g, x, mean, var, w, b, tolerance=2e-5)
    if activation in ("silu", "hardswish"):
        return
    check(lambda *a: tuple(added(*a, *rest)), x, r, w, b)
    y, mean, var = added(x, r, w, b, *rest)
    backward = internal("batch_norm_add_activation_backward")
    check(lambda *a: tuple(backward(*a, *rest)), g, y, x, mean, var, w, tolerance=2e-5)


@pytest.mark.parametrize("dtype", FLOATING)
def test_running_statistics(dtype: str) -> None:
    def move(x: Any, mean: Any, var: Any) -> tuple[Any, ...]:
        mean, var = mean.clone(), var.clone()
        y = pc.batch_norm(x, None, None, mean, var, True, 0.3)
        return y, mean, var

    x = numbers((4, 300, 3), dtype)
    half = dtype in ("float16", "bfloat16")
    mean, var = numbers((300,), dtype, 3), numbers((300,), dtype, 4)
    check(move, x, mean, var, tolerance=3e-2 if half else None)

    def move_parts(x: Any, mean: Any, var: Any) -> tuple[Any, ...]:
        mean, var = mean.clone(), var.clone()
        pc.batch_norm(x[:, ::2], None, None, mean[::2], var[::2], True, 0.3)
        return mean, var

    check(move_parts, x, mean, var, tolerance=3e-2 if half else None)


def test_a_layer_of_batch_norm_launches_few_kernels() -> None:
    nn, emulation = pytest.importorskip("plait_nn"), Emulation()
    pytest.importorskip("plait_autograd")
    layer = nn.BatchNorm2d(16).to("cuda")
    x = numbers((8, 16, 9, 9), "float32").to("cuda").requires_grad_()
    before = emulation.get("launches"), emulation.get("copies")
    y = layer(x)
    # sums of channels, elements, running statistics; and the number of batches
    assert (emulation.get("launches"), emulation.get("copies")) == (before[0] + 4, before[1])
    g = pc.ones_like(y)
    before = emulation.get("launches"), emulation.get("copies")
    y.backward(g)
    assert (emulation.get("launches"), emulation.get("copies")) == (before[0] + 2, before[1])


def test_batch_norm_of_views_and_nothing() -> None:
    forward, backward = internal("native_batch_norm"), internal("batch_norm_backward")
    x = numbers((6, 8, 5, 4), "float32")
    w, b = factors(4, "float32")
    check(lambda t, w, b: tuple(forward(t.permute(1, 3, 2, 0), w, b, 1e-5)), x, w, b)
    check(lambda t, w, b: tuple(forward(t[:, ::2], w[::1], b, 0.1)), x, w, b)
    y, mean, var = forward(x.permute(1, 3, 2, 0), w, b, 1e-5)
    check(
        lambda g, x, m, v, w: tuple(backward(g, x.permute(1, 3, 2, 0), m, v, w, 1e-5)),
        *(y * y, x, mean, var, w),
        tolerance=2e-5,
    )
    check(lambda t: tuple(forward(t, None, None, 1e-5)), pc.zeros((0, 3, 4)))
    check(lambda t: tuple(forward(t, None, None, 1e-5)), pc.zeros((2, 0, 4)))
