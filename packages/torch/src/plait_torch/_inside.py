"""The names of `torch._C` that programs use."""

from __future__ import annotations

from contextlib import nullcontext
from enum import Enum
from typing import Any

import plait
from plait_torch import _backends
from plait_torch._zip_records import PyTorchFileReader, PyTorchFileWriter

__all__ = [
    "PyTorchFileReader",
    "PyTorchFileWriter",
    "_GLIBCXX_USE_CXX11_ABI",
    "_InferenceMode",
    "_TensorBase",
    "_is_tracing",
    "_show_config",
    "device",
    "dtype",
    "DispatchKey",
    "DispatchKeySet",
    "Generator",
    "TensorBase",
    "_ExcludeDispatchKeyGuard",
    "_are_functorch_transforms_active",
    "_get_cudnn_enabled",
    "_get_privateuse1_backend_name",
    "_has_xpu",
    "_is_alias_of",
    "_jit_can_fuse_on_cpu",
    "_jit_can_fuse_on_gpu",
    "_jit_override_can_fuse_on_cpu",
    "_jit_override_can_fuse_on_gpu",
    "_jit_set_nvfuser_guard_mode",
    "_set_math_sdp_allow_fp16_bf16_reduction",
    "_LinAlgError",
    "_TensorMeta",
    "_get_accelerator",
    "_get_default_device",
    "_get_tracing_state",
    "_jit_set_nvfuser_enabled",
    "_jit_set_profiling_executor",
    "_jit_set_profiling_mode",
    "_jit_set_texpr_fuser_enabled",
    "_log_api_usage_once",
    "_set_grad_enabled",
    "is_grad_enabled",
]

_TensorMeta = type(plait.Tensor)
_LinAlgError = plait.linalg.LinAlgError
Generator = plait.Generator
device, dtype = plait.device, plait.dtype
_InferenceMode = plait.inference_mode
_GLIBCXX_USE_CXX11_ABI = True
TensorBase = _TensorBase = plait.Tensor  # in PyTorch the base class of `Tensor`, in C++


class DispatchKey(Enum):
    """The kinds of calls for which functions are registered; calls on the CPU use one kind."""

    CPU = "CPU"
    CUDA = "CUDA"
    Meta = "Meta"
    Autograd = "Autograd"
    AutocastCPU = "AutocastCPU"
    AutocastCUDA = "AutocastCUDA"
    AutocastXPU = "AutocastXPU"
    CompositeExplicitAutograd = "CompositeExplicitAutograd"
    CompositeImplicitAutograd = "CompositeImplicitAutograd"


class DispatchKeySet(frozenset[DispatchKey]):
    """A set of dispatch keys."""

    def __new__(cls, *keys: DispatchKey) -> DispatchKeySet:
        return super().__new__(cls, keys)


class _ExcludeDispatchKeyGuard(nullcontext[None]):
    """A context manager without effect, as no functions are registered for these keys."""


def _get_tracing_state() -> Any:
    """Return the scopes of the trace that this thread makes; None: it makes none."""
    from plait_torch import _traced_graph

    return _traced_graph.tracing_state()


def _is_tracing() -> bool:
    """Return whether this thread makes a trace."""
    return _get_tracing_state() is not None


def _show_config() -> str:
    """Return the text of `torch.__config__.show`."""
    from plait_torch import _config

    return _config.show()


_compiler_settings: dict[str, bool] = {}


def _compiler_setting(name: str) -> Any:
    def set_value(value: bool) -> bool:
        before = _compiler_settings.get(name, True)
        _compiler_settings[name] = bool(value)
        return before

    set_value.__name__ = set_value.__qualname__ = name
    set_value.__doc__ = (
        "Store a setting of a compiler that plait does not have; return the former one."
    )
    return set_value


_jit_set_nvfuser_enabled = _compiler_setting("_jit_set_nvfuser_enabled")
_jit_set_profiling_executor = _compiler_setting("_jit_set_profiling_executor")
_jit_set_profiling_mode = _compiler_setting("_jit_set_profiling_mode")
_jit_set_texpr_fuser_enabled = _compiler_setting("_jit_set_texpr_fuser_enabled")
_debug_set_autodiff_subgraph_inlining = _compiler_setting("_debug_set_autodiff_subgraph_inlining")
_jit_set_nvfuser_guard_mode = _compiler_setting("_jit_set_nvfuser_guard_mode")
_can_fuse = {"cpu": False, "gpu": False}


def _fusion(device: str) -> tuple[Any, Any]:
    def override(value: bool) -> None:
        _can_fuse[device] = bool(value)

    def can_fuse() -> bool:
        return _can_fuse[device]

    override.__name__ = override.__qualname__ = f"_jit_override_can_fuse_on_{device}"
    override.__doc__ = "Store a setting of a compiler that plait does not have."
    can_fuse.__name__ = can_fuse.__qualname__ = f"_jit_can_fuse_on_{device}"
    can_fuse.__doc__ = f"Return what `{override.__name__}` stored."
    return override, can_fuse


_jit_override_can_fuse_on_cpu, _jit_can_fuse_on_cpu = _fusion("cpu")
_jit_override_can_fuse_on_gpu, _jit_can_fuse_on_gpu = _fusion("gpu")
_has_xpu = False


def _are_functorch_transforms_active() -> bool:
    """Return False: `vmap` and `grad` of `torch.func` call functions with ordinary tensors."""
    return False


def _log_api_usage_once(name: str) -> None:
    """Do nothing: calls are not counted."""


def _get_default_device() -> str:
    """Return the kind of device that tensors are made on."""
    kind: str = plait.get_default_device().type
    return kind


def _get_accelerator() -> Any:
    """Return the accelerator, or the CPU where there is none."""
    return plait.accelerator.current_accelerator() or plait.device("cpu")


def _set_grad_enabled(mode: bool) -> None:
    """Turn grad mode on or off."""
    plait.set_grad_enabled(mode)


def is_grad_enabled() -> bool:
    """Return whether operators are recorded for derivatives."""
    enabled: bool = plait.is_grad_enabled()
    return enabled


def _is_alias_of(tensor: Any, other: Any, /) -> bool:
    """Return whether two tensors share their memory, also if they are different parts of it.

    Example:
        >>> import plait
        >>> from plait_torch._inside import _is_alias_of
        >>> x = plait.zeros(4)
        >>> _is_alias_of(x[:2], x[2:]), _is_alias_of(x, x.clone())
        (True, False)
    """
    same: bool = tensor.untyped_storage() == other.untyped_storage()
    return same


def _get_cudnn_enabled() -> bool:
    """Return the flag ``torch.backends.cudnn.enabled``."""
    return bool(_backends.cudnn.enabled)


def _get_privateuse1_backend_name() -> str:
    """Return the default name of the device type for private backends."""
    return "privateuseone"


def _set_math_sdp_allow_fp16_bf16_reduction(enabled: bool) -> None:
    """Do nothing: sums of half precision are computed in float32."""
