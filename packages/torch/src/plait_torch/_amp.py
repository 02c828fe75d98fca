"""`torch.amp`: `autocast`, which casts nothing on the CPU, and `GradScaler`."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from types import ModuleType, TracebackType
from typing import Any, TypeVar

import plait
from plait_abi import _binding

__all__ = [
    "OptState",
    "_cast",
    "GradScaler",
    "autocast",
    "custom_bwd",
    "custom_fwd",
    "get_autocast_dtype",
    "is_autocast_available",
    "is_autocast_enabled",
]

F = TypeVar("F", bound=Callable[..., Any])
_warned: set[str] = set()


def _is_there(device_type: str) -> bool:
    try:
        return device_type == "cpu" or _binding.device_count(device_type) > 0
    except ValueError:  # a type that plait does not know, such as "mps"
        return False


def _warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        warnings.warn(text, UserWarning, stacklevel=4)


class autocast:  # noqa: N801 - PyTorch's name
    """A region that PyTorch computes in a shorter dtype, and plait in the tensors' own dtype.

    Plait computes halves in float32 on the CPU, so casting would lose precision without a gain. The
    region therefore changes nothing and warns once, on accelerators too; for a device that is not
    there it is disabled with a warning, as in PyTorch. Use it with ``with`` or as a decorator.

    Args:
        device_type: "cpu", "cuda", ...
        dtype: the dtype that PyTorch casts to; bfloat16 on the CPU by default.
        enabled: False for a region without casts.
        cache_enabled: has no effect.

    Example:
        >>> import warnings, plait
        >>> from plait_torch._amp import autocast
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     with autocast("cpu"):
        ...         y = plait.ones(2, 2) @ plait.ones(2, 2)
        >>> y.dtype
        plait.float32
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
        self._enabled = False
        if enabled and device_type == "cpu":
            _warn_once(
                "plait_torch: autocast: nothing is cast on the CPU: plait computes halves in "
                "float32, so the region runs in the tensors' own dtypes"
            )
        elif enabled and _is_there(device_type):
            _warn_once(
                f"plait_torch: autocast: nothing is cast on {device_type}: the region runs in the "
                "tensors' own dtypes"
            )
        elif enabled:
            _warn_once(
                f"plait_torch: autocast: device_type {device_type!r} was asked for and is not "
                "there; disabled"
            )

    def __enter__(self) -> autocast:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        return None

    def __call__(self, function: F) -> F:
        return function


class _DeviceAutocast(autocast):
    """`torch.cuda.amp.autocast` and `torch.cpu.amp.autocast`: the device is in the name."""

    _device = ""

    def __init__(
        self, enabled: bool = True, dtype: Any = None, cache_enabled: bool | None = True
    ) -> None:
        super().__init__(self._device, dtype, enabled, cache_enabled)


class _AutocastOfCuda(_DeviceAutocast):
    _device = "cuda"


