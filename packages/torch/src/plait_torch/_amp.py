"""`torch.amp`: `autocast` and `GradScaler`."""

from __future__ import annotations

import functools
import importlib.util
import inspect
from collections import defaultdict
from collections.abc import Iterable, Mapping
from enum import Enum
from types import ModuleType
from typing import Any

import plait
from plait_torch._autocast import (
    autocast as autocast,
    get_autocast_dtype as get_autocast_dtype,
    is_autocast_available as is_autocast_available,
    is_autocast_enabled as is_autocast_enabled,
    is_there,
    warn_once,
)

__all__ = [
    "OptState",
    "_cast",
    "_refresh_per_optimizer_state",
    "GradScaler",
    "amp_definitely_not_available",
    "autocast",
    "custom_bwd",
    "custom_fwd",
    "get_autocast_dtype",
    "is_autocast_available",
    "is_autocast_enabled",
]


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
        choice = value.dtype.is_floating_point and value.device.type == device_type
        return value.to(dtype) if choice and value.dtype != plait.float64 else value
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
    """Let the ``forward`` of a `Function` see regions of `autocast` as it wants.

    Args:
        fwd: the function; without it a decorator is returned.
        device_type: whose regions are meant.
        cast_inputs: None: it runs in the region. A dtype: within a region its tensors are cast to
            it, and it runs without casts.

    Example:
        >>> import plait
        >>> from plait_torch._amp import autocast, custom_fwd
        >>> class Context: pass
        >>> def forward(ctx, x):
        ...     return x.dtype
        >>> forward = custom_fwd(forward, device_type="cpu", cast_inputs=plait.float32)
        >>> with autocast("cpu"):
        ...     forward(Context(), plait.ones(1).half())
        plait.float32
    """
    if fwd is None:
        return functools.partial(
            custom_fwd, device_type=device_type, cast_inputs=cast_inputs, **kwargs
        )

    @functools.wraps(fwd)
    def forward(ctx: Any, *args: Any, **words: Any) -> Any:
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = is_autocast_enabled(device_type) and cast_inputs is None
        if cast_inputs is None or not is_autocast_enabled(device_type):
            return fwd(ctx, *args, **words)
        with autocast(device_type, enabled=False):
            return fwd(
                ctx,
                *_cast(args, device_type, cast_inputs),
                **_cast(words, device_type, cast_inputs),
            )

    return forward


