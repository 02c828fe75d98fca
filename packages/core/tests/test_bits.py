"""The same bits for any number of threads, and, where asked for, for any batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator

Setter = Callable[[bool], None]


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    threads = pc.get_num_threads()
    yield
    pc.set_num_threads(threads)
    pc.set_batch_invariant(False)
    pc.set_reproducible(False)


MODES = pytest.mark.parametrize("mode", [pc.set_batch_invariant, pc.set_reproducible])


def draw(*shape: int) -> Any:
    return pc.tensor(np.random.default_rng(len(shape)).standard_normal(shape, dtype=np.float32))


ROW, TALL, WIDE = draw(1_000_003), draw(20_011, 37), draw(37, 20_011)
A, B, BATCH, IMAGES, FILTERS = (
    draw(515, 777),
    draw(777, 301),
    draw(5, 130, 257),
    draw(9, 16, 29, 31),
    draw(32, 16, 3, 3),
)

BY_INPUT, BY_WEIGHT = operator("conv2d_backward_input"), operator("conv2d_backward_weight")
HALVES, WINDOWS = draw(9, 32, 15, 16), ((2, 2), (1, 1), (1, 1), 1)
NARROW, SPARSE, TINY = draw(48, 16, 1, 1), draw(16, 1, 3, 3), draw(9, 16, 7, 7)
PLAIN, APART = ((1, 1), (0, 0), (1, 1), 1), ((2, 2), (1, 1), (1, 1), 16)
SMALL, FEW = draw(33, 1, 28, 28), draw(6, 1, 5, 5)

OPERATORS: dict[str, Callable[[], Any]] = {
    "sum": lambda: ROW.sum(),
    "mean": lambda: ROW.mean(),
    "var": lambda: ROW.var(),
    "norm": lambda: ROW.norm(),
    "prod": lambda: (1 + 1e-3 * ROW).prod(),
    "cumsum": lambda: ROW.cumsum(0),
    "dot": lambda: ROW.dot(ROW.flip(0)),
    "sum of columns": lambda: TALL.sum(0),
    "sum of rows": lambda: WIDE.sum(1),
    "strided sum": lambda: TALL.T.sum(1),
    "sum over images": lambda: IMAGES.sum((0, 2, 3)),
    "var of columns": lambda: TALL.var(0),
    "logsumexp": lambda: pc.logsumexp(TALL, 0),
    "softmax": lambda: pc.softmax(TALL, 0),
    "layer_norm": lambda: pc.layer_norm(WIDE, (20_011,)),
    "cross_entropy": lambda: operator("cross_entropy")(TALL, pc.zeros(20_011, dtype=pc.int64)),
    "mm": lambda: A @ B,
    "transposed mm": lambda: B.T @ A.T,
    "few results": lambda: TALL.T @ TALL,
    "mv": lambda: WIDE @ ROW[:20_011],
    "bmm": lambda: BATCH @ BATCH.mT,
    "linear": lambda: operator("linear")(A, B.T),
    "conv2d": lambda: pc.conv2d(IMAGES, FILTERS, padding=1),
    "conv2d, stride 2": lambda: pc.conv2d(IMAGES, FILTERS, None, *WINDOWS),
    "conv2d by input": lambda: BY_INPUT(HALVES, FILTERS, IMAGES.shape, *WINDOWS),
    "conv2d by weight": lambda: BY_WEIGHT(HALVES, IMAGES, FILTERS.shape, *WINDOWS),
    "1x1": lambda: pc.conv2d(IMAGES, NARROW),
    "1x1, small images": lambda: pc.conv2d(TINY, NARROW),
    "1x1 by input": lambda: BY_INPUT(draw(9, 48, 29, 31), NARROW, IMAGES.shape, *PLAIN),
    "1x1 by weight": lambda: BY_WEIGHT(draw(9, 48, 29, 31), IMAGES, NARROW.shape, *PLAIN),
    "1x1 by weight, small images": lambda: BY_WEIGHT(draw(9, 48, 7, 7), TINY, NARROW.shape, *PLAIN),
    "depthwise": lambda: pc.conv2d(IMAGES, SPARSE, None, *APART),
    "depthwise by input": lambda: BY_INPUT(draw(9, 16, 15, 16), SPARSE, IMAGES.shape, *APART),
    "depthwise by weight": lambda: BY_WEIGHT(draw(9, 16, 15, 16), IMAGES, SPARSE.shape, *APART),
    "conv2d of whole images": lambda: pc.conv2d(IMAGES, draw(32, 16, 29, 31)),
    "conv2d of few channels": lambda: pc.conv2d(SMALL, FEW),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_bits_do_not_depend_on_threads(name: str) -> None:
    results = []
    for threads in (1, 2, 3, 8):
        pc.set_num_threads(threads)
        results.append(OPERATORS[name]().numpy().tobytes())
    assert len(set(results)) == 1


BY_ROW: dict[str, Callable[[Any], Any]] = {
    "mm": lambda x: x @ B,
    "mm of a transposed matrix": lambda x: x @ draw(301, 777).T,
    "linear": lambda x: operator("linear")(x, B.T, draw(301)),
    "one column": lambda x: x @ B[:, :1],
    "mv": lambda x: x @ B[:, 0],
    "batches": lambda x: x[:, None, :] @ B,
    "integers": lambda x: (10 * x).to(pc.int32) @ (10 * B).to(pc.int32),
    "softmax": lambda x: pc.softmax(x, 1),
    "layer_norm": lambda x: pc.layer_norm(x, (777,)),
    "sum": lambda x: x.sum(1),
    "fft": lambda x: pc.fft.fft(x),
    "rfft": lambda x: pc.fft.rfft(x[:, :512]),
    "rfft of columns": lambda x: pc.fft.rfft(x[:, :512].T.contiguous(), dim=0).T,
    "irfft": lambda x: pc.fft.irfft(pc.complex(x[:, :257], x[:, 257:514])),
}


@MODES
@pytest.mark.parametrize("name", BY_ROW)
def test_rows_do_not_depend_on_the_batch_in_the_mode(name: str, mode: Setter) -> None:
    mode(True)
    assert pc.is_batch_invariant()
    whole = BY_ROW[name](A)
    for rows in (1, 2, 3, 7, 8, 16, 31, 64, 100, 257, 512):
        assert pc.equal(BY_ROW[name](A[:rows]), whole[:rows]), rows


BY_IMAGE: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "columns or pixels": (IMAGES, lambda x: pc.conv2d(x, FILTERS, padding=1)),
    "1x1": (IMAGES, lambda x: pc.conv2d(x, NARROW)),
    "1x1, small images": (TINY, lambda x: pc.conv2d(x, NARROW)),
    "depthwise": (IMAGES, lambda x: pc.conv2d(x, SPARSE, None, *APART)),
    "whole images": (IMAGES, lambda x: pc.conv2d(x, draw(32, 16, 29, 31))),
    "few channels": (SMALL, lambda x: pc.conv2d(x, FEW)),
    "transposed": (
        HALVES,
        lambda x: BY_INPUT(x, FILTERS, (len(x), *IMAGES.shape[1:]), *WINDOWS),
    ),
}


@MODES
@pytest.mark.parametrize("name", BY_IMAGE)
def test_images_do_not_depend_on_the_batch_in_the_mode(name: str, mode: Setter) -> None:
    mode(True)
    batch, function = BY_IMAGE[name]
    whole = function(batch)
    for images in (1, 2, 5, 8):
        assert pc.equal(function(batch[:images]), whole[:images]), images


LONG = pc.from_numpy(np.random.default_rng(0).standard_normal((70, 140_001), dtype=np.float32))
BLOCKS = LONG[:, :139_200].reshape(70, 8700, 16)


@MODES
@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "amax", "prod", "norm"])
def test_long_reductions_do_not_depend_on_the_batch_in_the_mode(name: str, mode: Setter) -> None:
    mode(True)
    function = getattr(pc.Tensor, name)
    for x in (LONG, BLOCKS):
        whole = function(x, dim=1)
        for rows in (1, 3, 31, 40):
            assert pc.equal(function(x[:rows], dim=1), whole[:rows]), rows


@MODES
def test_the_mode_changes_rounding_only(mode: Setter) -> None:
    expected = A.numpy().astype(np.float64) @ B.numpy()
    mode(True)
    np.testing.assert_allclose((A @ B).numpy(), expected, rtol=1e-4, atol=1e-4)
