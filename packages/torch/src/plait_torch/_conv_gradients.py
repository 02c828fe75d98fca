"""`torch.nn.grad`: the gradients of convolutions by their input and by their weight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import plait
import plait.nn.functional as F

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]


def _gradients(dims: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    convolve: Any = getattr(F, f"conv{dims}d")

    def by_input(
        input_size: Sequence[int],
        weight: Any,
        grad_output: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        x = weight.new_zeros(tuple(input_size), requires_grad=True)
        with plait.enable_grad():
            result = convolve(x, weight.detach(), None, stride, padding, dilation, groups)
        return plait.autograd.grad(result, x, grad_output)[0]

    def by_weight(
        input: Any,
        weight_size: Sequence[int],
        grad_output: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        weight = input.new_zeros(tuple(weight_size), requires_grad=True)
        with plait.enable_grad():
            result = convolve(input.detach(), weight, None, stride, padding, dilation, groups)
        return plait.autograd.grad(result, weight, grad_output)[0]

    for function, argument in ((by_input, "input"), (by_weight, "weight")):
        function.__name__ = function.__qualname__ = f"conv{dims}d_{argument}"
        function.__doc__ = (
            f"Return the gradient of a `conv{dims}d` by its {argument}, of a given size."
        )
    return by_input, by_weight


conv1d_input, conv1d_weight = _gradients(1)
conv2d_input, conv2d_weight = _gradients(2)
conv3d_input, conv3d_weight = _gradients(3)