def custom_bwd(bwd: Any = None, *, device_type: str = "cuda") -> Any:
    """Let the ``backward`` of a `Function` run in a region as its ``forward`` did."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def backward(ctx: Any, *args: Any) -> Any:
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return bwd(ctx, *args)

    return backward


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
        if enabled and not is_there(str(device)):
            warn_once(f"plait_torch: GradScaler: device {device!r} is not available; disabled")
            enabled = False
        if enabled and not growth_factor > 1.0:
            raise ValueError(f"GradScaler: `growth_factor` must be > 1, got {growth_factor}")
        if enabled and not 0.0 < backoff_factor < 1.0:
            raise ValueError(
                f"GradScaler: `backoff_factor` must be in (0, 1); got {backoff_factor}"
            )
        self._enabled = enabled
        self._device = device
        self._init_scale = float(init_scale)
        self._scale: Any = None  # a tensor from the first `scale`
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._init_growth_tracker = 0
        self._growth_tracker: Any = None
        self._per_optimizer_states: dict[int, dict[str, Any]] = defaultdict(
            _refresh_per_optimizer_state
        )

    def scale(self, outputs: Any) -> Any:
        """Return a tensor, or each of several tensors, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self.scale(each) for each in outputs])
        if not plait.is_tensor(outputs):
            if isinstance(outputs, Iterable):
                return map(self.scale, outputs)
            raise ValueError(
                "GradScaler: `outputs` must be a tensor or an iterable of tensors; "
                f"got {type(outputs).__name__}"
            )
        if self._scale is None:
            self._lazy_init_scale_growth_tracker(outputs.device)
        return outputs * self._scale.to(outputs.device)

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, once before its step."""
        if not self._enabled:
            return
        self._check_scale_growth_tracker("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("GradScaler: unscale_() was called after step()")
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("GradScaler: unscale_() was called twice since the last update()")
        inverse = self._scale.reciprocal()
        result = plait.zeros((), device=self._scale.device)
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, result, False)
        state["stage"] = OptState.UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Step the optimizer, unless a gradient is infinite or NaN; return its step's result.

        An optimizer whose `_step_supports_amp_scaling` is true does this itself: it gets the
        scaler if its `step` takes `grad_scaler`, and else has `grad_scale` and `found_inf` while it
        steps.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("GradScaler: a step with a closure cannot be scaled")
        self._check_scale_growth_tracker("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("GradScaler: step() was called twice since the last update()")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_of_scaling(optimizer, state, args, kwargs)
        else:
            if state["stage"] is OptState.READY:
                self.unscale_(optimizer)
            if not state["found_inf_per_device"]:
                raise RuntimeError("GradScaler: the optimizer has no gradients to check")
            result = self._maybe_opt_step(optimizer, state, *args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _step_of_scaling(
        self, optimizer: Any, state: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            return optimizer.step(*args, **{**kwargs, "grad_scaler": self})
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        results = list(state["found_inf_per_device"].values())
        scale = self._get_scale_async()
        optimizer.grad_scale = scale if state["stage"] is OptState.READY else None
        optimizer.found_inf = sum(results[1:], results[0])
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def update(self, new_scale: Any = None) -> None:
        """Reduce, grow or set the scale."""
        if not self._enabled:
            return
        self._check_scale_growth_tracker("update")
        states = self._per_optimizer_states.values()
        results = [each for state in states for each in state["found_inf_per_device"].values()]
        if new_scale is not None:
            self._scale.fill_(float(new_scale))
        elif not results:
            raise RuntimeError("GradScaler: update() needs a step() or unscale_() before it")
        else:
            self._adapt([each.to(self._scale.device) for each in results])
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _adapt(self, results: list[Any]) -> None:
        """Reduce the scale if a gradient was not finite, or let it grow when it is time. The host
        does not wait for the answer.
        """
        infinite = sum(results[1:], results[0]) > 0
        steps = plait.where(
            infinite, plait.zeros_like(self._growth_tracker), self._growth_tracker + 1
        )
        grows = steps == self._growth_interval
        grown = self._scale * self._growth_factor
        grown = plait.where(plait.isfinite(grown), grown, self._scale)  # else it stays infinite
        reduced = self._scale * self._backoff_factor
        self._scale.copy_(plait.where(infinite, reduced, plait.where(grows, grown, self._scale)))
        self._growth_tracker.copy_(plait.where(grows, plait.zeros_like(steps), steps))

    def get_scale(self) -> float:
        """Return the scale; 1 if disabled."""
        if not self._enabled:
            return 1.0
        scale = self._get_scale_async()
        return self._init_scale if scale is None else float(scale)

    def get_growth_factor(self) -> float:
        """Return the factor by which the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the factor by which the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the factor of the scale after gradients that are not finite."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor of the scale after gradients that are not finite."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return the number of finite steps after which the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of finite steps after which the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Return whether it scales."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Return the scale and its parameters; empty if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a result of `state_dict`."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError("GradScaler: the state is empty: it comes from a disabled scaler")
        self._init_scale = float(state_dict["scale"])
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(self._init_growth_tracker)

    # The following have PyTorch's names and arguments: subclasses override them and call them.

    def _lazy_init_scale_growth_tracker(self, dev: Any) -> None:
        self._scale = plait.full((), self._init_scale, dtype=plait.float32, device=dev)
        self._growth_tracker = plait.full(
            (), self._init_growth_tracker, dtype=plait.int32, device=dev
        )

    def _check_scale_growth_tracker(self, funcname: str) -> tuple[Any, Any]:
        if self._scale is None:
            raise RuntimeError(f"GradScaler: {funcname}() was called before scale()")
        return self._scale, self._growth_tracker

    def _get_scale_async(self) -> Any:
        return self._scale

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else int(tracker)

    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Any, found_inf: Any, allow_fp16: bool
    ) -> dict[Any, Any]:
        """Multiply the gradients, and return for each device whether some are not finite."""
        results: dict[Any, Any] = {}
        with plait.no_grad():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is None:
                        continue
                    gradient = parameter.grad
                    gradient.mul_(inv_scale.to(gradient.device))
                    if isinstance(gradient, plait.SparseTensor):
                        gradient = gradient._values()
                    device = gradient.device
                    infinite = plait.isfinite(gradient).all().logical_not().to(found_inf.dtype)
                    before = results.get(device)
                    if before is None:
                        before = found_inf.to(device)
                    results[device] = plait.maximum(before, infinite)
        return results

    def _maybe_opt_step(
        self, optimizer: Any, optimizer_state: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        if any(float(each) for each in optimizer_state["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Any]:
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        one, result = plait.ones((), device=scale.device), plait.zeros((), device=scale.device)
        state = self._per_optimizer_states[id(optimizer)]
        state["found_inf_per_device"] = self._unscale_grads_(optimizer, one, result, True)
        found_infs: dict[Any, Any] = state["found_inf_per_device"]
        return found_infs

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Any]:
        state: dict[Any, Any] = self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]
        return state


def _refresh_per_optimizer_state() -> dict[str, Any]:
    """Return what a scaler knows of an optimizer before its step.

    Example:
        >>> from plait_torch._amp import _refresh_per_optimizer_state
        >>> _refresh_per_optimizer_state()["stage"].name
        'READY'
    """
    return {"stage": OptState.READY, "found_inf_per_device": {}}


# pickles of scalers name it
_refresh_per_optimizer_state.__module__ = "torch.amp.grad_scaler"


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


def amp_definitely_not_available() -> bool:
    """Return whether neither CUDA nor the package torch_xla is there.

    Example:
        >>> import plait
        >>> from plait_torch._amp import amp_definitely_not_available
        >>> amp_definitely_not_available() != plait.cuda.is_available()
        True
    """
    return not (plait.cuda.is_available() or importlib.util.find_spec("torch_xla") is not None)
