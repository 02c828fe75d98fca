"""The names of `torch._C` for `torch.overrides` and for modes."""

from __future__ import annotations

from enum import Enum
from typing import Any

from plait_abi.imports import import_module
from plait_torch import _overrides, _torch_dispatch, _torch_function
from plait_torch._torch_function import DisableTorchFunction, DisableTorchFunctionSubclass

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "_DisableTorchDispatch",
    "_TorchDispatchModeKey",
    "_disabled_torch_dispatch_impl",
    "_disabled_torch_function_impl",
    "_get_dispatch_mode",
    "_get_function_stack_at",
    "_has_torch_function",
    "_has_torch_function_unary",
    "_has_torch_function_variadic",
    "_is_torch_function_all_disabled",
    "_is_torch_function_enabled",
    "_is_torch_function_mode_enabled",
    "_len_torch_dispatch_stack",
    "_len_torch_function_stack",
    "_pop_torch_function_stack",
    "_push_on_torch_function_stack",
]

_disabled_torch_function_impl = _torch_function.disabled
_disabled_torch_dispatch_impl = _torch_dispatch.disabled
_has_torch_function = _overrides.has_torch_function
_has_torch_function_unary = _overrides.has_torch_function_unary
_has_torch_function_variadic = _overrides.has_torch_function_variadic
_push_on_torch_function_stack = _torch_function.push
_pop_torch_function_stack = _torch_function.pop


class _TorchDispatchModeKey(Enum):
    """The kinds of modes that PyTorch tells apart."""

    FAKE = 0
    PROXY = 1
    FUNCTIONAL = 2


def _get_dispatch_mode(key: Any) -> None:
    """Return None: there are no modes of these kinds."""


def _len_torch_function_stack() -> int:
    """Return the number of this thread's modes with ``__torch_function__``."""
    return len(_torch_function.modes())


def _get_function_stack_at(index: int) -> Any:
    """Return one of these modes; 0 is the outermost."""
    return _torch_function.modes()[index]


def _len_torch_dispatch_stack() -> int:
    """Return the number of this thread's modes with ``__torch_dispatch__``."""
    return len(_torch_dispatch.modes())


def _level() -> int:
    switch_off = import_module("plait_core.overrides").switch_off
    level: int = switch_off(0)
    switch_off(level)
    return level


def _is_torch_function_enabled() -> bool:
    """Return whether ``__torch_function__`` of arguments is called in this thread."""
    return _level() == 0


def _is_torch_function_all_disabled() -> bool:
    """Return whether neither modes nor classes are called in this thread."""
    return _level() > 1


def _is_torch_function_mode_enabled() -> bool:
    """Return whether this thread has a mode that is called."""
    return bool(_torch_function.modes()) and not _is_torch_function_all_disabled()


class _DisableTorchDispatch:
    """A context whose operators neither modes nor classes see; only within one thread."""

    def __enter__(self) -> None:
        raise NotImplementedError(
            "plait_torch: torch._C._DisableTorchDispatch is not available; "
            "torch._C._disabled_torch_dispatch_impl makes one call unseen"
        )

    def __exit__(self, *exception: object) -> None:
        """Do nothing: the context was not entered."""
