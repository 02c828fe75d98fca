"""Regions in which operators cast what they read: which dtype each of them computes in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plait_core as pc
import plait_nn.functional as F
from plait_abi import operator
from plait_core import _core

rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def region() -> Iterator[None]:
    """Begin a region of the CPU, and end it with the test."""
    _core.set_autocast("cpu", pc.bfloat16)
    yield
    _core.set_autocast("cpu", None)


def some(*shape: int, dtype: Any = pc.float32) -> Any:
    return pc.tensor(rng.uniform(0.1, 0.9, shape)).to(dtype)


SHORT: dict[str, Callable[[], Any]] = {
    "mm": lambda: some(2, 3) @ some(3, 2),
    "addmm": lambda: pc.addmm(some(2), some(2, 3), some(3, 2)),
    "addmv": lambda: pc.addmv(some(2), some(2, 3), some(3)),
    "addbmm": lambda: pc.addbmm(some(2, 2), some(4, 2, 3), some(4, 3, 2)),
    "baddbmm": lambda: pc.baddbmm(some(4, 2, 2), some(4, 2, 3), some(4, 3, 2)),
    "tensordot": lambda: pc.tensordot(some(2, 3), some(3, 2), 1),
    "vecdot": lambda: pc.linalg.vecdot(some(2, 3), some(2, 3)),
    "linear": lambda: F.linear(some(2, 3), some(4, 3)),
    "bilinear": lambda: operator("bilinear")(some(2, 3), some(2, 3), some(4, 3, 3)),
    "prelu": lambda: operator("prelu")(some(2, 3), some(1)),
    "conv2d": lambda: F.conv2d(some(1, 2, 4, 4), some(3, 2, 2, 2)),
    "attention": lambda: F.scaled_dot_product_attention(some(2, 3), some(2, 3), some(2, 3)),
}


@pytest.mark.parametrize("name", SHORT)
def test_products_are_short(name: str) -> None:
    assert SHORT[name]().dtype == pc.bfloat16


def two(function: Callable[..., Any]) -> Callable[[], Any]:
    return lambda: function(some(4, 3, dtype=pc.bfloat16), some(4, 3, dtype=pc.bfloat16))


def one(function: Callable[..., Any]) -> Callable[[], Any]:
    return lambda: function(some(4, 3, dtype=pc.bfloat16))


WIDE: dict[str, Callable[[], Any]] = {
    "mse_loss": two(F.mse_loss),
    "l1_loss": two(F.l1_loss),
    "smooth_l1_loss": two(F.smooth_l1_loss),
    "huber_loss": two(F.huber_loss),
    "binary_cross_entropy": two(F.binary_cross_entropy),
    "binary_cross_entropy_with_logits": two(F.binary_cross_entropy_with_logits),
    "cross_entropy": two(F.cross_entropy),
    "cosine_similarity": two(F.cosine_similarity),
    "dist": two(pc.dist),
    "cdist": two(pc.cdist),
    "pow": two(pc.pow),
    "norm": one(pc.norm),
    "matrix_norm": one(pc.linalg.matrix_norm),
    "renorm": one(lambda x: pc.renorm(x, 2, 0, 1.0)),
    "softmax": one(lambda x: F.softmax(x, -1)),
    "logsumexp": one(lambda x: pc.logsumexp(x, -1)),
    "sum": one(pc.sum),
    "prod": one(pc.prod),
    "prod.dim": one(lambda x: pc.prod(x, 0)),
    "exp": one(pc.exp),
}


@pytest.mark.parametrize("name", WIDE)
def test_what_needs_a_wide_range_is_float32(name: str) -> None:
    assert WIDE[name]().dtype == pc.float32


def test_others_compute_in_the_dtypes_that_they_get() -> None:
    x = some(3, dtype=pc.bfloat16)
    assert (x + x).dtype == pc.relu(x).dtype == pc.bfloat16
    assert F.mse_loss(x.double(), x.double()).dtype == pc.float64


def test_gradients_have_the_dtypes_of_what_was_cast() -> None:
    x, t = some(3, dtype=pc.bfloat16).requires_grad_(), some(3)
    F.mse_loss(x, t).backward()
    _core.set_autocast("cpu", None)
    want = (2 / 3 * (x.detach().float() - t)).to(pc.bfloat16)
    assert x.grad.dtype == pc.bfloat16 and x.grad.equal(want)
