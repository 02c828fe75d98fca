"""`torch.compiler` and `torch.compile`: the callable itself."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import plait
from plait_torch._compiled_module import OptimizedModule

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
]

T = TypeVar("T")


def compile(model: Any = None, **options: Any) -> Any:
    """Return the function unchanged, or a module in an `OptimizedModule`, as PyTorch does; without
    one, return a decorator that does so.

    PyTorch compiles it, with the same results up to rounding. Plait runs it as Python code.

    Example:
        >>> from plait_torch._compiler import compile
        >>> @compile(fullgraph=True)
        ... def double(x):
        ...     return x * 2
        >>> double(3)
        6
    """
    if model is None:
        return functools.partial(compile, **options)
    wrapped = isinstance(model, plait.nn.Module) and not options.get("disable")
    return OptimizedModule(model) if wrapped else model


def _same(obj: T, *args: Any, **kwargs: Any) -> T:
    return obj


def disable(fn: Any = None, recursive: bool = True, **kwargs: Any) -> Any:
    """Return the function unchanged; without one, return a decorator that does so."""
    return _same if fn is None else fn


allow_in_graph = assume_constant_result = _same


def is_compiling() -> bool:
    """Return False."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def list_backends(exclude_tags: Any = ()) -> list[str]:
    """Return []: there are no compilers."""
    return []


def reset() -> None:
    """Do nothing: nothing was compiled."""


def cudagraph_mark_step_begin() -> None:
    """Do nothing."""


class set_stance:  # noqa: N801 - PyTorch's name
    """Do nothing, as a function and as a context manager."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function
