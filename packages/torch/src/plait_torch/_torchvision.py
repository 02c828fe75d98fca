"""The operators that torchvision ships as C++ for PyTorch, under the names of its binary."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import plait
from plait_abi import operator
from plait_torch._refusal import refusing

__all__ = ["OPERATORS"]


def _cuda_version() -> int:
    return -1  # built without CUDA


def _nms(dets: Any, scores: Any, iou_threshold: float) -> Any:
    return operator("nms")(dets, scores, iou_threshold)


def _box_iou_rotated(boxes1: Any, boxes2: Any) -> Any:
    return operator("box_iou_rotated")(boxes1, boxes2)


def _roi_align(
    input: Any,
    rois: Any,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Any:
    call = operator("roi_align")
    return call(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned)


def _roi_align_backward(
    grad: Any,
    rois: Any,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Any:
    bins = (pooled_height, pooled_width)
    size = [batch_size, channels, height, width]
    call = operator("roi_align_backward")
    return call(grad, rois, size, spatial_scale, *bins, sampling_ratio, aligned)


def _channel_mapping(result: Any) -> Any:
    """Return the channel of the images that each element of the result was computed of."""
    shape = result.shape[1:]
    channels = plait.arange(math.prod(shape), dtype=plait.int32)
    return channels.reshape((1, *shape)).expand(result.shape).contiguous()


def _ps_roi_align(
    input: Any,
    rois: Any,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> Any:
    bins = (pooled_height, pooled_width)
    result = operator("ps_roi_align")(input, rois, spatial_scale, *bins, sampling_ratio)
    return result, _channel_mapping(result)


def _ps_roi_align_backward(
    grad: Any,
    rois: Any,
    channel_mapping: Any,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Any:
    bins = (pooled_height, pooled_width)
    size = [batch_size, channels, height, width]
    return operator("ps_roi_align_backward")(grad, rois, size, spatial_scale, *bins, sampling_ratio)


def _roi_pool(
    input: Any, rois: Any, spatial_scale: float, pooled_height: int, pooled_width: int
) -> Any:
    return operator("roi_pool")(input, rois, spatial_scale, pooled_height, pooled_width)


def _roi_pool_backward(
    grad: Any,
    rois: Any,
    argmax: Any,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Any:
    size = [batch_size, channels, height, width]
    return operator("roi_pool_backward")(grad, rois, argmax, size)


def _ps_roi_pool(
    input: Any, rois: Any, spatial_scale: float, pooled_height: int, pooled_width: int
) -> Any:
    call = operator("ps_roi_pool")
    result = call(input, rois, spatial_scale, pooled_height, pooled_width)
    return result, _channel_mapping(result)


def _ps_roi_pool_backward(
    grad: Any,
    rois: Any,
    channel_mapping: Any,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    batch_size: int,
    channels: int,
    height: int,
    width: int,
) -> Any:
    bins = (pooled_height, pooled_width)
    size = [batch_size, channels, height, width]
    return operator("ps_roi_pool_backward")(grad, rois, size, spatial_scale, *bins)


def _deform_conv2d(
    input: Any,
    weight: Any,
    offset: Any,
    mask: Any,
    bias: Any,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Any:
    return operator("deform_conv2d")(
        input,
        weight,
        offset,
        mask if use_mask else None,
        bias,
        [stride_h, stride_w],
        [pad_h, pad_w],
        [dilation_h, dilation_w],
        groups,
        offset_groups,
    )


def _deform_conv2d_backward(
    grad: Any,
    input: Any,
    weight: Any,
    offset: Any,
    mask: Any,
    bias: Any,
    *rest: Any,
) -> Any:
    given = (input, weight, offset, mask, bias)
    inputs = [x.detach().requires_grad_() for x in given]
    with plait.enable_grad():
        result = _deform_conv2d(*inputs, *rest)
    return plait.autograd.grad(result, inputs, grad, materialize_grads=True)


def _missing(name: str) -> Any:
    text = f"torch.ops.torchvision.{name} is not available: plait has no quantized tensors"
    return refusing(name, lambda: NotImplementedError(f"plait_torch: {text}"), "Raise.")


OPERATORS: dict[str, Callable[..., Any]] = {
    "torchvision::nms": _nms,
    "torchvision::box_iou_rotated": _box_iou_rotated,
    "torchvision::roi_align": _roi_align,
    "torchvision::ps_roi_align": _ps_roi_align,
    "torchvision::roi_pool": _roi_pool,
    "torchvision::ps_roi_pool": _ps_roi_pool,
    "torchvision::deform_conv2d": _deform_conv2d,
    "torchvision::_cuda_version": _cuda_version,
    "torchvision::_roi_align_backward": _roi_align_backward,
    "torchvision::_ps_roi_align_backward": _ps_roi_align_backward,
    "torchvision::_roi_pool_backward": _roi_pool_backward,
    "torchvision::_ps_roi_pool_backward": _ps_roi_pool_backward,
    "torchvision::_deform_conv2d_backward": _deform_conv2d_backward,
    **{f"torchvision::{name}": _missing(name) for name in ("qnms", "qroi_align")},
}
