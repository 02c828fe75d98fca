"""Convolutions and pooling on the device."""

import numpy as np
import pytest
from on_both import check, random

import plait_core as pc
from plait_abi import operator
from plait_cuda import cudnn

FLOATS = [pc.float32, pc.float64, pc.float16, pc.bfloat16]

BY_INPUT, BY_WEIGHT = operator("conv2d_backward_input"), operator("conv2d_backward_weight")
# input, filters, window, stride, padding, dilation, groups
CASES = [
    ((1, 1, 3, 3), 1, (2, 2), (1, 1), (0, 0), (1, 1), 1),
    ((2, 3, 8, 9), 4, (3, 3), (2, 1), (1, 2), (1, 2), 1),
    ((2, 8, 9, 9), 8, (3, 3), (2, 2), (1, 1), (1, 1), 8),
    ((2, 16, 12, 12), 20, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    ((2, 16, 13, 11), 24, (3, 3), (2, 2), (1, 1), (1, 1), 2),
    ((3, 20, 16, 1), 36, (5, 1), (1, 1), (2, 0), (1, 1), 1),
    ((3, 20, 16, 16), 36, (1, 1), (1, 1), (0, 0), (1, 1), 1),
    ((0, 3, 8, 8), 4, (3, 3), (1, 1), (0, 0), (1, 1), 1),
]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture(params=["cudnn", "own kernels"])
def implementation(request):
    """Convolutions go to cuDNN's stand-in, and to our own kernels."""
    cudnn.set_enabled(request.param == "cudnn")
    yield
    cudnn.set_enabled(True)


both = pytest.mark.usefixtures("implementation")


def assert_all_passes(rng, images, filters, window, dtype, *more):
    x = random(rng, *images, dtype=dtype)
    weight = random(rng, filters, images[1] // more[-1], *window, dtype=dtype)
    bias = random(rng, filters, dtype=dtype)
    rest = [list(each) for each in more[:-1]] + [more[-1]]
    check(operator("conv2d"), x, weight, bias, *rest)
    shape = pc.conv2d(x, weight, None, *rest).shape
    grad = random(rng, *shape, dtype=dtype) / 8
    check(BY_INPUT, grad, weight, list(images), *rest)
    check(BY_WEIGHT, grad, x, list(weight.shape), *rest)


@both
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("case", CASES)
def test_convolution(rng, case, dtype):
    images, filters, window, *more = case
    assert_all_passes(rng, images, filters, window, dtype, *more)


@both
def test_large_tiles(rng):
    rest = [[1, 1], [1, 1], [1, 1], 1]
    check(operator("conv2d"), random(rng, 2, 1, 64, 80), random(rng, 130, 1, 3, 3), None, *rest)
    grad, weight = random(rng, 2, 2, 64, 80), random(rng, 2, 130, 3, 3)
    check(BY_INPUT, grad, weight, [2, 130, 64, 80], *rest)


@both
def test_large_tiles_of_weights(rng):
    # 128 groups of 65 filters and 11 channels, which fill blocks of 128 x 128
    grad, x = random(rng, 1, 128 * 65, 4, 4), random(rng, 1, 128 * 11, 5, 6)
    check(BY_WEIGHT, grad, x, [128 * 65, 11, 2, 3], [1, 1], [0, 0], [1, 1], 128)


@both
def test_any_strides(rng):
    x = random(rng, 2, 9, 9, 16).permute(0, 3, 1, 2)
    weight = random(rng, 3, 3, 20, 16).permute(2, 3, 0, 1)
    rest = [[1, 1], [1, 1], [1, 1], 1]
    check(operator("conv2d"), x, weight, random(rng, 40)[::2], *rest)
    grad = random(rng, 2, 9, 9, 20).permute(0, 3, 1, 2)
    check(BY_INPUT, grad, weight, list(x.shape), *rest)
    check(BY_WEIGHT, grad, x, list(weight.shape), *rest)


@both
@pytest.mark.parametrize("name", ["relu", "hardtanh", "leaky_relu", "silu", "hardswish"])
def test_activation(rng, name):
    x, weight, bias = random(rng, 2, 16, 12, 12), random(rng, 20, 16, 3, 3) / 16, random(rng, 20)
    rest = [[1, 1], [1, 1], [1, 1], 1, name, -0.5, 0.7, 0.1]
    check(operator("conv2d_activation"), x, weight, bias, *rest)
    rest[4:4] = [random(rng, 2, 20, 12, 12)]  # its parts run
    check(operator("conv2d_add_activation"), x, weight, bias, *rest)


# images, window, stride, padding, dilation, ceil_mode
POOLS = [
    ((2, 3, 8, 9), [2, 2], None, [0, 0], [1, 1], False),
    ((3, 10, 11), [3, 2], [2, 1], [1, 1], [2, 1], True),
    ((1, 2, 5, 5), [3, 3], [1, 1], [1, 1], [1, 1], False),
    ((2, 2, 7, 7), [3, 3], [3, 3], [1, 1], [2, 2], True),
    ((0, 2, 7, 7), [2, 2], [1, 1], [0, 0], [1, 1], False),
]


@pytest.mark.parametrize("dtype", [*FLOATS, pc.int8, pc.uint8, pc.int64], ids=str)
@pytest.mark.parametrize("case", POOLS)
def test_max_pool(rng, case, dtype):
    images, window, stride, padding, dilation, _ = case
    x = random(rng, *images, dtype=dtype)
    for name in ("max_pool2d", "native_max_pool2d", "max_pool2d_with_indices"):
        check(operator(name), x, *case[1:], tolerance=0)
    if dtype.is_floating_point:
        made, numbers = operator("native_max_pool2d")(x, *case[1:])
        rest = [list(images), window, stride or window, padding, dilation]
        grad = random(rng, *made.shape, dtype=dtype)
        check(operator("native_max_pool2d_backward"), grad, numbers, *rest)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("count_padding", [True, False])
@pytest.mark.parametrize("case", POOLS)
def test_average_pool(rng, case, dtype, count_padding):
    images, window, stride, padding, _, ceil_mode = case
    if any(2 * p > w for p, w in zip(padding, window, strict=True)):
        pytest.skip("a padding of more than half a window is refused")
    x = random(rng, *images, dtype=dtype)
    rest = [padding, ceil_mode, count_padding]
    check(operator("avg_pool2d"), x, window, stride, *rest)
    shape = operator("avg_pool2d")(x, window, stride, *rest).shape
    grad = random(rng, *shape, dtype=dtype)
    check(operator("avg_pool2d_backward"), grad, list(images), window, stride or window, *rest)


def test_nan_is_the_largest(rng):
    x = random(rng, 2, 3, 8, 8)
    x[0, 0, 2, 2] = float("nan")
    rest = [[3, 3], [1, 1], [1, 1], [1, 1], False]
    check(operator("max_pool2d_with_indices"), x, *rest, tolerance=0)


def test_resampled_images_have_the_strides_of_those_of_the_cpu(rng):
    image = random(rng, 2, 3, 4, 5)
    for x in (image, image.contiguous(memory_format=pc.channels_last)):
        for mode in ("nearest", "linear", "cubic"):
            for dim in (1, 2, 3):
                made = operator("resample")(x, dim, 7, 0.7, mode)
                assert operator("resample")(x.cuda(), dim, 7, 0.7, mode).stride() == made.stride()
