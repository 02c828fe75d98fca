"""Compiled modules, which are modules: parts of others, with parameters and hooks."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import plait_nn
from plait_graph._deferred import Deferred
from plait_graph._frozen import Compiled


def _forwarded(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = getattr(self._orig_mod, name)(*args, **kwargs)
        return self if result is self._orig_mod else result

    return call


class _AModule(plait_nn.Module):
    """The methods of a module, which are those of the module that was compiled."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, method in inspect.getmembers(plait_nn.Module, inspect.isfunction):
            if not (name.startswith("__") or hasattr(Compiled, name)):
                setattr(cls, name, _forwarded(name, method))

    def __repr__(self) -> str:
        return repr(self._orig_mod)


class CompiledModule(Compiled, _AModule):
    """A module that was compiled with ``frozen=True``."""


class DeferredModule(Deferred, _AModule):
    """A module that was compiled."""
