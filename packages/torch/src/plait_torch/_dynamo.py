"""The parts of `torch._dynamo` that programs use: settings, and functions besides `compile`."""

from __future__ import annotations

from contextlib import nullcontext
from types import ModuleType
from typing import Any

import plait
from plait_torch._compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
)

__all__ = [
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

# settings that programs assign, which have no effect
config = ModuleType("torch._dynamo.config", "Settings of a compiler that plait does not have.")


def graph_break() -> None:
    """Do nothing."""


def mark_dynamic(tensor: Any, index: Any, **kwargs: Any) -> None:
    """Do nothing."""


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Do nothing."""


maybe_mark_dynamic = mark_dynamic


def _never() -> bool:
    """Return False: there is no compiler."""
    return False


def is_compile_supported(device_type: Any) -> bool:
    """Return False: there is no compiler."""
    return False


is_dynamo_supported = is_inductor_supported = _never


class OptimizedModule(plait.nn.Module):
    """The class of compiled modules in PyTorch, without instances: `compile` returns the module."""


class TransformGetItemToIndex(nullcontext[None]):
    """Does nothing, as in `vmap`, which is a loop, 0-d tensors can be indices."""


def optimize(*args: Any, **kwargs: Any) -> Any:
    """Return a decorator that returns its function."""
    return allow_in_graph
