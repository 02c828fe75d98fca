"""The methods of `Module` that register hooks, and the functions that do so for all modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_nn._backward_hooks import check_kind
from plait_nn._hooks import GLOBAL, Hook, RemovableHandle, add_hook

__all__ = [
    "HookMethods",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]


class HookMethods:
    """What registers hooks of one module."""

    _hooked: bool  # whether a call has hooks to run

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before every ``forward``.

        It returns None or new positional arguments. With ``with_kwargs`` it is called as
        ``hook(module, args, kwargs)`` and returns None or ``(args, kwargs)``.
        """
        return add_hook(self, "_forward_pre_hooks", Hook(hook, with_kwargs), prepend)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after every ``forward``.

        It returns None or a new output. With ``with_kwargs`` it is called as
        ``hook(module, args, kwargs, output)``; with ``always_call`` also when ``forward`` raised.
        """
        return add_hook(self, "_forward_hooks", Hook(hook, with_kwargs, always_call), prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the inputs' gradients are there.

        Both are tuples with one gradient for each positional argument and each result, None where
        that is no tensor. The hook returns None or new gradients of the inputs; it must not write
        the ones it got. Where no input requires grad it runs when the results' gradients are
        there, with None for each input. Keyword arguments take no part, and inputs and results
        can't be written in place by the module and its callers.

        Example:
            >>> import plait_core as pc, plait_nn as nn
            >>> layer = nn.Linear(2, 3)
            >>> def show(module, grad_input, grad_output):
            ...     print(tuple(grad_input[0].shape), tuple(grad_output[0].shape))
            >>> handle = layer.register_full_backward_hook(show)
            >>> layer(pc.ones(4, 2, requires_grad=True)).sum().backward()
            (4, 2) (4, 3)
        """
        check_kind(self, full=True)
        return add_hook(self, "_backward_hooks", Hook(hook), prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before the module's backward pass.

        It returns None or the gradients of the results to use instead.

        Example:
            >>> import plait_core as pc, plait_nn as nn
            >>> layer = nn.Identity()
            >>> handle = layer.register_full_backward_pre_hook(lambda m, grads: (grads[0] * 10,))
            >>> x = pc.ones(1, requires_grad=True)
            >>> layer(x).backward()
            >>> x.grad
            tensor([10.])
        """
        return add_hook(self, "_backward_pre_hooks", Hook(hook), prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Hang ``hook(module, grad_input, grad_output)`` on the operator that made the result.

        For programs that have it: the gradients are those of the module's last operator alone. Use
        `register_full_backward_hook`.
        """
        check_kind(self, full=False)
        return add_hook(self, "_operator_hooks", Hook(hook))

    # ---- of states -----------------------------------------------------------------------------

    def register_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before ``state_dict`` takes the members."""
        return add_hook(self, "_state_dict_pre_hooks", Hook(hook))

    def register_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after ``state_dict``.

        It may change the state in place. It sees what the modules below have added.

        Example:
            >>> import plait_nn as nn
            >>> layer = nn.Linear(1, 1)
            >>> def forget(module, state, prefix, metadata):
            ...     del state[prefix + "bias"]
            >>> handle = layer.register_state_dict_post_hook(forget)
            >>> list(layer.state_dict())
            ['weight']
        """
        return add_hook(self, "_state_dict_hooks", Hook(hook))

    def register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call a hook before ``load_state_dict`` looks for the module's members.

        It is called as ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)`` and may change ``state_dict``, a copy of what was given.

        Example:
            >>> import plait_core as pc, plait_nn as nn
            >>> layer = nn.Linear(1, 1, bias=False)
            >>> def rename(module, state, prefix, *rest):
            ...     state[prefix + "weight"] = state.pop(prefix + "kernel")
            >>> handle = layer.register_load_state_dict_pre_hook(rename)
            >>> layer.load_state_dict({"kernel": pc.ones(1, 1)})
            <All keys matched successfully>
        """
        return add_hook(self, "_load_state_dict_pre_hooks", Hook(hook))

    def register_load_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after ``load_state_dict`` wrote the members.

        It may take names from ``incompatible_keys.missing_keys`` and ``unexpected_keys``; what is
        left is an error if the loading is strict. Because of that a module that has such a hook is
        written before the names are compared; shapes are compared first all the same.
        """
        return add_hook(self, "_load_state_dict_post_hooks", Hook(hook))

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Like `register_state_dict_post_hook`, but the hook may return another state."""
        return add_hook(self, "_state_dict_hooks", Hook(hook, True))

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., None], with_module: bool = False
    ) -> RemovableHandle:
        """Like `register_load_state_dict_pre_hook`; the module is given only on demand."""
        called = hook if with_module else (lambda module, *rest: hook(*rest))
        return add_hook(self, "_load_state_dict_pre_hooks", Hook(called))


# ---- of all modules --------------------------------------------------------------------------


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, args)`` before the ``forward`` of every module there is.

    Hooks of all modules run before a module's own. For debugging: a library should not use them.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> with nn.register_module_forward_pre_hook(lambda m, args: print(m._get_name())):
        ...     _ = nn.Sequential(nn.ReLU(), nn.Tanh())(pc.ones(1))
        Sequential
        ReLU
        Tanh
    """
    return add_hook(GLOBAL, "_forward_pre_hooks", Hook(hook))


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after the ``forward`` of every module there is.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> with nn.register_module_forward_hook(lambda m, args, output: output * 2):
        ...     nn.Sequential(nn.ReLU())(pc.ones(1)).tolist()
        [4.0]
    """
    return add_hook(GLOBAL, "_forward_hooks", Hook(hook, with_kwargs, always_call))


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
    check_kind(GLOBAL, full=True)
    return add_hook(GLOBAL, "_backward_hooks", Hook(hook))


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` before the backward pass of every module.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> with nn.register_module_full_backward_pre_hook(lambda m, grads: print(grads)):
        ...     nn.ReLU()(pc.tensor(1.0, requires_grad=True)).backward()
        (tensor(1.),)
    """
    return add_hook(GLOBAL, "_backward_pre_hooks", Hook(hook))


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Hang ``hook(module, grad_input, grad_output)`` on the last operator of every module.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> with nn.register_module_backward_hook(lambda m, inner, outer: print(m)):
        ...     nn.ReLU()(pc.ones(1, requires_grad=True)).backward()
        ReLU()
    """
    check_kind(GLOBAL, full=False)
    return add_hook(GLOBAL, "_operator_hooks", Hook(hook))


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
    return add_hook(GLOBAL, "_buffers", Hook(hook))


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, submodule)`` when any module gets one; it may return another.

    Example:
        >>> import plait_nn as nn
        >>> with nn.register_module_module_registration_hook(lambda m, *new: print(*new)):
        ...     model = nn.Sequential(nn.ReLU(), nn.Tanh())
        0 ReLU()
        1 Tanh()
    """
    return add_hook(GLOBAL, "_modules", Hook(hook))


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, name, param)`` when any module gets one; it may return another.

    Example:
        >>> import plait_nn as nn
        >>> def frozen(module, name, param):
        ...     return param.requires_grad_(False)
        >>> with nn.register_module_parameter_registration_hook(frozen):
        ...     layer = nn.Linear(2, 2)
        >>> layer.weight.requires_grad
        False
    """
    return add_hook(GLOBAL, "_parameters", Hook(hook))
