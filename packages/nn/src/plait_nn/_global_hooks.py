"""Hooks of all modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_nn._hooks import GLOBAL, RemovableHandle, add_hook

__all__ = [
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]


def register_module_forward_pre_hook(
    hook: Callable[..., Any], *, only_watches: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args)`` before the ``forward`` of every module.

    Hooks of all modules run before a module's own. For debugging: a library should not use them.
    With ``only_watches`` the hook promises to use no ``args``, so that modules may still run
    together (`plait_core.set_fusion`).

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> with nn.register_module_forward_pre_hook(lambda m, args: print(m._get_name())):
        ...     _ = nn.Sequential(nn.ReLU(), nn.Tanh())(pc.ones(1))
        Sequential
        ReLU
        Tanh
    """
    options = ((GLOBAL._only_watching, only_watches),)
    return add_hook(GLOBAL, GLOBAL._forward_pre_hooks, hook, options=options)


def register_module_forward_hook(
    hook: Callable[..., Any],
    *,
    with_kwargs: bool = False,
    always_call: bool = False,
    only_watches: bool = False,
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after the ``forward`` of every module.

    With ``only_watches`` the hook promises to use neither ``args`` nor ``output``, so that modules
    may still run together (`plait_core.set_fusion`).

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> with nn.register_module_forward_hook(lambda m, args, output: output * 2):
        ...     nn.Sequential(nn.ReLU())(pc.ones(1)).tolist()
        [4.0]
    """
    options = (
        (GLOBAL._forward_hooks_with_kwargs, with_kwargs),
        (GLOBAL._forward_hooks_always_called, always_call),
        (GLOBAL._only_watching, only_watches),
    )
    return add_hook(GLOBAL, GLOBAL._forward_hooks, hook, options=options)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` in the backward pass of every module.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> with nn.register_module_full_backward_hook(lambda m, inner, outer: (inner[0] * 2,)):
        ...     x = pc.ones(1, requires_grad=True)
        ...     nn.ReLU()(x).backward()
        >>> x.grad.tolist()
        [2.0]
    """
    _use_kind(full=True)
    return add_hook(GLOBAL, GLOBAL._backward_hooks, hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` before the backward pass of every module.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> with nn.register_module_full_backward_pre_hook(lambda m, grads: print(grads)):
        ...     nn.ReLU()(pc.tensor(1.0, requires_grad=True)).backward()
        (tensor(1.),)
    """
    return add_hook(GLOBAL, GLOBAL._backward_pre_hooks, hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` for the last operator of every module.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> with nn.register_module_backward_hook(lambda m, inner, outer: print(m)):
        ...     nn.ReLU()(pc.ones(1, requires_grad=True)).backward()
        ReLU()
    """
    _use_kind(full=False)
    return add_hook(GLOBAL, GLOBAL._backward_hooks, hook)


def _use_kind(full: bool) -> None:
    if GLOBAL._backward_hooks and GLOBAL._is_full_backward_hook is not full:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module "
            "hook. Please use only one of them."
        )
    GLOBAL._is_full_backward_hook = full


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, buffer)`` when any module gets a buffer; it may return another.

    Example:
        >>> import plait_nn as nn
        >>> with nn.register_module_buffer_registration_hook(lambda m, name, buffer: print(name)):
        ...     layer = nn.BatchNorm1d(2)
        running_mean
        running_var
        num_batches_tracked
    """
    return add_hook(GLOBAL, GLOBAL._buffers, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, submodule)`` when a module gets a submodule; it may return another.

    Example:
        >>> import plait_nn as nn
        >>> with nn.register_module_module_registration_hook(lambda m, *new: print(*new)):
        ...     model = nn.Sequential(nn.ReLU(), nn.Tanh())
        0 ReLU()
        1 Tanh()
    """
    return add_hook(GLOBAL, GLOBAL._modules, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, param)`` when a module gets a parameter; it may return another.

    Example:
        >>> import plait_nn as nn
        >>> def frozen(module, name, param):
        ...     return param.requires_grad_(False)
        >>> with nn.register_module_parameter_registration_hook(frozen):
        ...     layer = nn.Linear(2, 2)
        >>> layer.weight.requires_grad
        False
    """
    return add_hook(GLOBAL, GLOBAL._parameters, hook)
