"""Boxes and the pooling of regions on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from on_both import check, wait_for

import plait_core as pc
from plait_abi import operator

DTYPES = ["float32", "float64", "float16", "bfloat16"]
TOLERANCE = {"float32": 1e-5, "float64": 1e-12, "float16": 2e-3, "bfloat16": 1.6e-2}


def boxes(n: int, seed: int, size: float = 40.0) -> Any:
    """Return boxes (x1, y1, x2, y2) with whole corners, so that many overlaps are equal."""
    rng = np.random.default_rng(seed)
    corner = rng.integers(0, int(size), (n, 2))
    return pc.tensor(np.concatenate([corner, corner + rng.integers(0, 12, (n, 2))], 1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 200])
def test_suppression(n: int, dtype: str) -> None:
    x = boxes(n, n).to(getattr(pc, dtype))
    scores = pc.tensor(np.random.default_rng(1).random(n)).to(getattr(pc, dtype))
    for threshold in (0.0, 0.3, 0.5, 1.0):
        check(lambda b, s, t=threshold: operator("nms")(b, s, t), x, scores)


def test_suppression_of_more_boxes_than_are_compared_at_once() -> None:
    x = boxes(3100, 3, 400.0).float()
    scores = pc.tensor(np.random.default_rng(4).random(3100)).float()
    check(lambda b, s: operator("nms")(b, s, 0.4), x, scores)


def test_a_wrong_order_of_boxes() -> None:
    x, order = boxes(3, 0).float().to("cuda"), pc.tensor([0, 3, 1]).to("cuda")
    with pytest.raises(IndexError, match=r"nms_kept: index 3 is .*`order`"):
        wait_for(operator("nms_kept"), x, order, 0.5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rotated_overlaps(dtype: str) -> None:
    rng = np.random.default_rng(5)

    def some(n: int) -> Any:
        x = np.concatenate([rng.normal(size=(n, 2)), rng.uniform(0, 3, (n, 2))], 1)
        x = np.concatenate([x, rng.uniform(-200, 200, (n, 1))], 1)
        x[::7, 2] = 0  # without area
        return pc.tensor(x).to(getattr(pc, dtype))

    one = some(20)
    for two in (some(33), one, some(0)):
        check(operator("box_iou_rotated"), one, two, tolerance=1e-6)


def regions(images: int, n: int, dtype: str, seed: int = 0) -> Any:
    """Return regions of images of about 20 x 30 pixels, some of them outside or inside out."""
    rng = np.random.default_rng(seed)
    numbers = np.arange(n) % images + rng.choice([0.0, 0.25], n)
    x = rng.uniform(-8, 50, (n, 4)).round(2)
    x[::3, 2:] = x[::3, :2] + rng.uniform(0, 9, (len(x[::3]), 2)).round(2)
    return pc.tensor(np.concatenate([numbers[:, None], x], 1)).to(getattr(pc, dtype))


ALIGN = [(0.7, 3, 2, 2, True), (0.5, 2, 3, 0, False), (1.0, 1, 1, 1, True), (0.25, 4, 4, 0, True)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("numbers", ALIGN)
def test_aligned_regions(numbers: tuple[Any, ...], dtype: str) -> None:
    rng, kind = np.random.default_rng(1), getattr(pc, dtype)
    x = pc.tensor(rng.normal(size=(2, 11, 20, 33))).to(kind)
    rois = regions(2, 13, dtype)
    check(lambda a, b: operator("roi_align")(a, b, *numbers), x, rois)
    grad = pc.tensor(rng.normal(size=(13, 11, *numbers[1:3]))).to(kind)
    back = operator("roi_align_backward")
    check(lambda a, b: back(a, b, [2, 11, 20, 33], *numbers), grad, rois)


@pytest.mark.parametrize("dtype", DTYPES)
def test_position_sensitive_regions(dtype: str) -> None:
    rng, kind = np.random.default_rng(2), getattr(pc, dtype)
    size, rois = [3, 12, 18, 17], regions(3, 10, dtype, 1)
    x = pc.tensor(rng.normal(size=size)).to(kind)
    grad = pc.tensor(rng.normal(size=(10, 2, 2, 3))).to(kind)
    for name, numbers in (
        ("ps_roi_align", (0.6, 2, 3, 2)),
        ("ps_roi_align", (0.6, 2, 3, 0)),
        ("ps_roi_pool", (0.4, 2, 3)),
    ):
        pool, back = operator(name), operator(f"{name}_backward")
        check(lambda a, b, pool=pool, more=numbers: pool(a, b, *more), x, rois)
        check(lambda a, b, back=back, more=numbers: back(a, b, size, *more), grad, rois)


@pytest.mark.parametrize("dtype", DTYPES)
def test_largest_pixels_of_regions(dtype: str) -> None:
    rng, kind = np.random.default_rng(3), getattr(pc, dtype)
    values = rng.integers(-5, 5, (2, 4, 18, 17)).astype("float64")  # many are equal
    values[0, 1, 3, 4] = np.nan
    x, rois = pc.tensor(values).to(kind), regions(2, 9, dtype, 2)
    check(lambda a, b: operator("roi_pool")(a, b, 0.5, 3, 2), x, rois)
    places = operator("roi_pool")(x, rois, 0.5, 3, 2)[1]
    grad = pc.tensor(rng.normal(size=(9, 4, 3, 2))).to(kind)
    check(
        lambda a, b, c: operator("roi_pool_backward")(a, b, c, [2, 4, 18, 17]),
        *(grad, rois, places),
        tolerance=4 * TOLERANCE[dtype],
    )


@pytest.mark.parametrize("number", [-1.0, 2.0, float("nan")])
@pytest.mark.parametrize("name", ["roi_align", "roi_pool", "ps_roi_pool"])
def test_a_region_of_no_image(name: str, number: float) -> None:
    x = pc.zeros(2, 4, 5, 5, device="cuda")
    rois = pc.tensor([[0.0, 0.0, 0.0, 2.0, 2.0], [number, 0.0, 0.0, 2.0, 2.0]]).to("cuda")
    more = (2, False) if name == "roi_align" else ()
    with pytest.raises(IndexError, match=rf"{name}: index {number:.0f} is .*`rois`"):
        wait_for(operator(name), x, rois, 1.0, 2, 2, *more)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("along", [(False, False), (True, False), (False, True), (True, True)])
def test_deformed_places(along: tuple[bool, bool], dtype: str) -> None:
    rng, kind = np.random.default_rng(6), getattr(pc, dtype)
    numbers = ([3, 2], [2, 1], [1, 0], [1, 2], *along)
    x = pc.tensor(rng.normal(size=(2, 4, 9, 8))).to(kind)
    offset = rng.normal(size=(2, 24, 5, 6)) * 3
    offset[0, 0, 0, :3] = np.nan, np.inf, -1e9
    shifts = pc.tensor(offset).to(kind)
    sample, scatter = operator("deform_sample"), operator("deform_scatter")
    check(lambda a, b: sample(a, b, *numbers), x, shifts)
    grad = pc.tensor(rng.normal(size=(2, 4, 6, 30))).to(kind)
    check(
        lambda a, b: scatter(a, b, [2, 4, 9, 8], *numbers),
        *(grad, shifts),
        tolerance=4 * TOLERANCE[dtype],
    )


def test_a_deformed_convolution() -> None:
    rng = np.random.default_rng(7)
    shapes = [(3, 4, 9, 8), (6, 2, 3, 3), (3, 36, 9, 8), (3, 18, 9, 8), (6,)]
    operands = [pc.tensor(rng.normal(size=shape)).float() for shape in shapes]

    def run(*inputs: Any) -> Any:
        inputs = tuple(x.detach().requires_grad_() for x in inputs)
        deformed = operator("deform_conv2d")
        y = deformed(*inputs, padding=1, groups=2, offset_groups=2)
        y.square().sum().backward()
        return y.detach(), *(x.grad for x in inputs)

    check(run, *operands, tolerance=1e-4)
