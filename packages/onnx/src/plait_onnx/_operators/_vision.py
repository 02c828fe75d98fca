"""Resizing, boxes and regions."""

from __future__ import annotations

from typing import Any

import plait_core as pc
from plait_abi import operator
from plait_onnx._builder import Builder, Unsupported, Value, is_fixed
from plait_onnx._table import lowers


@lowers("resample")
def resample(
    b: Builder,
    input: Value,
    dim: int,
    size: Any,
    step: Any,
    mode: str,
    align_corners: bool,
    antialias: bool,
) -> str:
    dim %= input.ndim
    result = b.results[0]
    old, new = input.shape[dim], result.shape[dim]
    attributes: dict[str, Any] = {"coordinate_transformation_mode": "half_pixel"}
    if mode in ("nearest", "nearest-exact"):
        attributes |= {"mode": "nearest", "nearest_mode": "round_prefer_ceil"}
        if mode == "nearest":
            attributes["coordinate_transformation_mode"] = "asymmetric"
            attributes["nearest_mode"] = "floor"
    else:
        attributes["mode"] = mode
        if align_corners:
            attributes["coordinate_transformation_mode"] = "align_corners"
        if mode == "cubic":
            attributes["cubic_coeff_a"] = -0.75
        if antialias:  # programs differ in it
            return _weighted(b, input, dim, size, step, mode, align_corners)
    ratio = step if isinstance(step, float) else float(old) / new
    if align_corners or abs(ratio * new - old) < 1e-6 * old:
        sizes = b.sizes_of(input)
        sizes[dim] = size
        return b.op("Resize", input, None, None, b.sizes_tensor(sizes), **attributes)
    if not isinstance(step, (int, float)):
        raise Unsupported("resizing by a factor that depends on free sizes")
    scales = [1.0] * input.ndim
    scales[dim] = 1 / step
    return b.op("Resize", input, None, b.constant(scales, "float32"), **attributes)


def _weighted(
    b: Builder, x: Value, dim: int, size: Any, step: Any, mode: str, align_corners: bool
) -> str:
    """Return the product of a dimension with the matrix of the weights that it is resized by."""
    if not is_fixed([x.dims[dim], size]) or not isinstance(step, (int, float)):
        raise Unsupported("resizing of free sizes with `antialias`")
    eye = pc.eye(x.shape[dim], dtype=pc.float64)
    weights = operator("resample")(eye, 0, size, step, mode, align_corners, True)
    order = [*(axis for axis in range(x.ndim) if axis != dim), dim]
    result = b.op("MatMul", b.permute(x, order), b.constant(weights.t().numpy(), x.dtype))
    return b.permute(result, [*range(dim), x.ndim - 1, *range(dim, x.ndim - 1)])


@lowers("nms")
def nms(b: Builder, boxes: Value, scores: Value, iou_threshold: float) -> str:
    """The indices of the boxes that are kept, the third column of what the operator finds."""
    wide = b.unsqueeze(b.cast(boxes, "float32"), 0)
    rated = b.reshape(b.cast(scores, "float32"), [1, 1, -1])
    count = b.sizes_tensor([b.size(scores, 0)])
    threshold = b.constant([float(iou_threshold)], "float32")
    found = b.op("NonMaxSuppression", wide, rated, count, threshold)
    return b.op("Gather", found, b.constant(2), axis=1)


@lowers("roi_align")
def roi_align(
    b: Builder,
    input: Value,
    rois: Value,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> str:
    batch = b.cast(b.op("Gather", rois, b.constant(0), axis=1), "int64")
    boxes = b.slice(rois, 1, 1, 5)
    return b.op(
        "RoiAlign",
        input,
        boxes,
        batch,
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
        output_height=pooled_height,
        output_width=pooled_width,
        sampling_ratio=max(sampling_ratio, 0),
        spatial_scale=float(spatial_scale),
    )


@lowers("roi_pool")
def roi_pool(
    b: Builder,
    input: Value,
    rois: Value,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
) -> tuple[str, str | None]:
    if b.results[1] is not None:
        raise Unsupported("the places of the largest elements of roi_pool")
    shape = [pooled_height, pooled_width]
    result = b.op("MaxRoiPool", input, rois, pooled_shape=shape, spatial_scale=spatial_scale)
    return result, None
