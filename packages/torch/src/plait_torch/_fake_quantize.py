"""Rounding of floats to the values that quantized numbers have: `torch.fake_quantize_*`."""

from __future__ import annotations

from typing import Any

import plait

__all__ = ["fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine"]


class _FakeQuantize(plait.autograd.Function):
    """Rounding whose derivative is 1 within the range of the quantized numbers, and 0 outside."""

    @staticmethod
    def forward(
        ctx: Any, input: plait.Tensor, scale: Any, zero_point: Any, low: int, high: int
    ) -> plait.Tensor:
        levels = plait.round(input * (1.0 / scale)) + zero_point
        ctx.save_for_backward((levels >= low) & (levels <= high))
        result: plait.Tensor = (levels.clamp(low, high) - zero_point) * scale
        return result.to(input.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: plait.Tensor) -> tuple[Any, ...]:
        (inside,) = ctx.saved_tensors
        return gradient * inside, None, None, None, None


def _check_range(name: str, quant_min: int, quant_max: int) -> None:
    if quant_min > quant_max:
        raise plait.ArgumentError(
            f"{name}: `quant_min` must not be larger than `quant_max`; got {quant_min} and "
            f"{quant_max}"
        )


def fake_quantize_per_tensor_affine(
    input: plait.Tensor, scale: Any, zero_point: Any, quant_min: int, quant_max: int
) -> plait.Tensor:
    r"""Round each element to a value of a quantized tensor, without changing the dtype.

    .. math:: (\mathrm{clamp}(\mathrm{round}(x / s) + z,\ q_{min},\ q_{max}) - z)\, s

    The derivative is 1 where nothing is cut off, and 0 elsewhere.

    Args:
        input: floating-point numbers of any shape.
        scale: the distance of neighbouring values: a number, or a tensor of one element.
        zero_point: the quantized number that means 0, likewise.
        quant_min: the least quantized number.
        quant_max: the largest quantized number.

    Raises:
        ArgumentError: ``quant_min`` is larger than ``quant_max``.

    Example:
        >>> import plait
        >>> from plait_torch._fake_quantize import fake_quantize_per_tensor_affine
        >>> x = plait.tensor([-1.0, 0.2, 0.3])
        >>> fake_quantize_per_tensor_affine(x, 0.25, 0, -2, 2).tolist()
        [-0.5, 0.25, 0.25]
    """
    _check_range("fake_quantize_per_tensor_affine", quant_min, quant_max)
    result: plait.Tensor = _FakeQuantize.apply(input, scale, zero_point, quant_min, quant_max)
    return result


def fake_quantize_per_channel_affine(
    input: plait.Tensor,
    scale: plait.Tensor,
    zero_point: plait.Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
) -> plait.Tensor:
    """Compute `fake_quantize_per_tensor_affine` with a scale and a zero point for each channel.

    Args:
        input: floating-point numbers of any shape.
        scale: a number for each index of the dimension.
        zero_point: likewise.
        axis: the dimension.
        quant_min: the least quantized number.
        quant_max: the largest quantized number.

    Raises:
        ArgumentError: ``quant_min`` is larger than ``quant_max``.
        ShapeError: there is not a scale and a zero point for each channel.

    Example:
        >>> import plait
        >>> from plait_torch._fake_quantize import fake_quantize_per_channel_affine
        >>> scale, zero = plait.tensor([0.5, 1.0]), plait.tensor([0, 0])
        >>> fake_quantize_per_channel_affine(plait.full((2, 1), 0.6), scale, zero, 0, 0, 3).tolist()
        [[0.5], [1.0]]
    """
    _check_range("fake_quantize_per_channel_affine", quant_min, quant_max)
    channels = (input.shape[axis],)
    if tuple(scale.shape) != channels or tuple(zero_point.shape) != channels:
        raise plait.ShapeError(
            "fake_quantize_per_channel_affine: `scale` and `zero_point` must have shape "
            f"{channels}; got {tuple(scale.shape)} and {tuple(zero_point.shape)}"
        )
    shape = [1] * input.ndim
    shape[axis] = -1
    result: plait.Tensor = _FakeQuantize.apply(
        input, scale.reshape(shape), zero_point.reshape(shape), quant_min, quant_max
    )
    return result
