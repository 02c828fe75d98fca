"""Forward hooks: how they are kept, removed and run."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from plait_nn._module import Module

__all__ = ["Hook", "RemovableHandle", "add_hook", "call_with_hooks"]

_ids = itertools.count()


class Hook(NamedTuple):
    """A registered hook and how it wants to be called."""

    function: Callable[..., Any]
    with_kwargs: bool
    always_call: bool


class RemovableHandle:
    """Removes the hook it was returned for; also as a context manager.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> layer = nn.Identity()
        >>> with layer.register_forward_hook(lambda module, args, output: output + 1):
        ...     layer(pc.zeros(2)).tolist()
        [1.0, 1.0]
        >>> layer(pc.zeros(2)).tolist()
        [0.0, 0.0]
    """

    def __init__(self, module: Module, hooks: str) -> None:
        self.id = next(_ids)
        self._module: weakref.ref[Module] | None = weakref.ref(module)
        self._hooks = hooks

    def remove(self) -> None:
        """Remove the hook. Calling it again does nothing."""
        module = self._module() if self._module is not None else None
        if module is not None:
            getattr(module, self._hooks).pop(self.id, None)
        self._module = None

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("RemovableHandle: a handle belongs to one module and can't be pickled")


def add_hook(module: Module, hooks: str, hook: Hook, prepend: bool) -> RemovableHandle:
    """Register ``hook`` in the module's dict named ``hooks``, at its end or its beginning."""
    if not callable(hook.function):
        raise TypeError(
            f"{type(module).__name__}: a hook must be callable; got {type(hook.function).__name__}"
        )
    handle = RemovableHandle(module, hooks)
    registered: dict[int, Hook] = getattr(module, hooks)
    if prepend:
        others = dict(registered)
        registered.clear()
        registered[handle.id] = hook
        registered.update(others)
    else:
        registered[handle.id] = hook
    return handle


def call_with_hooks(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the module's forward between its hooks."""
    ran: set[int] = set()
    result: Any = None
    try:
        for hook in list(module._forward_pre_hooks.values()):
            args, kwargs = _before(module, hook, args, kwargs)
        result = module.forward(*args, **kwargs)
        for number, hook in list(module._forward_hooks.items()):
            ran.add(number)
            result = _after(module, hook, args, kwargs, result)
    except Exception:
        # hooks that free or close something run in any case; the first error is the one to see
        for number, hook in list(module._forward_hooks.items()):
            if hook.always_call and number not in ran:
                try:
                    _after(module, hook, args, kwargs, result)
                except Exception:
                    continue
        raise
    return result


def _before(
    module: Module, hook: Hook, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if not hook.with_kwargs:
        changed = hook.function(module, args)
        if changed is None:
            return args, kwargs
        return (changed if isinstance(changed, tuple) else (changed,)), kwargs
    changed = hook.function(module, args, kwargs)
    if changed is None:
        return args, kwargs
    if not (isinstance(changed, tuple) and len(changed) == 2):
        raise RuntimeError(
            f"{type(module).__name__}: a forward pre-hook with kwargs must return None or a tuple "
            f"(args, kwargs); got {type(changed).__name__}"
        )
    return changed[0], changed[1]


def _after(
    module: Module, hook: Hook, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
) -> Any:
    if hook.with_kwargs:
        changed = hook.function(module, args, kwargs, result)
    else:
        changed = hook.function(module, args, result)
    return result if changed is None else changed
