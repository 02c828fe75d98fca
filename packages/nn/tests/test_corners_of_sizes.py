"""Extreme sizes: empty bags, windows larger than the image, results larger than memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

import plait_core as pc
import plait_nn.functional as F


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag_without_bags(mode: str) -> None:
    table, none = pc.ones(3, 2), pc.zeros(0, dtype=pc.int64)
    ends = pc.tensor([0])
    result = F.embedding_bag(none, table, ends, mode=mode, include_last_offset=True)
    assert tuple(result.shape) == (0, 2)
    assert tuple(F.embedding_bag(none, table, none, mode=mode).shape) == (0, 2)
    one = pc.tensor([1])
    with pytest.raises(ValueError, match="begin with 0"):
        F.embedding_bag(one, table, one, mode=mode, include_last_offset=True)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag_of_empty_bags(mode: str) -> None:
    none, starts = pc.zeros(0, dtype=pc.int64), pc.tensor([0, 0])
    result = F.embedding_bag(none, pc.ones(3, 2), starts, mode=mode)
    assert result.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_the_last_offset_is_the_end_of_the_input() -> None:
    three = pc.tensor([0, 1, 2])
    with pytest.raises(ValueError, match="the last of `offsets` must be 3"):
        F.embedding_bag(three, pc.ones(3, 2), pc.tensor([0]), include_last_offset=True)


def test_a_dilated_window_that_sees_nothing() -> None:
    """As in PyTorch its value is minus infinity; it has no index and gets no gradient."""
    x = pc.tensor([[[5.0]]], requires_grad=True)
    value, indices = F.max_pool1d(x, 2, 3, 1, 2, return_indices=True)
    assert value.tolist() == [[[float("-inf")]]] and indices.tolist() == [[[-1]]]
    value.backward(pc.ones_like(value))
    assert x.grad is not None and x.grad.tolist() == [[[0.0]]]
    volume = pc.arange(2.0).reshape(1, 1, 2, 1, 1)
    result, indices = F.max_pool3d(
        volume, (1, 2, 1), (1, 3, 1), (0, 1, 0), (1, 2, 1), return_indices=True
    )
    assert result.flatten().tolist() == [float("-inf")] * 2 and indices.flatten().tolist() == [
        -1,
        -1,
    ]


def test_interpolate_nearest_to_the_same_and_the_double_size() -> None:
    """The given factor selects the elements, except in small images, as in PyTorch."""
    x = pc.arange(5.0).reshape(1, 1, 5)
    line = F.interpolate(x, scale_factor=1.1, mode="nearest")
    assert line.flatten().tolist() == [0, 0, 1, 2, 3]
    image = x.reshape(1, 1, 1, 5)
    same = F.interpolate(image, scale_factor=1.1, mode="nearest")
    assert same.flatten().tolist() == [0, 1, 2, 3, 4]
    double = F.interpolate(image, scale_factor=(1, 2.15), mode="nearest")
    assert double.flatten().tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert F.interpolate(x, scale_factor=1.1, mode="linear").tolist() == x.tolist()
    with pytest.raises(ValueError, match="recompute_scale_factor"):
        F.interpolate(x, 5, recompute_scale_factor=True)


def test_windows_larger_than_the_image() -> None:
    """With ceil_mode a window may begin in the image and end far outside."""
    x = pc.tensor([[[[1.0, 3.0, 2.0]]]])
    values, indices = F.max_pool2d(x, (2, 2), 2, ceil_mode=True, return_indices=True)
    assert values.tolist() == [[[[3.0, 2.0]]]] and indices.tolist() == [[[[1, 2]]]]
    assert F.avg_pool2d(x, (2, 2), 2, ceil_mode=True).tolist() == [[[[2.0, 2.0]]]]
    assert F.max_pool1d(x[0], 5, 3, ceil_mode=True).tolist() == [[[3.0]]]
    volume = x.reshape(1, 1, 1, 1, 3)
    assert F.max_pool3d(volume, (2, 2, 3), 3, ceil_mode=True).tolist() == [[[[[3.0]]]]]
    with pytest.raises(pc.ShapeError, match="must fit"):
        F.max_pool2d(x, (3, 3), 1, ceil_mode=True)


@pytest.mark.parametrize("pool", [F.adaptive_max_pool1d, F.adaptive_avg_pool1d])
def test_adaptive_pools_of_no_windows(pool: Any) -> None:
    assert tuple(pool(pc.ones(2, 3, 4), 0).shape) == (2, 3, 0)
    with pytest.raises(ValueError, match="output_size"):
        pool(pc.ones(2, 3, 4), -1)


def test_adaptive_pool_of_volumes_without_windows() -> None:
    assert tuple(F.adaptive_avg_pool3d(pc.ones(2, 3, 4, 5, 6), 0).shape) == (2, 3, 0, 0, 0)
    assert tuple(F.adaptive_avg_pool3d(pc.ones(3, 4, 5, 6), (2, 0, 3)).shape) == (3, 2, 0, 3)


HUGE = 2**42
CALLS: dict[str, Callable[[], Any]] = {
    "adaptive_max_pool1d": lambda: F.adaptive_max_pool1d(pc.zeros(1, 1, 4), HUGE),
    "adaptive_max_pool2d": lambda: F.adaptive_max_pool2d(pc.zeros(1, 1, 4, 4), (2, HUGE)),
    "adaptive_avg_pool1d": lambda: F.adaptive_avg_pool1d(pc.zeros(1, 1, 4), HUGE),
    "nearest": lambda: F.interpolate(pc.zeros(1, 1, 4), HUGE),
    "linear": lambda: F.interpolate(pc.zeros(1, 1, 4), HUGE, mode="linear"),
    "bicubic": lambda: F.interpolate(pc.zeros(1, 1, 4, 4), (4, HUGE), mode="bicubic"),
    "antialias": lambda: F.interpolate(
        pc.zeros(1, 1, 4, 4), (4, HUGE), mode="bilinear", antialias=True
    ),
    "pad": lambda: F.pad(pc.zeros(1, 1, 4), (0, HUGE)),
    "pad reflect": lambda: F.pad(pc.zeros(1, 1, 4), (0, HUGE), mode="replicate"),
    "one_hot": lambda: F.one_hot(pc.tensor([0]), HUGE),
    "repeat": lambda: pc.zeros(3).repeat(HUGE),
    "tile": lambda: pc.tile(pc.zeros(3), (HUGE,)),
    "repeat_interleave": lambda: pc.repeat_interleave(pc.zeros(3), HUGE),
    "arange": lambda: pc.arange(HUGE),
    "linspace": lambda: pc.linspace(0, 1, HUGE),
    "logspace": lambda: pc.logspace(0, 1, HUGE),
    "eye": lambda: pc.eye(2**21),
    "bincount": lambda: pc.bincount(pc.tensor([1]), minlength=HUGE),
    "histc": lambda: pc.histc(pc.ones(3), HUGE),
    "vander": lambda: pc.vander(pc.ones(3), HUGE),
    "tril_indices": lambda: pc.tril_indices(2**21, 2**21),
    "bartlett_window": lambda: pc.bartlett_window(HUGE),
    "kaiser_window": lambda: pc.kaiser_window(HUGE),
    "randperm": lambda: pc.randperm(HUGE),
    "combinations": lambda: pc.combinations(pc.arange(2_000_000), 2),
    "cartesian_prod": lambda: pc.cartesian_prod(pc.arange(2_000_000), pc.arange(2_000_000)),
    "fft": lambda: pc.fft.fft(pc.ones(3), HUGE),
    "tensor_split": lambda: pc.tensor_split(pc.ones(3), 2**22 + 1),
    "chunk": lambda: pc.chunk(pc.ones(3), HUGE),
    "upsample": lambda: F.upsample(pc.zeros(1, 1, 4), HUGE),
    "diag_embed": lambda: pc.diag_embed(pc.ones(3), HUGE),
    "fold": lambda: F.fold(pc.zeros(1, 4, 1), (HUGE, 2), (2, 2)),
    "unfold": lambda: F.unfold(pc.zeros(1, 1, 4, 4), (2, 2), padding=2**30),
    "pad of two dimensions": lambda: F.pad(pc.zeros(1, 1, 4, 4), (2**30,) * 4),
    "affine_grid": lambda: F.affine_grid(pc.zeros(1, 2, 3), [1, 1, HUGE, 2], False),
    "combinations of many": lambda: pc.combinations(pc.arange(60), 30),
}


@pytest.mark.parametrize("name", CALLS)
def test_numbers_that_are_too_large(name: str) -> None:
    """The memory of a result is reserved before its computation begins."""
    begin = time.monotonic()
    try:
        CALLS[name]()
    except (MemoryError, ValueError, RuntimeError) as error:
        assert str(error)
    assert time.monotonic() - begin < 100


IMAGES, VOLUMES = (3, 6, 8), (2, 3, 6, 5)
OF_BATCHES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "bilinear": (lambda x, y: F.bilinear(x, y, pc.ones(2, 3, 4)), [(3,), (4,)]),
    "linear": (lambda x: F.linear(x, pc.ones(2, 3)), [(3,)]),
    "grid_sample": (lambda x, g: F.grid_sample(x, g, align_corners=False), [IMAGES, (4, 5, 2)]),
    "grid_sample 3d": (
        lambda x, g: F.grid_sample(x, g, align_corners=False),
        [VOLUMES, (2, 4, 5, 3)],
    ),
    "max_pool1d": (lambda x: F.max_pool1d(x, 2, return_indices=True), [(3, 6)]),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2, return_indices=True), [IMAGES]),
    "max_pool3d": (lambda x: F.max_pool3d(x, 2, return_indices=True), [VOLUMES]),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), [IMAGES]),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2), [VOLUMES]),
    "lp_pool2d": (lambda x: F.lp_pool2d(x, 2, 2), [IMAGES]),
    "adaptive_max_pool2d": (
        lambda x: F.adaptive_max_pool2d(x, 2, return_indices=True),
        [IMAGES],
    ),
    "adaptive_max_pool3d": (
        lambda x: F.adaptive_max_pool3d(x, 2, return_indices=True),
        [VOLUMES],
    ),
    "adaptive_avg_pool3d": (lambda x: F.adaptive_avg_pool3d(x, 2), [VOLUMES]),
    "conv1d": (lambda x: F.conv1d(x, pc.ones(4, 3, 3)), [(3, 6)]),
    "conv2d": (lambda x: F.conv2d(x, pc.ones(4, 3, 3, 3), padding=1), [IMAGES]),
    "conv3d": (lambda x: F.conv3d(x, pc.ones(4, 2, 3, 3, 3)), [VOLUMES]),
    "conv_transpose2d": (lambda x: F.conv_transpose2d(x, pc.ones(3, 4, 3, 3)), [IMAGES]),
    "unfold": (lambda x: F.unfold(x, 2), [IMAGES]),
    "fold": (lambda x: F.fold(x, (4, 4), 2), [(8, 9)]),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), [IMAGES]),
    "interpolate bicubic": (lambda x: F.interpolate(x, (5, 7), mode="bicubic"), [IMAGES]),
    "pad": (lambda x: F.pad(x, (1, 1, 1, 1), "reflect"), [IMAGES]),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), [(4, 3, 3)]),
    "affine_grid": (lambda x: F.affine_grid(x, [x.shape[0], 1, 3, 4], False), [(2, 3)]),
    "layer_norm": (lambda x: F.layer_norm(x, (6, 8)), [IMAGES]),
    "group_norm": (lambda x: F.group_norm(x, 3), [IMAGES]),
    "local_response_norm": (lambda x: F.local_response_norm(x, 2), [IMAGES]),
    "glu": (lambda x: F.glu(x, -1), [IMAGES]),
    "cosine_similarity": (lambda x, y: F.cosine_similarity(x, y), [(3,), (3,)]),
    "scaled_dot_product_attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
        [(2, 4, 8), (2, 5, 8), (2, 5, 8)],
    ),
}


@pytest.mark.parametrize("name", list(OF_BATCHES))
def test_a_batch_of_nothing_gives_nothing(name: str) -> None:
    """The results of an empty batch have 0 samples of the usual sizes."""
    function, shapes = OF_BATCHES[name]
    sizes = []
    for batch in (2, 0):
        inputs = [pc.ones(batch, *shape).requires_grad_() for shape in shapes]
        result = function(*inputs)
        result = result if isinstance(result, tuple) else (result,)
        result[0].sum().backward()
        assert all(x.grad is not None and x.grad.shape == x.shape for x in inputs)
        sizes.append([tuple(each.shape)[1:] for each in result])
        assert all(each.shape[0] == batch for each in result)
    assert sizes[0] == sizes[1]


def test_areas_of_no_size() -> None:
    """A mean over areas may have no results, as in PyTorch; other modes need one."""
    x = pc.ones(1, 2, 4, 4)
    assert F.interpolate(x, (2, 0), mode="area").shape == (1, 2, 2, 0)
    assert F.interpolate(x, scale_factor=0.1, mode="area").shape == (1, 2, 0, 0)
    with pytest.raises(ValueError, match="sizes must be positive"):
        F.interpolate(x, (2, 0), mode="bilinear")
    with pytest.raises(ValueError, match="sizes must be positive"):
        F.interpolate(pc.ones(1, 2, 0), 1, mode="area")
