"""Modules with uninitialised values, and memory formats of weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from plait_nn._conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from plait_nn._module import Module

M = TypeVar("M", bound=Module)


def skip_init(module_cls: Callable[..., M], *args: Any, **kwargs: Any) -> M:
    """Make a module whose parameters and buffers have memory, but no values yet.

    It is for modules whose values are loaded from a file; no random numbers are drawn.

    Args:
        module_cls: The class; its constructor takes ``device``.
        args: The arguments of the constructor.
        kwargs: The keyword arguments of the constructor; ``device`` is the device of the memory.

    Raises:
        RuntimeError: `module_cls` is not a class of modules, or has no argument ``device``.

    Example:
        >>> import plait_nn as nn
        >>> layer = nn.utils.skip_init(nn.Linear, 5, 1)
        >>> tuple(layer.weight.shape), layer.weight.device.type
        ((1, 5), 'cpu')
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"skip_init: `module_cls` must be a class of modules; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError(
            f"skip_init: the constructor of {module_cls.__name__} must take `device`; it does not"
        )
    device = kwargs.pop("device", "cpu")
    result: Any = module_cls(*args, **kwargs, device="meta")
    return result.to_empty(device=device)  # type: ignore[no-any-return]


def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Put the weights of all 2-d convolutions within a module into a memory format.

    Args:
        module: The module.
        memory_format: The memory format of the weights.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.Conv2d(8, 4, 2)
        >>> layer = nn.utils.convert_conv2d_weight_memory_format(layer, pc.channels_last)
        >>> layer.weight.stride()
        (32, 1, 16, 8)
    """
    return _converted(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Put the weights of all 3-d convolutions within a module into a memory format.

    Args:
        module: The module.
        memory_format: The memory format of the weights.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.Conv3d(8, 4, 2)
        >>> layer = nn.utils.convert_conv3d_weight_memory_format(layer, pc.channels_last_3d)
        >>> layer.weight.stride()
        (64, 1, 32, 16, 8)
    """
    return _converted(module, (Conv3d, ConvTranspose3d), memory_format)


def _converted(module: M, kinds: tuple[type[Module], ...], memory_format: Any) -> M:
    for layer in module.modules():
        if isinstance(layer, kinds):
            weight = layer.weight
            weight.data = weight.detach().clone(memory_format=memory_format)
    return module
