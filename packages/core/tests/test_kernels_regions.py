"""Kernels of detection: large inputs, numbers that are no places, and any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_abi import operator

THREADS = (1, 2, 3, 7)


def boxes(rng: np.random.Generator, n: int, side: float) -> np.ndarray[Any, Any]:
    corners = rng.uniform(-4, side, (n, 2))
    return np.concatenate([corners, corners + rng.uniform(0, side / 3, (n, 2))], 1)


def calls() -> dict[str, tuple[Any, ...]]:
    rng = np.random.default_rng(0)

    def tensor(values: Any) -> Any:
        return pc.from_numpy(np.asarray(values).astype("float32"))

    images = tensor(rng.standard_normal((2, 72, 20, 33)))
    rois = tensor(np.concatenate([rng.integers(0, 2, (150, 1)), boxes(rng, 150, 33.0)], 1))
    grad = tensor(rng.standard_normal((150, 72, 3, 3)))
    small = tensor(rng.standard_normal((150, 8, 3, 3)))
    size, bins = [2, 72, 20, 33], (1.0, 3, 3)
    offset = tensor(rng.standard_normal((2, 36, 20, 33)) * 3)
    columns = tensor(rng.standard_normal((2, 72, 9, 660)))
    places = ([3, 3], [1, 1], [1, 1], [1, 1], False, False)
    argmax = pc.from_numpy(rng.integers(-1, 660, (150, 72, 3, 3)).astype("int32"))
    many = tensor(boxes(rng, 3000, 200.0))
    order = pc.from_numpy(rng.permutation(3000))
    turned = tensor(np.concatenate([boxes(rng, 90, 9.0), rng.uniform(0, 90, (90, 1))], 1))
    signal = tensor(rng.standard_normal((4, 6, 3000)))
    return {
        "nms_kept": (many, order, 0.1),
        "box_iou_rotated": (turned, turned),
        "roi_align": (images, rois, *bins, -1, True),
        "roi_align_backward": (grad, rois, size, *bins, 2, False),
        "ps_roi_align": (images, rois, *bins, 2),
        "ps_roi_align_backward": (small, rois, size, *bins, 2),
        "roi_pool": (images, rois, *bins),
        "roi_pool_backward": (grad, rois, argmax, size),
        "ps_roi_pool": (images, rois, *bins),
        "ps_roi_pool_backward": (small, rois, size, *bins),
        "deform_sample": (images, offset, *places),
        "deform_scatter": (columns, offset, size, *places),
        "all_pole_filter": (signal, tensor(rng.uniform(-0.3, 0.3, (6, 3)))),
    }


CALLS = calls()


@pytest.mark.parametrize("name", CALLS)
def test_the_bits_are_the_same_for_any_number_of_threads(name: str, by_threads: Any) -> None:
    def bits() -> tuple[bytes, ...]:
        results = operator(name)(*CALLS[name])
        results = results if isinstance(results, tuple) else (results,)
        assert all(np.isfinite(x.numpy()).all() and x.numpy().any() for x in results)
        return tuple(x.numpy().tobytes() for x in results)

    assert len(set(by_threads(bits, THREADS))) == 1


@pytest.mark.parametrize("name", ["roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, -3e38])
def test_places_that_are_no_places_see_nothing(name: str, value: float) -> None:
    images = pc.ones(1, 4, 6, 6)
    for column in range(1, 5):
        rois = pc.tensor([[0.0, 1.0, 1.0, 3.0, 3.0]])
        rois[0, column] = value
        rest = (2,) if "align" in name else ()
        for scale in (1.0, 1e10):
            result = operator(name)(images, rois, scale, 2, 2, *rest)
            result = result[0] if isinstance(result, tuple) else result
            assert ((result >= 0) & (result <= 1.00001)).all()


@pytest.mark.parametrize("side", [1e6, 1e12, 3e38])
def test_regions_far_larger_than_the_image_are_quick(side: float) -> None:
    """The samples outside of it are not visited."""
    images = pc.ones(1, 1, 4, 4)
    rois = pc.tensor([[0.0, -side / 2, -side / 2, side / 2, side / 2]])
    result = operator("roi_align")(images, rois, 1.0, 2, 2, -1, True)
    assert ((result >= 0) & (result <= 1.00001)).all()


def test_samples_are_one_for_each_pixel_of_a_large_region() -> None:
    images = pc.ones(1, 1, 4, 4)
    rois = pc.tensor([[0.0, -30.0, -30.0, 34.0, 34.0]])
    result = operator("roi_align")(images, rois, 1.0, 1, 1)
    # 64 x 64 samples at the middle of pixels, of which five in each direction are at most a pixel
    # outside
    assert result.item() == pytest.approx(25 / 64**2)


@pytest.mark.parametrize("image", [-1.0, 2.0, 1e30, np.nan, np.inf])
def test_images_that_are_not_there(image: float) -> None:
    rois = pc.tensor([[0.0, 0.0, 0.0, 1.0, 1.0], [image, 0.0, 0.0, 1.0, 1.0]])
    for name in ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool"):
        with pytest.raises(IndexError, match=r"`rois` must name images in \[0, 2\).*row 1"):
            operator(name)(pc.ones(2, 4, 3, 3), rois, 1.0, 2, 2)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_offsets_that_are_no_places_see_nothing(value: float) -> None:
    offset = pc.zeros(1, 2, 3, 3)
    offset[0, 1, 1, 1] = value
    result = operator("deform_conv2d")(pc.ones(1, 1, 3, 3), pc.ones(1, 1, 1, 1), offset)
    want = np.ones((1, 1, 3, 3))
    want[0, 0, 1, 1] = 0
    assert result.tolist() == want.tolist()


def test_infinite_pixels_stay_where_they_are() -> None:
    """A value outside of the image is 0, not a pixel with the weight 0."""
    image = pc.ones(1, 1, 3, 3)
    image[0, 0, 0, 0] = np.inf
    offset = pc.full((1, 2, 3, 3), 0.5)
    result = operator("deform_conv2d")(image, pc.ones(1, 1, 1, 1), offset).numpy()
    assert np.isinf(result[0, 0, 0, 0]) and np.isfinite(result).sum() == 8


def test_a_batch_is_its_images() -> None:
    """Large regions are computed a few at a time."""
    rng = np.random.default_rng(3)
    images = pc.from_numpy(rng.random((3, 64, 100, 100), "float32"))
    offset = pc.from_numpy(rng.random((3, 18, 98, 98), "float32"))
    mask = pc.from_numpy(rng.random((3, 9, 98, 98), "float32"))
    weight = pc.from_numpy(rng.random((2, 64, 3, 3), "float32"))
    call = operator("deform_conv2d")
    result = call(images, weight, offset, mask)
    for i in range(3):
        one = slice(i, i + 1)
        alone = call(images[one], weight, offset[one], mask[one])
        np.testing.assert_allclose(result[one].numpy(), alone.numpy(), rtol=1e-5)


def test_suppression_at_the_threshold() -> None:
    """A box is removed if the overlap is above the threshold, as a number of its own dtype."""
    pair = pc.tensor([[0.0, 0.0, 10.0, 1.0], [0.0, 0.0, 3.0, 1.0]])
    scores = pc.tensor([2.0, 1.0])
    for dtype in ("float32", "float64"):
        overlap = float(np.dtype(dtype).type(3) / np.dtype(dtype).type(10))
        for threshold, reference in (
            (overlap, [0, 1]),
            (np.nextafter(overlap, 0), [0]),
            (np.nextafter(overlap, 1), [0, 1]),
            (np.nan, [0, 1]),
        ):
            typed = (pair.to(getattr(pc, dtype)), scores.to(getattr(pc, dtype)))
            assert operator("nms")(*typed, threshold).tolist() == reference


def test_scores_that_are_no_numbers_come_first() -> None:
    pair = pc.tensor([[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0], [5.0, 5.0, 6.0, 6.0]])
    assert operator("nms")(pair, pc.tensor([2.0, np.nan, 3.0]), 0.5).tolist() == [1, 2]
    pair[1, 0] = np.nan  # a box that is none overlaps with nothing
    assert operator("nms")(pair, pc.tensor([2.0, np.nan, 3.0]), 0.5).tolist() == [1, 2, 0]


@pytest.mark.parametrize("name", ["roi_align", "ps_roi_pool", "deform_conv2d", "nms"])
def test_halves(name: str) -> None:
    rng = np.random.default_rng(1)
    images = rng.standard_normal((1, 4, 6, 6)).astype("float16")
    rois = np.array([[0, 0.5, 1, 4, 4.5]], "float16")
    arrays = {
        "roi_align": (images, rois, 1.0, 2, 2),
        "ps_roi_pool": (images, rois, 1.0, 2, 2),
        "deform_conv2d": (
            images,
            images[0, :, :1, :1][None],
            np.full((1, 2, 6, 6), 0.5, "float16"),
        ),
        "nms": (boxes(rng, 30, 9.0).astype("float16"), rng.random(30).astype("float16"), 0.3),
    }[name]

    def call(dtype: str) -> Any:
        args = [pc.from_numpy(x.astype(dtype)) if hasattr(x, "dtype") else x for x in arrays]
        return operator(name)(*args).numpy()

    np.testing.assert_allclose(call("float16"), call("float32"), rtol=4e-3, atol=4e-3)


def test_a_wrong_number_of_an_element_is_named() -> None:
    argmax = pc.full((1, 1, 1, 1), 16, dtype=pc.int32)
    with pytest.raises(IndexError, match=r"^roi_pool_backward: `argmax` .*\[-1, 16\)"):
        operator("roi_pool_backward")(pc.ones(1, 1, 1, 1), pc.zeros(1, 5), argmax, (1, 1, 4, 4))


def test_a_wrong_image_of_a_region_is_named() -> None:
    with pytest.raises(IndexError, match="row 1 has 3"):
        operator("roi_align")(pc.ones(1, 4, 4, 4), pc.tensor([[0.0] * 5, [3.0] * 5]), 1.0, 2, 2)
