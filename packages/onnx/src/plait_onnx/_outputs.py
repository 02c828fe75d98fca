"""Functions whose results are tensors alone, in the order of the containers that they return."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import plait_core as pc
import plait_nn

__all__ = ["only_tensors"]


def only_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with the tensors of the results of another one.

    Mappings and dataclasses stand for their values, and None is left out.
    """
    target = function.forward if isinstance(function, plait_nn.Module) else function
    result = functools.partial(_call, function)
    with contextlib.suppress(TypeError, ValueError):  # some have no signature
        result.__signature__ = inspect.signature(target)  # type: ignore[attr-defined]
    return result


def _call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[pc.Tensor, ...]:
    return tuple(_tensors(function(*args, **kwargs)))


def _tensors(result: Any) -> Iterator[pc.Tensor]:
    if isinstance(result, pc.Tensor):
        yield result
    elif result is None:
        return
    elif isinstance(result, Mapping):
        yield from (each for part in result.values() for each in _tensors(part))
    elif isinstance(result, (tuple, list)):
        yield from (each for part in result for each in _tensors(part))
    elif dataclasses.is_dataclass(result):
        for field in dataclasses.fields(result):
            yield from _tensors(getattr(result, field.name))
    else:
        raise TypeError(
            f"export: a result is {type(result).__name__}; a graph returns tensors, in containers"
        )
