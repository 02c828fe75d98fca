"""`torch.autocast`: regions in which matrix products compute in halves, and sums in float32."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import plait
from plait_abi import binding
from plait_abi.frames import warn
from plait_core import _core

__all__ = [
    "autocast",
    "get_autocast_dtype",
    "is_autocast_available",
    "is_autocast_enabled",
    "is_there",
    "same_regions",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "warn_once",
]

F = TypeVar("F", bound=Callable[..., Any])

_HALVES = (plait.float16, plait.bfloat16)
warned: set[str] = set()


class _Regions(threading.local):
    """The state of a thread, by type of device."""

    def __init__(self) -> None:
        self.enabled: dict[str, bool] = {}
        self.dtypes: dict[str, Any] = {}


_regions = _Regions()


def is_there(device_type: str) -> bool:
    """Return whether there are devices of a type."""
    try:
        return device_type == "cpu" or binding.device_count(device_type) > 0
    except ValueError:  # a type that plait does not know, such as "mps"
        return False


def warn_once(text: str) -> None:
    """Warn, unless the same text was shown before."""
    if text not in warned:
        warned.add(text)
        warn(text, UserWarning)


def is_autocast_available(device_type: str) -> bool:
    """Return whether `autocast` accepts the device without disabling itself: it is there."""
    return is_there(device_type)


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Return whether a region of this type of device is active in this thread."""
    return _regions.enabled.get(device_type, False)


def get_autocast_dtype(device_type: str) -> Any:
    """Return the dtype of regions of a type of device where they name none."""
    default = plait.bfloat16 if device_type in ("cpu", "xpu") else plait.float16
    return _regions.dtypes.get(device_type, default)


def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Begin or end a region of this thread, without a block; one argument means CUDA."""
    kind, on = ("cuda", device_type) if enabled is None else (device_type, enabled)
    _regions.enabled[kind] = bool(on) and is_there(kind)
    _apply(kind)


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """Set the dtype of regions of a type of device.

    Raises:
        RuntimeError: for a dtype that is neither float16 nor bfloat16.
    """
    if dtype not in (*_HALVES, plait.float32):
        raise RuntimeError(f"set_autocast_dtype: float16 or bfloat16 is required, got {dtype}")
    _regions.dtypes[device_type] = dtype
    _apply(device_type)


def _apply(device_type: str) -> None:
    if is_there(device_type):
        on = _regions.enabled.get(device_type, False)
        _core.set_autocast(device_type, get_autocast_dtype(device_type) if on else None)


class same_regions:  # noqa: N801 - a context, as `autocast`
    """The regions that are active when the object is made, for a block that runs later.

    A backward pass is usually outside of the region of the forward pass, part of which it may
    compute again.

    Example:
        >>> import plait
        >>> from plait_torch._autocast import autocast, same_regions
        >>> with autocast("cpu"):
        ...     regions = same_regions()
        >>> with regions:
        ...     y = plait.ones(2, 2) @ plait.ones(2, 2)
        >>> y.dtype
        plait.bfloat16
    """

    def __init__(self) -> None:
        self._state = _regions.enabled.copy(), _regions.dtypes.copy()
        self._before: list[tuple[dict[str, bool], dict[str, Any]]] = []

    def __enter__(self) -> None:
        self._before.append((_regions.enabled, _regions.dtypes))
        _change(*self._state)

    def __exit__(self, *exception: object) -> None:
        _change(*self._before.pop())


def _change(enabled: dict[str, bool], dtypes: dict[str, Any]) -> None:
    before = _regions.enabled, _regions.dtypes
    _regions.enabled, _regions.dtypes = enabled.copy(), dtypes.copy()
    if before != (enabled, dtypes):
        for device_type in {*before[0], *enabled}:
            _apply(device_type)


class autocast:  # noqa: N801 - PyTorch's name
    """A region in which operators cast what they read: matrix products and convolutions compute in
    a short dtype, sums, losses and what needs a wide range in float32.

    For a device that is not there the region is disabled with a warning, as in PyTorch. Use it with
    ``with`` or as a decorator; only tensors of this type of device are cast. On the CPU it saves
    memory, not time: plait computes halves in float32 there.

    Args:
        device_type: "cpu", "cuda", ...
        dtype: float16 or bfloat16; by default bfloat16 on the CPU and float16 on CUDA.
        enabled: False for a region without casts, also within another one.
        cache_enabled: has no effect.

    Example:
        >>> import plait
        >>> from plait_torch._autocast import autocast
        >>> with autocast("cpu"):
        ...     y = plait.ones(2, 2) @ plait.ones(2, 2)
        >>> y.dtype
        plait.bfloat16
    """

    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(
                f"autocast: `device_type` must be a str, got {type(device_type).__name__}"
            )
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._enabled = enabled and is_there(device_type)
        self._before: list[tuple[bool, Any]] = []
        if enabled and not self._enabled:
            warn_once(
                f"plait_torch: autocast: device_type {device_type!r} was asked for and is not "
                "there; disabled"
            )
        if self._enabled and self.fast_dtype not in _HALVES:
            warn_once(
                f"plait_torch: autocast: float16 or bfloat16 is required, got {self.fast_dtype}; "
                "disabled"
            )
            self._enabled = False

    def __enter__(self) -> autocast:
        regions = _regions
        self._before.append(
            (regions.enabled.get(self.device, False), regions.dtypes.get(self.device))
        )
        regions.enabled[self.device] = self._enabled
        if self._enabled:
            regions.dtypes[self.device] = self.fast_dtype
        _apply(self.device)
        return self

    def __exit__(self, *exception: object) -> None:
        enabled, dtype = self._before.pop()
        _regions.enabled[self.device] = enabled
        _regions.dtypes.pop(self.device, None)
        if dtype is not None:
            _regions.dtypes[self.device] = dtype
        _apply(self.device)

    def __call__(self, function: F) -> F:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return inside  # type: ignore[return-value]
