"""Hooks: the dicts that hold them, those of one module and those of all modules."""

from __future__ import annotations

import functools
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

Hooks = dict[int, Callable[..., Any]]

# the kinds of hooks that a call of a module runs
_OF_CALLS = ("_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_pre_hooks")


class _Global:
    """The hooks of all modules, with the same attributes as a module's own hooks."""

    def __init__(self) -> None:
        # lookups in C keep these four
        self._backward_pre_hooks: Hooks = OrderedDict()
        self._backward_hooks: Hooks = OrderedDict()
        self._forward_hooks: Hooks = OrderedDict()
        self._forward_pre_hooks: Hooks = OrderedDict()
        self._is_full_backward_hook: bool | None = None
        self._forward_hooks_with_kwargs: dict[int, bool] = OrderedDict()
        self._forward_hooks_always_called: dict[int, bool] = OrderedDict()
        # hooks that use and change neither arguments nor outputs
        self._only_watching: dict[int, bool] = OrderedDict()
        # hooks of registrations, by the dict into which a module puts the member
        self._parameters: Hooks = OrderedDict()
        self._buffers: Hooks = OrderedDict()
        self._modules: Hooks = OrderedDict()

    @property
    def _hooked(self) -> bool:
        """Whether there are hooks that a call must run."""
        return bool(
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
        )

    @property
    def _separate(self) -> bool:
        """Whether there are hooks that read or change what modules give each other."""
        return self._hooked and any(
            number not in self._only_watching
            for kind in _OF_CALLS
            for number in getattr(self, kind)
        )


GLOBAL = _Global()
_numbering = threading.Lock()


class RemovableHandle:
    """A handle that removes a hook; also a context manager.

    Args:
        hooks_dict: The dict that has the hook, or will have it, under the handle's ``id``.
        extra_dict: A dict, or a list of dicts, that lose what they have under this ``id`` too.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.Identity()
        >>> with layer.register_forward_hook(lambda module, args, output: output + 1):
        ...     layer(pc.zeros(2)).tolist()
        [1.0, 1.0]
        >>> layer(pc.zeros(2)).tolist()
        [0.0, 0.0]
    """

    id: int
    next_id: int = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        with _numbering:
            self.id = RemovableHandle.next_id
            RemovableHandle.next_id += 1
        extra = [extra_dict] if isinstance(extra_dict, dict) else extra_dict or ()
        self.extra_dict_ref = tuple(weakref.ref(each) for each in extra)

    def remove(self) -> None:
        """Remove the hook. Calling it again does nothing."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            result = ref()
            if result is not None:
                result.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    # a handle that a module keeps goes with the module into pickles and copies
    def __getstate__(self) -> tuple[Any, ...]:
        return self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        hooks, self.id, *extra = state
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        result = (extra[0] or ()) if extra else ()
        self.extra_dict_ref = tuple(weakref.ref(each) for each in result if each is not None)
        with _numbering:
            RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)


class WrappedHook:
    """A hook of loading: it is called with its module first, if there is one.

    It keeps the module by a weak reference; pickles and copies have the module itself.
    """

    def __init__(self, hook: Callable[..., Any], module: Any = None) -> None:
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        if self.with_module:
            self.module: weakref.ref[Any] = weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("the module of this hook no longer exists")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hook = state["hook"]
        self.with_module = state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("a hook is read from a state whose module did not exist")
            self.module = weakref.ref(state["module"])


def add_hook(
    owner: object,
    hooks: Any,
    hook: Callable[..., Any],
    *,
    options: tuple[tuple[dict[int, bool], bool], ...] = (),
    prepend: bool = False,
) -> RemovableHandle:
    """Register ``hook`` in the dict ``hooks`` of the owner, at its end or its beginning.

    ``options`` are the dicts of the owner's options of hooks, each with whether this hook has it.
    """
    if not callable(hook):
        raise TypeError(
            f"{'Module' if owner is GLOBAL else type(owner).__name__}: a hook must be callable; "
            f"got {type(hook).__name__}"
        )
    handle = RemovableHandle(hooks, extra_dict=[option for option, _ in options])
    while handle.id in hooks:  # hooks of a pickle have numbers of another process
        handle.id = RemovableHandle(hooks).id
    hooks[handle.id] = hook
    for option, is_set in options:
        if is_set:
            option[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def is_hooked(module: Any) -> bool:
    """Return whether calls of a module have hooks of its own to run."""
    return bool(
        module._backward_hooks
        or module._backward_pre_hooks
        or module._forward_hooks
        or module._forward_pre_hooks
    )


def register_module_forward_pre_hook(
    hook: Callable[..., Any], *, only_watches: bool = False
) -> RemovableHandle:
    """Call ``hook(module, args)`` before the ``forward`` of every module.

    Hooks of all modules run before a module's own. For debugging: a library should not use them.
    With ``only_watches`` the hook promises to use no ``args``, so that modules may still run
    together (`plait.set_fusion`).

    Args:
        hook: The function to call.
        only_watches: Whether it changes nothing, so that layers may still run as one.

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
    may still run together (`plait.set_fusion`).

    Args:
        hook: The function to call.
        with_kwargs: Whether it gets the keyword arguments too.
        always_call: Whether it is called when ``forward`` raised.
        only_watches: Whether it changes nothing, so that layers may still run as one.

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

    Args:
        hook: The function to call.

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

    Args:
        hook: The function to call.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> with nn.register_module_full_backward_pre_hook(lambda m, grads: print(grads)):
        ...     nn.ReLU()(pc.tensor(1.0, requires_grad=True)).backward()
        (tensor(1.),)
    """
    return add_hook(GLOBAL, GLOBAL._backward_pre_hooks, hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` for the last operator of every module.

    Args:
        hook: The function to call.

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

    Args:
        hook: The function to call.

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

    Args:
        hook: The function to call.

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

    Args:
        hook: The function to call.

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
