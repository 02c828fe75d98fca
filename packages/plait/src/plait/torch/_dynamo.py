"""`torch._dynamo` as far as programs touch it: settings, and what they call beside `compile`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from plait.torch._compiler import allow_in_graph, disable, is_compiling, reset

__all__ = [
    "allow_in_graph",
    "config",
    "disable",
    "graph_break",
    "is_compiling",
    "mark_dynamic",
    "optimize",
    "reset",
]

# settings that programs assign; nothing reads them
config = ModuleType("torch._dynamo.config", "Settings of a compiler that is not there.")


def graph_break() -> None:
    """Do nothing."""


def mark_dynamic(tensor: Any, index: Any, **kwargs: Any) -> None:
    """Do nothing."""


def optimize(*args: Any, **kwargs: Any) -> Any:
    """Return a decorator that returns its function."""
    return allow_in_graph
