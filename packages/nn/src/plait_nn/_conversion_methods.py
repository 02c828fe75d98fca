"""The methods of `Module` that change the dtype and the place of all it holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

import plait_core as pc
from plait_core import Tensor
from plait_nn import _convert

if TYPE_CHECKING:
    from plait_nn._module import Module

__all__ = ["ConversionMethods"]

C = TypeVar("C", bound="ConversionMethods")


class ConversionMethods:
    """What changes parameters and buffers in place."""

    @overload
    def to(self: C, device: Any = ..., dtype: Any = ..., non_blocking: bool = ...) -> C: ...

    @overload
    def to(self: C, dtype: Any, non_blocking: bool = ...) -> C: ...

    @overload
    def to(self: C, tensor: Tensor, non_blocking: bool = ...) -> C: ...

    def to(self: C, *args: Any, **kwargs: Any) -> C:
        """Convert parameters and buffers in place; return the module.

        ``to(device)``, ``to(dtype)``, ``to(device, dtype)`` and ``to(tensor)`` (its device and
        dtype). Only floating-point and complex members change their dtype, to such a one;
        ``memory_format=`` is for members of 4 and 5 dimensions.

        Example:
            >>> import plait_core as pc, plait_nn as nn
            >>> nn.Linear(2, 3).to(pc.float64).weight.dtype
            plait.float64
        """
        return self._apply(_convert.conversion(*args, **kwargs))

    def type(self: C, dst_type: Any) -> C:
        """Convert every parameter and buffer to ``dst_type``."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self: C) -> C:
        """Convert floating-point parameters and buffers to float32."""
        return self._apply(_convert.floating(pc.float32))

    def double(self: C) -> C:
        """Convert floating-point parameters and buffers to float64."""
        return self._apply(_convert.floating(pc.float64))

    def half(self: C) -> C:
        """Convert floating-point parameters and buffers to float16."""
        return self._apply(_convert.floating(pc.float16))

    def bfloat16(self: C) -> C:
        """Convert floating-point parameters and buffers to bfloat16."""
        return self._apply(_convert.floating(pc.bfloat16))

    def cpu(self: C) -> C:
        """Move parameters and buffers to the CPU."""
        return self.to("cpu")

    def _apply(self: C, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> C:
        """Replace the values of every parameter and buffer by ``fn`` of them."""
        _convert.apply(cast("Module", self), fn, recurse)
        return self

    def cuda(self: C, device: Any = None) -> C:
        """Move parameters and buffers to a CUDA device; an error where there is none."""
        return self.to("cuda" if device is None else pc.device("cuda", device))

    def to_empty(self: C, *, device: Any, recurse: bool = True) -> C:
        """Give parameters and buffers new memory on ``device``, without copying the values.

        Example:
            >>> import plait_nn as nn
            >>> layer = nn.Linear(2, 3, device="meta")
            >>> layer.to_empty(device="cpu").weight.device
            device(type='cpu')
        """
        return self._apply(lambda tensor: pc.empty_like(tensor, device=device), recurse)

    def share_memory(self: C) -> C:
        """Move parameters, their gradients and buffers to shared memory; ``plait_multiprocessing``.

        Raises:
            NotImplementedError: that package is not there.
        """
        module: Any = self
        for parameter in module.parameters():
            parameter.share_memory_()
            if parameter.grad is not None:
                parameter.grad.share_memory_()
        for buffer in module.buffers():
            buffer.share_memory_()
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Leave the module as it is: operators run one by one. For programs that call it."""
