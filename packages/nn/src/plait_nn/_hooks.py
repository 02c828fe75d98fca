"""Hooks of modules: storage and removal."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

__all__ = [
    "GLOBAL",
    "Hook",
    "RemovableHandle",
    "WithoutModule",
    "add_hook",
    "adopt_hooks",
    "all_hooks",
    "check_kind",
    "forget_hooks",
    "hooks_of",
    "settle",
]

_ids = itertools.count()


class Hook(NamedTuple):
    """A registered hook and the options of its calls."""

    function: Callable[..., Any]
    with_kwargs: bool = False
    always_call: bool = False
    only_watches: bool = False  # it uses and changes neither arguments nor outputs


# the kinds of hooks that a call of a module runs
_OF_CALLS = (
    "_forward_pre_hooks",
    "_forward_hooks",
    "_backward_pre_hooks",
    "_backward_hooks",
    "_operator_hooks",
)
# the kinds of hooks that state_dict and load_state_dict run
_OF_STATES = (
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class _Global:
    """The hooks of all modules, with the same attributes as a module's own hooks."""

    _hooked = False  # whether there are hooks that a call must run
    _separate = False  # whether there are hooks that read or change what modules give each other


GLOBAL = _Global()


class RemovableHandle:
    """A handle that removes a hook; also a context manager.

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

    # a handle that a module keeps goes with the module into pickles and copies
    def __getstate__(self) -> tuple[Any, ...]:
        owner = self._owner() if self._owner is not None else None
        return None if owner is GLOBAL else owner, self._hooks, self.id

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        owner, self._hooks, self.id = state
        self._owner = None if owner is None else weakref.ref(owner)


class WithoutModule:
    """A hook that is called without its first argument, the module."""

    def __init__(self, hook: Callable[..., Any]) -> None:
        self._hook = hook

    def __call__(self, module: object, *rest: Any) -> Any:
        return self._hook(*rest)


def hooks_of(owner: object, hooks: str) -> dict[int, Hook]:
    """Return the owner's hooks of one kind; the dict is made at the first registration."""
    found: dict[int, Hook] | None = owner.__dict__.get(hooks)
    return {} if found is None else found


def all_hooks(module: object, hooks: str) -> Sequence[tuple[int, Hook]]:
    """Return the hooks of one kind of every module, then the module's own, with their numbers."""
    of_all: dict[int, Hook] | None = GLOBAL.__dict__.get(hooks)
    own: dict[int, Hook] | None = module.__dict__.get(hooks)
    if not own:
        return list(of_all.items()) if of_all else ()
    return [*of_all.items(), *own.items()] if of_all else list(own.items())


def add_hook(owner: object, hooks: str, hook: Hook, prepend: bool = False) -> RemovableHandle:
    """Register ``hook`` in the owner's dict named ``hooks``, at its end or its beginning."""
    if not callable(hook.function):
        raise TypeError(
            f"{'Module' if owner is GLOBAL else type(owner).__name__}: a hook must be callable; "
            f"got {type(hook.function).__name__}"
        )
    handle = RemovableHandle(owner, hooks)
    registered: dict[int, Hook] = owner.__dict__.setdefault(hooks, {})
    while handle.id in registered:  # hooks of a pickle have numbers of another process
        handle.id = next(_ids)
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
    """Update whether calls of the owner have hooks to run."""
    attributes = owner.__dict__
    attributes["_hooked"] = any(attributes.get(hooks) for hooks in _OF_CALLS)
    if owner is GLOBAL:
        attributes["_separate"] = any(
            not hook.only_watches for hooks in _OF_CALLS for hook in hooks_of(owner, hooks).values()
        )


def forget_hooks(owner: object) -> None:
    """Remove every hook of a module whose ``__init__`` runs again."""
    for hooks in (*_OF_CALLS, *_OF_STATES, "_hooked"):
        owner.__dict__.pop(hooks, None)


def adopt_hooks(owner: object) -> None:
    """Convert hooks in a pickled state of PyTorch's form, bare functions, to ours."""
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


def check_kind(module: object, full: bool) -> None:
    """Raise for a mix of hooks of `register_full_backward_hook` and `register_backward_hook`."""
    other = "_operator_hooks" if full else "_backward_hooks"
    if hooks_of(module, other):
        raise RuntimeError(
            "register_full_backward_hook and register_backward_hook: one of both is required for a "
            "module; got both"
        )
