"""Losses over classes: reductions, weights, ignored rows, shapes, and wrong classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from on_both import check, numbers

import plait_core as pc
from plait_abi import operator

FLOATING = ["float32", "float64", "float16", "bfloat16"]
SHAPES = [(5,), (7, 3), (300, 10), (4, 5000), (3, 6, 40), (2, 4, 5, 6), (40, 33)]


def targets(shape: tuple[int, ...], ignored: int = -100) -> Any:
    """Return classes for scores of a shape; one row, where there are several, is to be ignored."""
    classes = shape[0] if len(shape) == 1 else shape[1]
    kept = shape[:0] if len(shape) == 1 else shape[:1] + shape[2:]
    made = np.random.default_rng(0).integers(0, classes, kept)
    if len(shape) > 1:
        made.flat[2] = ignored
    return pc.tensor(made)


def weights(shape: tuple[int, ...], dtype: str) -> Any:
    return numbers((shape[0] if len(shape) == 1 else shape[1],), dtype, 5).abs()


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("dtype", FLOATING)
@pytest.mark.parametrize("shape", SHAPES)
def test_losses_and_gradients(shape: tuple[int, ...], dtype: str, reduction: str) -> None:
    x, y = numbers(shape, dtype), targets(shape)
    half = dtype in ("float16", "bfloat16")
    bound = 4e-2 if half else None
    nll, entropy = operator("nll_loss"), operator("cross_entropy_forward")
    for w in (None, weights(shape, dtype)):
        rest = () if w is None else (w,)
        check(
            lambda x, y, w=None: nll(x, y, w, reduction, 1),
            x,
            targets(shape, 1),
            *rest,
            tolerance=bound,
        )
        check(lambda x, y, w=None: nll(x, y, w, reduction, -100), x, y, *rest, tolerance=bound)
        check(
            lambda x, y, w=None: tuple(entropy(x, y, w, reduction, -100)),
            *(x, y, *rest),
            tolerance=bound,
        )
        loss, lse = entropy(x, y, w, reduction, -100)
        g = numbers(tuple(loss.shape), dtype, 3)
        check(
            lambda g, y, w=None: operator("nll_loss_backward")(g, y, w, shape, reduction, -100),
            *(g, y, *rest),
            tolerance=bound,
        )
        check(
            lambda g, x, lse, y, w=None: operator("cross_entropy_backward")(
                g, x, lse, y, w, reduction, -100
            ),
            *(g, x, lse, y, *rest),
            tolerance=bound,
        )


def test_losses_of_views_and_of_all_rows_ignored() -> None:
    x, y = numbers((10, 40), "float32"), targets((40, 10))
    entropy = operator("cross_entropy_forward")
    check(lambda x, y: tuple(entropy(x.t(), y, None, "mean", -100)), x, y)
    check(
        lambda x, y: operator("nll_loss")(x.t()[::2], y[::2], x[:, 0], "sum", 3),
        x,
        targets((40, 10), 3),
    )
    none = pc.full((40,), -100, dtype=pc.int64)
    for reduction in ("none", "sum", "mean"):
        check(lambda x, y, r=reduction: tuple(entropy(x.t(), y, None, r, -100)), x, none)
    check(lambda x, y: tuple(entropy(x, y, None, "sum", -100)), pc.zeros((0, 3)), y[:0])


def test_a_gradient_that_is_a_number_of_the_host() -> None:
    x, y = numbers((7, 3), "float32"), targets((7, 3))
    _, lse = operator("cross_entropy_forward")(x, y, None, "mean", -100)
    g = pc.tensor(2.0)
    check(
        lambda x, lse, y: operator("cross_entropy_backward")(g, x, lse, y, None, "mean", -100),
        *(x, lse, y),
    )


@pytest.mark.parametrize("name", ["nll_loss", "cross_entropy_forward"])
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_a_class_that_is_none_is_an_error(name: str, reduction: str) -> None:
    x = numbers((4, 3), "float32").to("cuda")

    def loss(y: Any) -> Any:
        made = operator(name)(x, y, None, reduction, -100)
        return (made[0] if isinstance(made, (tuple, list)) else made).cpu()

    for wrong in (3, -1):
        y = pc.tensor([0, wrong, 1, 2]).to("cuda")
        with pytest.raises(IndexError, match=str(wrong)):
            loss(y)