class _AutocastOfCpu(_DeviceAutocast):
    _device = "cpu"


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Return False: no region casts."""
    return False


def is_autocast_available(device_type: str) -> bool:
    """Return whether `autocast` accepts the device without disabling itself: it is there."""
    return _is_there(device_type)


def get_autocast_dtype(device_type: str) -> Any:
    """Return the dtype that PyTorch casts to by default."""
    return plait.bfloat16 if device_type in ("cpu", "xpu") else plait.float16


def _cast(value: Any, device_type: str, dtype: Any) -> Any:
    """Return floating-point tensors of a kind of device in another dtype, also within containers;
    float64 and other values remain.

    Example:
        >>> import plait
        >>> from plait_torch._amp import _cast
        >>> cast = _cast([plait.ones(1), plait.ones(1).double(), "a"], "cpu", plait.bfloat16)
        >>> cast[0].dtype, cast[1].dtype, cast[2]
        (plait.bfloat16, plait.float64, 'a')
    """
    if isinstance(value, plait.Tensor):
        chosen = value.dtype.is_floating_point and value.device.type == device_type
        return value.to(dtype) if chosen and value.dtype != plait.float64 else value
    if isinstance(value, Mapping):
        return {
            _cast(key, device_type, dtype): _cast(each, device_type, dtype)
            for key, each in value.items()
        }
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return value
    if hasattr(value, "__array_interface__"):
        return value
    parts = (_cast(each, device_type, dtype) for each in value)
    return type(value)(parts) if isinstance(value, (list, tuple)) else parts


def _cast_of_cuda(value: Any, dtype: Any) -> Any:
    return _cast(value, "cuda", dtype)


def custom_fwd(
    fwd: Any = None, *, device_type: str = "cuda", cast_inputs: Any = None, **kwargs: Any
) -> Any:
    """Return the ``forward`` of a `Function` unchanged, as no region casts."""
    if fwd is None:
        return functools.partial(
            custom_fwd, device_type=device_type, cast_inputs=cast_inputs, **kwargs
        )
    return fwd


def custom_bwd(bwd: Any = None, *, device_type: str = "cuda") -> Any:
    """Return the ``backward`` of a `Function` unchanged."""
    return functools.partial(custom_bwd, device_type=device_type) if bwd is None else bwd


class OptState(Enum):
    """What a scaler has done with an optimizer since its last `update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class GradScaler:
    """Multiply a loss, so that small gradients of halves do not vanish, and divide them again.

    If gradients are not finite, the step is skipped and the scale is reduced; after
    `growth_interval` steps without that it grows. For a device that is not available it is
    disabled, with a warning as in PyTorch: `scale` returns its argument and `step` is the
    optimizer's.

    Args:
        device: the type of device of the gradients, such as "cpu" or "cuda".
        init_scale, growth_factor, backoff_factor, growth_interval: see above.
        enabled: False for a scaler that does nothing.

    Example:
        >>> import plait
        >>> from plait_torch._amp import GradScaler
        >>> w = plait.ones(1, requires_grad=True)
        >>> optimizer, scaler = plait.optim.SGD([w], lr=0.5), GradScaler("cpu", init_scale=8.0)
        >>> scaler.scale(w.sum()).backward()
        >>> w.grad
        tensor([8.])
        >>> _ = scaler.step(optimizer), scaler.update()
        >>> w.detach()
        tensor([0.5000])
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if enabled and not _is_there(str(device)):
            _warn_once(f"plait_torch: GradScaler: device {device!r} is not available; disabled")
            enabled = False
        if enabled and not growth_factor > 1.0:
            raise ValueError(f"GradScaler: `growth_factor` must be > 1, got {growth_factor}")
        if enabled and not 0.0 < backoff_factor < 1.0:
            raise ValueError(
                f"GradScaler: `backoff_factor` must be in (0, 1); got {backoff_factor}"
            )
        self._enabled = enabled
        self._scale = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        # for each optimizer that was unscaled since the last update: whether its gradients are
        # finite
        self._finite: dict[int, bool] = {}
        self._stepped: set[int] = set()

    def scale(self, outputs: Any) -> Any:
        """Return a tensor, or a sequence of tensors, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self.scale(each) for each in outputs])
        return outputs * self._scale

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, once before its step."""
        if not self._enabled:
            return
        key = id(optimizer)
        if key in self._stepped:
            raise RuntimeError("GradScaler: unscale_() was called after step()")
        if key in self._finite:
            raise RuntimeError("GradScaler: unscale_() was called twice since the last update()")
        finite = True
        with plait.no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        gradient = parameter.grad.mul_(1.0 / self._scale)
                        if isinstance(gradient, plait.SparseTensor):
                            gradient = gradient._values()
                        finite = finite and bool(plait.isfinite(gradient).all())
        self._finite[key] = finite

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Step the optimizer, unless a gradient is infinite or NaN; return its step's result."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("GradScaler: a step with a closure cannot be scaled")
        key = id(optimizer)
        if key in self._stepped:
            raise RuntimeError("GradScaler: step() was called twice since the last update()")
        if key not in self._finite:
            self.unscale_(optimizer)
        self._stepped.add(key)
        return optimizer.step(*args, **kwargs) if self._finite[key] else None

    def update(self, new_scale: Any = None) -> None:
        """Reduce, grow or set the scale."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._finite:
            raise RuntimeError("GradScaler: update() needs a step() or unscale_() before it")
        elif not all(self._finite.values()):
            self._scale *= self._backoff_factor
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale *= self._growth_factor
                self._growth_tracker = 0
        self._finite.clear()
        self._stepped.clear()

    def get_scale(self) -> float:
        """Return the scale; 1 if disabled."""
        return self._scale if self._enabled else 1.0

    def is_enabled(self) -> bool:
        """Return whether it scales."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Return the scale and its parameters; empty if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a result of `state_dict`."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("GradScaler: the state is empty: it comes from a disabled scaler")
        self._scale = float(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]


class _GradScalerOfCuda(GradScaler):
    """`torch.cuda.amp.GradScaler`: the device is in the name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("cuda", *args, **kwargs)


class _GradScalerOfCpu(GradScaler):
    """`torch.cpu.amp.GradScaler`: the device is in the name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("cpu", *args, **kwargs)


def _module(name: str, **names: Any) -> ModuleType:
    module = ModuleType(name, inspect.getdoc(autocast))
    module.__dict__.update(names, __all__=list(names))
    return module


of_cuda = _module(
    "torch.cuda.amp",
    autocast=_AutocastOfCuda,
    GradScaler=_GradScalerOfCuda,
    custom_fwd=custom_fwd,
    custom_bwd=custom_bwd,
    _cast=_cast_of_cuda,
)
of_cpu = _module("torch.cpu.amp", autocast=_AutocastOfCpu, GradScaler=_GradScalerOfCpu)
