"""The path of the module whose forward runs, for events."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

from plait_profiler._library import observer

_watchers = 0
_handles: list[Any] = []


def watch_modules() -> Callable[[], None]:
    """Let events have the path of their module, and return a function that ends this.

    The modules are those of the package that is imported as `plait_nn`. Nothing is done where there
    is none.
    """
    global _watchers
    _watchers += 1
    nn = sys.modules.get("plait_nn")
    if _watchers == 1 and nn is not None:
        native = observer()
        native.name_modules(_describe)
        # what is profiled is what runs otherwise: layers that run together still do
        enter, leave = native.enter_module, native.leave_module
        _handles.append(nn.register_module_forward_pre_hook(enter, only_watches=True))
        _handles.append(nn.register_module_forward_hook(leave, always_call=True, only_watches=True))
    return _unwatch


def _unwatch() -> None:
    global _watchers
    _watchers -= 1
    if _watchers == 0 and _handles:
        while _handles:
            _handles.pop().remove()
        observer().name_modules(None)
        _roots.clear()
        _inner.clear()


_roots: list[weakref.ref[Any]] = []


def root_modules() -> list[Any]:
    """Return the modules that the program itself has called since the profile began."""
    return [module for module in (each() for each in _roots) if module is not None]


def _describe(around: str | None, parent: Any, module: Any) -> tuple[str, str]:
    """Return the path and the type of a module that `parent`, of the path `around`, calls."""
    kind = type(module).__name__
    if around is None:
        _roots.append(weakref.ref(module))
        return kind, kind
    return f"{around}.{_name_within(parent, module) or kind}", kind


_inner: dict[int, tuple[Any, dict[int, tuple[Any, str]]]] = {}
"""Modules that called others, and the modules within them with their names, by `id`."""


def _name_within(parent: Any, module: Any) -> str:
    _, names = _inner.get(id(parent), (parent, {}))
    if id(module) not in names:
        try:
            names = {id(each): (each, name) for name, each in parent.named_modules()}
        except Exception:  # a profile must not fail where a program's own method does
            return ""
        # also of one that is elsewhere, so that it is not looked for at each call
        names.setdefault(id(module), (module, ""))
        _inner[id(parent)] = parent, names
    return names[id(module)][1]
