"""Packed weights are kept while nobody writes the weights, and go with them.

Nothing is kept in a call that an engine may record: all tests run without gradients where an engine
has been loaded.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator

linear, conv2d = operator("linear"), operator("conv2d")
Layer = tuple[Callable[..., pc.Tensor], tuple[int, ...], tuple[int, ...]]


def depthwise(x: pc.Tensor, w: pc.Tensor) -> pc.Tensor:
    return pc.conv2d(x[:, : w.shape[0]], w, None, 1, 1, 1, w.shape[0])


LAYERS: list[Layer] = [
    (linear, (40, 300), (200, 300)),
    (linear, (3, 11, 96), (50, 96)),
    (linear, (150, 512), (257, 512)),
    (conv2d, (2, 24, 9, 7), (32, 24, 3, 3)),
    (conv2d, (1, 64, 18, 18), (70, 64, 3, 3)),
    (conv2d, (1, 40, 13, 13), (48, 40, 5, 5)),
    (conv2d, (2, 256, 7, 7), (96, 256, 1, 1)),
    (conv2d, (1, 100, 14, 14), (90, 100, 1, 1)),
    (depthwise, (2, 150, 7, 7), (150, 1, 5, 5)),
]
NAMES = ["linear", "rows", "distant rows", "conv2d", "winograd", "winograd 5x5"]
NAMES += ["1x1 of 7x7", "1x1 of 14x14", "depthwise"]
each_layer = pytest.mark.parametrize(("layer", "x", "w"), LAYERS, ids=NAMES)


def kept_with(make: Callable[[], object]) -> int:
    """Return by how many bytes the memory in use grows."""
    gc.collect()
    before = int(pc.memory_stats()["live_bytes"])
    result = make()
    del result
    gc.collect()
    return int(pc.memory_stats()["live_bytes"]) - before


def gradients(on: bool) -> AbstractContextManager[object]:
    engine = sys.modules.get("plait_autograd")
    return engine.set_grad_enabled(on) if engine else nullcontext()


@pytest.fixture(autouse=True)
def cache() -> Iterator[None]:
    pc.set_weight_cache(True)
    with gradients(False):
        yield
    pc.set_weight_cache(True)


def weights(shape: tuple[int, ...]) -> pc.Tensor:
    return pc.randn(*shape) / 8


@each_layer
def test_results_follow_the_weights(
    layer: Callable[..., pc.Tensor], x: tuple[int, ...], w: tuple[int, ...]
) -> None:
    a, b = pc.randn(*x), weights(w)
    for _ in range(3):
        expected = layer(a, b.clone())
        for _ in range(4):
            assert pc.equal(layer(a, b), expected)
        b.mul_(-0.5)
        b.view(-1)[5] = 3.0


@pytest.mark.parametrize("dtype", [pc.float32, pc.float64])
def test_kept_weights_add_the_bias_in_the_same_order(dtype: pc.dtype) -> None:
    """Also in columns that fill no panel, with sums of several blocks."""
    a, b, bias = (pc.randn(*shape, dtype=dtype) for shape in ((24, 1000), (515, 1000), (515,)))
    expected = linear(a, b.clone(), bias)
    for _ in range(3):
        assert pc.equal(linear(a, b, bias), expected)


@each_layer
def test_other_writers_are_seen(
    layer: Callable[..., pc.Tensor], x: tuple[int, ...], w: tuple[int, ...]
) -> None:
    a, b = pc.randn(*x), weights(w)
    for _ in range(3):
        layer(a, b)
    b.data.mul_(2)
    assert pc.equal(layer(a, b), layer(a, b.clone()))
    for _ in range(3):
        layer(a, b)
    b.data = weights(w)
    assert pc.equal(layer(a, b), layer(a, b.clone()))
    for _ in range(3):
        layer(a, b)
    array = b.numpy()
    for i in range(3):
        array[...] += i
        assert pc.equal(layer(a, b), layer(a, b.clone()))


@pytest.mark.parametrize(
    ("rows", "k", "n"), [(16, 32, 32), (33, 50, 40), (150, 512, 257), (600, 800, 70)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_bias_has_the_same_bits(rows: int, k: int, n: int, dtype: type) -> None:
    numbers = np.random.default_rng(3)
    x, w, b = (numbers.standard_normal(s).astype(dtype) for s in ((rows, k), (n, k), n))
    tensors = [pc.from_numpy(array).clone() for array in (x, w, b)]
    results = [linear(*tensors).numpy() for _ in range(3)]
    pc.set_weight_cache(False)
    results.append(linear(*tensors).numpy())
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    exact = x.astype(np.float64) @ w.T.astype(np.float64) + b
    np.testing.assert_allclose(results[0], exact, atol=1e-3 if dtype == np.float32 else 1e-11)


@each_layer
def test_parts_of_one_storage(
    layer: Callable[..., pc.Tensor], x: tuple[int, ...], w: tuple[int, ...]
) -> None:
    both = weights((2, *w))
    a = pc.randn(*x)
    expected = [layer(a, part.clone()) for part in both]
    for _ in range(3):
        for part, result in zip(both, expected, strict=True):
            assert pc.equal(layer(a, part), result)
    half = w[0] // 2
    for _ in range(3):
        assert pc.equal(layer(a, both[0][:half]), layer(a, both[0][:half].clone()))


@each_layer
def test_a_step_with_gradients_frees_old_tensors(
    layer: Callable[..., pc.Tensor], x: tuple[int, ...], w: tuple[int, ...]
) -> None:
    if layer is linear:
        pytest.skip("keeps none for so few rows")
    a, b = pc.randn(*x), weights(w)
    layer(a, b)
    gc.collect()
    before = int(pc.memory_stats()["live_bytes"])
    for _ in range(4):
        layer(a, b)
    gc.collect()
    growth = int(pc.memory_stats()["live_bytes"]) - before
    b.mul_(2.0)
    with gradients(True):
        layer(a, b)
    gc.collect()
    assert int(pc.memory_stats()["live_bytes"]) == before
    assert growth >= 4 * b.numel() or "PLAIT_CPU" in os.environ


def test_kept_bytes_go_with_the_weights() -> None:
    a = pc.randn(64, 512)

    def use() -> None:
        b = weights((512, 512))
        for _ in range(4):
            linear(a, b)

    use()
    assert kept_with(use) == 0


def test_new_weights_in_the_place_of_old_ones() -> None:
    a = pc.randn(64, 512)
    for _ in range(6):
        b = weights((512, 512))
        for _ in range(3):
            np.testing.assert_allclose(
                linear(a, b).numpy(), a.numpy() @ np.asarray(b.clone()).T, atol=1e-3
            )
        del b


def test_the_switch() -> None:
    a, b = pc.randn(64, 512), weights((512, 512))
    expected = linear(a, b)
    for mode in (True, False, True):
        pc.set_weight_cache(mode)
        assert pc.is_weight_cache_enabled() is mode
        for _ in range(3):
            assert pc.allclose(linear(a, b), expected, rtol=1e-4, atol=1e-5)
        if not mode:
            assert kept_with(lambda: [linear(a, b) for _ in range(3)]) == 0
    with pytest.raises(TypeError):
        pc.set_weight_cache("on")  # type: ignore[arg-type]


def test_threads_share_cached_values() -> None:
    a, all_weights = pc.randn(32, 256), [weights((256, 256)) for _ in range(4)]
    expected = [linear(a, b.clone()) for b in all_weights]
    wrong: list[int] = []

    def work() -> None:
        with gradients(False):
            for i in range(200):
                if not pc.equal(linear(a, all_weights[i % 4]), expected[i % 4]):
                    wrong.append(i)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
