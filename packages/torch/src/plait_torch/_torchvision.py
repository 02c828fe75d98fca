"""The operators that torchvision ships as C++ for PyTorch, under the names of its binary."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import plait
from plait_abi import operator
from plait_torch._refusal import refusing


def _cuda_version() -> int:
    return -1  # built without CUDA


def _same(name: str) -> Callable[..., Any]:
    """Return plait's operator, which has torchvision's arguments in torchvision's order."""
    return lambda *args, **options: operator(name)(*args, **options)


def _channel_mapping(result: Any) -> Any:
    """Return the channel of the images that each element of the result was computed of."""
    shape = result.shape[1:]
    channels = plait.arange(math.prod(shape), dtype=plait.int32)
    return channels.reshape((1, *shape)).expand(result.shape).contiguous()


def _with_mapping(name: str) -> Callable[..., Any]:
    """Return plait's operator with torchvision's second result, the channel of each element."""

    def call(*args: Any) -> Any:
        result = operator(name)(*args)
        return result, _channel_mapping(result)

    return call


# The gradients by the images: torchvision has the images' four sizes as arguments, plait as a list.
# Their scale, and the height and width of the pooled parts, are before the sizes.


def _roi_align_backward(grad: Any, rois: Any, *rest: Any) -> Any:
    bins, size, (sampling_ratio, aligned) = rest[:3], list(rest[3:7]), rest[7:]
    return operator("roi_align_backward")(grad, rois, size, *bins, sampling_ratio, aligned)


def _ps_roi_align_backward(grad: Any, rois: Any, channel_mapping: Any, *rest: Any) -> Any:
    *bins, sampling_ratio = rest[:4]
    call = operator("ps_roi_align_backward")
    return call(grad, rois, list(rest[4:]), *bins, sampling_ratio)


def _roi_pool_backward(grad: Any, rois: Any, argmax: Any, *rest: Any) -> Any:
    return operator("roi_pool_backward")(grad, rois, argmax, list(rest[3:]))


def _ps_roi_pool_backward(grad: Any, rois: Any, channel_mapping: Any, *rest: Any) -> Any:
    return operator("ps_roi_pool_backward")(grad, rois, list(rest[3:]), *rest[:3])


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
    grad: Any, input: Any, weight: Any, offset: Any, mask: Any, bias: Any, *rest: Any
) -> Any:
    arguments = (input, weight, offset, mask, bias)
    inputs = [x.detach().requires_grad_() for x in arguments]
    with plait.enable_grad():
        result = _deform_conv2d(*inputs, *rest)
    return plait.autograd.grad(result, inputs, grad, materialize_grads=True)


def _missing(name: str) -> Any:
    text = f"torch.ops.torchvision.{name} is not available: plait has no quantized tensors"
    return refusing(name, lambda: NotImplementedError(f"plait_torch: {text}"), "Raise.")


OPERATORS: dict[str, Callable[..., Any]] = {
    **{
        f"torchvision::{name}": _same(name)
        for name in ("nms", "box_iou_rotated", "roi_align", "roi_pool")
    },
    "torchvision::ps_roi_align": _with_mapping("ps_roi_align"),
    "torchvision::ps_roi_pool": _with_mapping("ps_roi_pool"),
    "torchvision::deform_conv2d": _deform_conv2d,
    "torchvision::_cuda_version": _cuda_version,
    "torchvision::_roi_align_backward": _roi_align_backward,
    "torchvision::_ps_roi_align_backward": _ps_roi_align_backward,
    "torchvision::_roi_pool_backward": _roi_pool_backward,
    "torchvision::_ps_roi_pool_backward": _ps_roi_pool_backward,
    "torchvision::_deform_conv2d_backward": _deform_conv2d_backward,
    **{f"torchvision::{name}": _missing(name) for name in ("qnms", "qroi_align")},
}
