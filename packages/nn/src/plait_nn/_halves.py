"""Arithmetic on float16 and bfloat16 in float32, as operators do it (docs/design/0007)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import plait_core as pc
from plait_core import Tensor

HALVES = (pc.float16, pc.bfloat16)

F = TypeVar("F", bound=Callable[..., Any])


def widened(tensor: Tensor) -> Tensor:
    """Return halves as float32, and other tensors as they are."""
    return tensor.float() if tensor.dtype in HALVES else tensor


def in_float32(function: F) -> F:
    """Let a function compute halves in float32, and round its result once.

    The result has the dtype of the halves, or float32 beside another floating-point dtype. The
    function must write none of its arguments.
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        dtypes = {
            each.dtype
            for each in (*args, *kwargs.values())
            if isinstance(each, Tensor) and each.is_floating_point()
        }
        if dtypes.isdisjoint(HALVES):
            return function(*args, **kwargs)
        wide = [widened(each) if isinstance(each, Tensor) else each for each in args]
        named = {k: widened(v) if isinstance(v, Tensor) else v for k, v in kwargs.items()}
        result = function(*wide, **named)
        return result.to(dtypes.pop()) if len(dtypes) == 1 else result

    return call  # type: ignore[return-value]
