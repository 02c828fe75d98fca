"""Hooks of modules: how they are kept, removed and run."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from plait_nn._module import Module

__all__ = [
    "GLOBAL",
    "Hook",
    "RemovableHandle",
    "add_hook",
    "adopt_hooks",
    "call_with_hooks",
    "forget_hooks",
    "hooks_of",
    "settle",
]

_ids = itertools.count()


class Hook(NamedTuple):
    """A registered hook and how it wants to be called."""

    function: Callable[..., Any]
    with_kwargs: bool = False
    always_call: bool = False


# those that a call of a module runs
_OF_CALLS = (
    "_forward_pre_hooks",
    "_forward_hooks",
    "_backward_pre_hooks",
    "_backward_hooks",
    "_operator_hooks",
)
# those that run when a state is taken or put back
_OF_STATES = (
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class _Global:
    """The hooks of every module; what calls them looks here as it looks at a module."""

    _hooked = False  # whether a call has to look for hooks


GLOBAL = _Global()


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

    def __init__(self, owner: object, hooks: str) -> None:
        self.id = next(_ids)
        self._owner: weakref.ref[object] | None = weakref.ref(owner)
        self._hooks = hooks

    def remove(self) -> None:
        """Remove the hook. Calling it again does nothing."""
        owner = self._owner() if self._owner is not None else None
        if owner is not None:
            hooks_of(owner, self._hooks).pop(self.id, None)
            settle(owner)
        self._owner = None

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("RemovableHandle: a handle belongs to one module and can't be pickled")


def hooks_of(owner: object, hooks: str) -> dict[int, Hook]:
    """The owner's hooks of one kind; nothing is kept until something is registered."""
    found: dict[int, Hook] | None = owner.__dict__.get(hooks)
    return {} if found is None else found


def add_hook(owner: object, hooks: str, hook: Hook, prepend: bool = False) -> RemovableHandle:
    """Register ``hook`` in the owner's dict named ``hooks``, at its end or its beginning."""
    if not callable(hook.function):
        raise TypeError(
            f"{'Module' if owner is GLOBAL else type(owner).__name__}: a hook must be callable; "
            f"got {type(hook.function).__name__}"
        )
    handle = RemovableHandle(owner, hooks)
    registered: dict[int, Hook] = owner.__dict__.setdefault(hooks, {})
    if prepend:
        others = dict(registered)
        registered.clear()
        registered[handle.id] = hook
        registered.update(others)
    else:
        registered[handle.id] = hook
    settle(owner)
    return handle


def settle(owner: object) -> None:
    """Note whether calls of the owner have hooks to run."""
    owner.__dict__["_hooked"] = any(owner.__dict__.get(hooks) for hooks in _OF_CALLS)


def forget_hooks(owner: object) -> None:
    """Remove every hook of a module that is made anew."""
    for hooks in (*_OF_CALLS, *_OF_STATES, "_hooked"):
        owner.__dict__.pop(hooks, None)


def adopt_hooks(owner: object) -> None:
    """Make the hooks of a state that PyTorch's modules have, bare functions, ours."""
    attributes = owner.__dict__
    if attributes.get("_is_full_backward_hook") is False:
        attributes["_operator_hooks"] = attributes.pop("_backward_hooks", {})
    for hooks in (*_OF_CALLS, *_OF_STATES):
        with_kwargs = attributes.get(f"{hooks}_with_kwargs", ())
        always = attributes.get(f"{hooks}_always_called", ())
        found: dict[int, Any] = hooks_of(owner, hooks)
        for number, hook in found.items():
            if not isinstance(hook, Hook):
                found[number] = Hook(hook, number in with_kwargs, number in always)
    if "_hooked" not in attributes and "_parameters" in attributes:
        settle(owner)


def _all(module: Module, hooks: str) -> list[tuple[int, Hook]]:
    """The hooks of every module, then the module's own."""
    return [*hooks_of(GLOBAL, hooks).items(), *hooks_of(module, hooks).items()]


def call_with_hooks(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the module's forward between its hooks."""
    from plait_nn._backward_hooks import Passage, hook_result  # seldom needed

    ran: set[int] = set()
    result: Any = None
    try:
        for _, hook in _all(module, "_forward_pre_hooks"):
            args, kwargs = _before(module, hook, args, kwargs)
        passage = Passage.of(module)
        if passage is not None:
            args = passage.enter(args)
        result = module.forward(*args, **kwargs)
        for number, hook in _all(module, "_forward_hooks"):
            ran.add(number)
            result = _after(module, hook, args, kwargs, result)
        if passage is not None:
            result = passage.leave(result)
        hook_result(module, result)
    except Exception:
        # hooks that free or close something run in any case; the first error is the one to see
        for number, hook in _all(module, "_forward_hooks"):
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
