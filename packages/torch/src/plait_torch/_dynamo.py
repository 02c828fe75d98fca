"""The parts of `torch._dynamo` that programs use: settings, and functions besides `compile`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import ModuleType
from typing import Any

from plait_torch._compiled_module import OptimizedModule
from plait_torch._compiler import (
    allow_in_graph,
    assume_constant_result,
    compile,
    disable,
    is_compiling,
    list_backends,
    reset,
)

__all__ = [
    "cudagraph_mark_step_begin",
    "OptimizedModule",
    "TransformGetItemToIndex",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "graph_break",
    "is_compile_supported",
    "is_dynamo_supported",
    "is_inductor_supported",
    "is_compiling",
    "mark_dynamic",
    "mark_static_address",
    "maybe_mark_dynamic",
    "list_backends",
    "optimize",
    "reset",
]

config = ModuleType("torch._dynamo.config", "Settings of PyTorch's compiler, which have no effect.")


@contextmanager
def _patch(arg: Any = None, value: Any = None, **changes: Any) -> Iterator[None]:
    """A context manager and decorator that changes settings: ``patch("name", value)``,
    ``patch({"name": value})`` or ``patch(name=value)``.

    Example:
        >>> from plait_torch._dynamo import config
        >>> config.cache_size_limit = 8
        >>> with config.patch(cache_size_limit=1):
        ...     config.cache_size_limit
        1
        >>> config.cache_size_limit
        8
    """
    argument = {arg: value} if isinstance(arg, str) else dict(arg or {})
    argument.update(changes)
    settings = config.__dict__
    before = {name: settings[name] for name in argument if name in settings}
    settings.update(argument)
    try:
        yield
    finally:
        for name in argument:
            settings.pop(name, None)
        settings.update(before)


config.__dict__["patch"] = _patch


def cudagraph_mark_step_begin() -> None:
    """Do nothing: there are no graphs of CUDA whose results a new step could overwrite."""


def graph_break() -> None:
    """Do nothing."""


def mark_dynamic(tensor: Any, index: Any, **kwargs: Any) -> None:
    """Do nothing."""


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Do nothing."""


maybe_mark_dynamic = mark_dynamic


def _never() -> bool:
    """Return False: there is no Dynamo, which translates the code of Python."""
    return False


def is_compile_supported(device_type: Any) -> bool:
    """Return False: there is no Dynamo for any type of device."""
    return False


is_dynamo_supported = is_inductor_supported = _never


class TransformGetItemToIndex(nullcontext[None]):
    """Does nothing, as in `vmap`, which is a loop, 0-d tensors can be indices."""


def optimize(
    backend: Any = "inductor", *, nopython: bool = False, disable: bool = False, **options: Any
) -> Any:
    """Return a decorator that is `torch.compile` with this backend.

    Example:
        >>> from plait_torch._dynamo import optimize
        >>> optimize("eager")(len) is len
        True
    """
    return compile(backend=backend, fullgraph=nopython, disable=disable)
