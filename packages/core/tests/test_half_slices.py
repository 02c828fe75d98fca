"""Halves that are computed in float32 slice by slice: the values are those of whole tensors, and
the memory does not grow with the input.

Every operator whose definition says how its calls are cut is called on about 2 million halves,
with one thread.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator
from plait_ops import specs
from plait_ops.sampling import Sampler
from plait_ops.spec import Operator

pytestmark = pytest.mark.usefixtures("one_thread")

MEGABYTE = 1 << 20
SCRATCH = 14 * MEGABYTE  # a slice in float32, which kernels may copy once more

Shape = tuple[int, ...]
Call = tuple[list[Any], dict[str, Any]]

IMAGES, CHANNELS = (96, 16, 40, 40), 16
ROWS = (2000, 1100)
PAIR = [2, 2]
RELU = {"activation": "relu", "min_val": 0.0, "max_val": 0.0, "negative_slope": 0.0}
CONVOLUTION: dict[str, Any] = {"stride": PAIR, "padding": [1, 1], "dilation": [1, 1], "groups": 1}
MADE = (96, 8, 20, 20)

CALLS: dict[str, list[Call]] = {
    "conv2d": [([IMAGES, (8, 16, 3, 3), (8,)], CONVOLUTION)],
    "conv2d_activation": [([IMAGES, (8, 16, 3, 3), (8,)], CONVOLUTION | RELU)],
    "conv2d_add_activation": [
        ([IMAGES, (8, 16, 3, 3), (8,), PAIR, [1, 1], [1, 1], 1, MADE], RELU),
    ],
    "conv2d_backward_input": [
        ([MADE, (8, 16, 3, 3)], CONVOLUTION | {"size": list(IMAGES)}),
    ],
    "conv2d_backward_weight": [([MADE, IMAGES], CONVOLUTION | {"size": [8, 16, 3, 3]})],
    "avg_pool2d": [([IMAGES, PAIR], {})],
    "avg_pool2d_backward": [
        ([(96, 16, 20, 20), list(IMAGES), PAIR, PAIR, [0, 0], False, True], {}),
    ],
    "max_pool2d_with_indices": [([IMAGES, PAIR], {})],
    "native_max_pool2d": [([IMAGES, PAIR], {})],
    "native_batch_norm": [([IMAGES, (CHANNELS,), (CHANNELS,), 1e-5], {})],
    "native_batch_norm_activation": [([IMAGES, (CHANNELS,), (CHANNELS,), 1e-5], RELU)],
    "native_batch_norm_add_activation": [
        ([IMAGES, IMAGES, (CHANNELS,), (CHANNELS,), 1e-5], RELU),
    ],
    "batch_norm_backward": [([IMAGES, IMAGES, *[(CHANNELS,)] * 3, 1e-5], {})],
    "batch_norm_activation_backward": [([IMAGES, IMAGES, *[(CHANNELS,)] * 4, 1e-5], RELU)],
    "batch_norm_add_activation_backward": [
        ([IMAGES, IMAGES, IMAGES, *[(CHANNELS,)] * 3, 1e-5], RELU),
    ],
    "layer_norm_backward": [
        ([ROWS, ROWS, (2000, 1), (2000, 1), (1100,), [1100]], {}),
        ([(40, 50, 1100), (40, 50, 1100), (40, 50, 1), (40, 50, 1), (1100,), [1100]], {}),
    ],
    "layer_norm_backward_input": [([ROWS, ROWS, (2000, 1), (2000, 1), [1100]], {})],
    "bmm": [([(90, 100, 150), (90, 150, 100)], {})],
}
ALONG_DIM = {
    "softmax": 1,
    "log_softmax": 1,
    "softmax_backward": 2,
    "log_softmax_backward": 2,
    "logsumexp": 1,
    "kthvalue": 1,
    "median.dim": 1,
    "nanmedian.dim": 1,
    "mode": 1,
    "linear_recurrence": 2,
    "sort": 1,
    "topk": 1,
}
OTHER = {"kthvalue": {"k": 3}, "topk": {"k": 3}, "linear_recurrence": {"reverse": False}}
# Their indices and sizes must be those of a call forward, which the test makes.
AFTER = {"max_pool2d_backward", "native_max_pool2d_backward"}


def calls(name: str) -> Iterator[Call]:
    """Yield arguments: tuples are shapes of tensors."""
    for dim in (0, 1, 2):
        shape: Shape = ROWS if dim < 2 else (20, 50, 22, 100)
        if name in ALONG_DIM:
            dims = [dim] if name == "logsumexp" else dim
            yield [shape] * ALONG_DIM[name], {"dim": dims, **OTHER.get(name, {})}
    if name == "logsumexp":
        yield [(20, 50, 22, 100)], {"dim": [1, 3]}
        yield [(20, 50, 22, 100)], {"dim": [1], "keepdim": True}
    yield from CALLS.get(name, [])


def halves(value: Any, sampler: Sampler) -> Any:
    if not isinstance(value, tuple):
        return value
    positive = len(value) == 1  # variances are among the vectors of channels
    array = sampler.array(*value, low=0.5 if positive else -1.0, high=1.0)
    return pc.from_numpy(array).bfloat16()


def results(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def widened(value: Any) -> Any:
    is_half = isinstance(value, pc.Tensor) and value.dtype is pc.bfloat16
    return value.float() if is_half else value


def assert_same(name: str, args: list[Any], kwargs: dict[str, Any]) -> list[Any]:
    """Compare a call with that on float32, and its memory with its results."""
    wide = results(operator(name)(*map(widened, args), **kwargs))
    gc.collect()
    pc.empty_cache()
    pc.reset_peak_memory_stats("cpu")
    before = int(pc.memory_stats()["live_bytes"])
    got = results(operator(name)(*args, **kwargs))
    peak = int(pc.memory_stats()["peak_bytes"]) - before
    size = sum(each.numel() * each.itemsize for each in got)
    assert peak <= size + SCRATCH, (peak, size)
    for a, b in zip(got, wide, strict=True):
        assert a.shape == b.shape
        if a.dtype is not pc.bfloat16:  # indices
            assert pc.equal(a, b)
            continue
        ours, theirs = np.asarray(a.float().numpy()), np.asarray(b.float().numpy())
        scale = float(np.abs(theirs).max())
        np.testing.assert_allclose(ours, theirs, rtol=2e-2, atol=scale * 5e-3)
    return got


SLICED = [spec for spec in specs.all() if spec.slice_dims and spec.name not in AFTER]


@pytest.mark.parametrize("spec", SLICED, ids=lambda spec: spec.name)
def test_slices_have_the_values_of_the_whole(spec: Operator) -> None:
    count = 0
    for args, kwargs in calls(spec.name):
        sampler = Sampler(count)
        assert_same(spec.name, [halves(each, sampler) for each in args], kwargs)
        count += 1
    assert count, f"{spec.name} says how it is cut: add a call of it"


def test_slices_of_gradients_of_max_pooling() -> None:
    x = halves(IMAGES, Sampler(0))
    result, indices = assert_same("max_pool2d_with_indices", [x, PAIR], {})
    assert_same("max_pool2d_backward", [result, indices, list(IMAGES)], {})
    result, numbers = assert_same("native_max_pool2d", [x, PAIR], {})
    more = {"kernel_size": PAIR, "stride": PAIR, "padding": [0, 0], "dilation": [1, 1]}
    assert_same("native_max_pool2d_backward", [result, numbers, list(IMAGES)], more)


@pytest.mark.parametrize("name", ["softmax", "sort", "logsumexp"])
def test_slices_of_transposed_and_strided_halves(name: str) -> None:
    x = halves((1100, 4000), Sampler(0))
    dim: Any = [0] if name == "logsumexp" else 0
    for view in (x.t(), x[:, ::2], x.reshape(1100, 2000, 2).transpose(0, 1)):
        assert_same(name, [view], {"dim": dim})


def test_slices_write_into_a_strided_target() -> None:
    x = halves(ROWS, Sampler(0))
    target = pc.zeros(2000, 2200, dtype=pc.bfloat16)
    pc.softmax(x, 0, out=target[:, ::2])
    assert pc.equal(target[:, ::2], pc.softmax(x, 0)) and not target[:, 1::2].any()
