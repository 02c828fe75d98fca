"""Regions in which operators cast what they read: which dtype each of them computes in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plait_core as pc
import plait_nn as nn
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


IMAGES = {"1d": (2, 4, 9), "2d": (2, 4, 6, 6), "3d": (2, 4, 5, 5, 5)}
LAYERS: dict[str, Callable[[], Any]] = {
    **{
        f"{kind}{dims}": lambda kind=kind, dims=dims: getattr(nn, kind + dims)(4, 2, 2)
        for kind in ("Conv", "ConvTranspose")
        for dims in IMAGES
    },
    "PReLU": lambda: nn.PReLU(4),
    "Linear": lambda: nn.Linear(4, 2),
    "RNN": lambda: nn.RNN(4, 3),
    "LSTM": lambda: nn.LSTM(4, 3),
    "GRU": lambda: nn.GRU(4, 3),
    "RNNCell": lambda: nn.RNNCell(4, 3),
    "LSTMCell": lambda: nn.LSTMCell(4, 3),
    "GRUCell": lambda: nn.GRUCell(4, 3),
    "InstanceNorm1d": lambda: nn.InstanceNorm1d(4),
}
# whose result has the dtype of the hidden state or of the input
FOLLOWING = ("GRU", "LSTMCell", "GRUCell", "InstanceNorm1d")


@pytest.mark.parametrize("dtype", [pc.float32, pc.bfloat16])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_take_short_inputs_and_their_gradients_are_wide(name: str, dtype: Any) -> None:
    layer = LAYERS[name]()
    shape = IMAGES.get(name[-2:], (5, 4) if name.endswith(("Cell", "PReLU", "ar")) else (5, 2, 4))
    shape = (2, 4, 5) if name == "InstanceNorm1d" else shape
    x = some(*shape, dtype=dtype).requires_grad_()
    result = layer(x)
    result = result[0] if isinstance(result, tuple) else result
    assert result.dtype == (dtype if name in FOLLOWING else pc.bfloat16)
    result.float().sum().backward()
    assert x.grad.dtype == dtype
    assert all(p.grad.dtype == pc.float32 for p in layer.parameters())
    _core.set_autocast("cpu", None)
    wide = layer(x.detach().float())
    wide = wide[0] if isinstance(wide, tuple) else wide
    np.testing.assert_allclose(result.detach().float().numpy(), wide.detach().numpy(), atol=0.05)


def test_the_dtype_of_a_region_is_known() -> None:
    assert _core.autocast_dtype("cpu") == pc.bfloat16
    _core.set_autocast("cpu", None)
    assert _core.autocast_dtype("cpu") is None
    with pytest.raises(TypeError, match="autocast_dtype: a device is required"):
        _core.autocast_dtype(3.5)


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
