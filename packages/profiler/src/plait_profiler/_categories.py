"""Categories of storages in a profile of memory, which steps of optimizers and profiles record."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from plait_profiler._library import observer
from plait_profiler._modules import root_modules

# the numbers of plait_profiler._recording.Category
_PARAMETER, _GRADIENT, _STATE = 1, 2, 3

_watchers = 0
_handles: list[Any] = []


def watch_categories() -> Callable[[], None]:
    """Mark parameters, gradients and states of optimizers, and return a function that ends this."""
    global _watchers
    _watchers += 1
    optim = sys.modules.get("plait_optim")
    if _watchers == 1 and optim is not None:
        _handles.append(optim.register_optimizer_step_pre_hook(_before_step))
        _handles.append(optim.register_optimizer_step_post_hook(_after_step))
    return _unwatch


def _unwatch() -> None:
    global _watchers
    _watchers -= 1
    while _watchers == 0 and _handles:
        _handles.pop().remove()


def mark_modules() -> None:
    """Mark the parameters, and their gradients, of the modules that the program calls."""
    for module in root_modules():
        _mark(list(module.parameters()))


def _before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    _mark([each for group in optimizer.param_groups for each in group["params"]])


def _mark(parameters: list[Any]) -> None:
    native = observer()
    native.mark(parameters, _PARAMETER)
    gradients = [getattr(each, "grad", None) for each in parameters]
    native.mark([each for each in gradients if each is not None], _GRADIENT)


def _after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    observer().mark(list(_tensors(dict(optimizer.state))), _STATE)


def _tensors(value: Any) -> Iterator[Any]:
    """Return all that may be tensors in nested dictionaries and lists."""
    if isinstance(value, dict):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors(each)
    elif hasattr(value, "shape"):
        yield value
