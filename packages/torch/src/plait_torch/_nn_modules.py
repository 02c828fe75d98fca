"""Names in `torch.nn.modules` that programs use: base classes and small functions."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import plait
from plait_nn._batch_norm import _BatchNorm, _InstanceNorm, _Norm
from plait_nn._conv import _Conv, _ConvTransposeNd
from plait_nn._dropout import _DropoutNd
from plait_nn._hooks import GLOBAL
from plait_nn._hooks import WrappedHook as _WrappedHook
from plait_nn._lazy import _Lazy as LazyModuleMixin
from plait_nn._loss import _Loss, _WeightedLoss
from plait_nn._state_dict import IncompatibleKeys as _IncompatibleKeys
from plait_torch._tuples import _ntuple, _pair, _quadruple, _single, _triple

__all__ = [
    "LazyModuleMixin",
    "_EXTRA_STATE_KEY_SUFFIX",
    "_DropoutNd",
    "_IncompatibleKeys",
    "_BatchNorm",
    "_ConvNd",
    "_ConvTransposeNd",
    "_InstanceNorm",
    "_Loss",
    "_NormBase",
    "_WeightedLoss",
    "_WrappedHook",
    "_addindent",
    "_get_activation_fn",
    "_get_clones",
    "_global_backward_hooks",
    "_global_backward_pre_hooks",
    "_global_buffer_registration_hooks",
    "_global_forward_hooks",
    "_global_forward_hooks_always_called",
    "_global_forward_hooks_with_kwargs",
    "_global_forward_pre_hooks",
    "_global_module_registration_hooks",
    "_global_parameter_registration_hooks",
    "_has_any_global_hook",
    "_ntuple",
    "_pair",
    "_quadruple",
    "_single",
    "_triple",
]

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"
_ConvNd = _Conv  # in PyTorch the base of the transposed convolutions, too
_NormBase = _Norm

# the hooks of all modules; programs may change these dicts
_global_backward_hooks = GLOBAL._backward_hooks
_global_backward_pre_hooks = GLOBAL._backward_pre_hooks
_global_buffer_registration_hooks = GLOBAL._buffers
_global_forward_hooks = GLOBAL._forward_hooks
_global_forward_hooks_always_called = GLOBAL._forward_hooks_always_called
_global_forward_hooks_with_kwargs = GLOBAL._forward_hooks_with_kwargs
_global_forward_pre_hooks = GLOBAL._forward_pre_hooks
_global_module_registration_hooks = GLOBAL._modules
_global_parameter_registration_hooks = GLOBAL._parameters


def _has_any_global_hook() -> Any:
    return GLOBAL._hooked


def _get_clones(module: Any, N: int) -> Any:
    """Return a `ModuleList` of N copies."""
    return plait.nn.ModuleList([copy.deepcopy(module) for _ in range(N)])


def _get_activation_fn(activation: str) -> Callable[..., Any]:
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(plait.nn.functional, activation)  # type: ignore[no-any-return]


def _addindent(s_: str, numSpaces: int) -> str:
    """Indent all lines but the first."""
    return s_.replace("\n", "\n" + " " * numSpaces)
