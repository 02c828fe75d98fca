"""The parts of `torch.fx` that modules use: marks for a tracer that plait does not have."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["Proxy", "get_proxy_mode", "has_side_effect", "is_fx_tracing", "wrap"]

T = TypeVar("T")


class Proxy:
    """A class without instances: nothing is traced."""


def wrap(fn_or_name: T) -> T:
    """Return the function, or its name, unchanged: a mark for a tracer."""
    return fn_or_name


def has_side_effect(fn: T) -> T:
    """Return the function unchanged: a mark for a tracer."""
    return fn


def is_fx_tracing() -> bool:
    """Return False: nothing is traced."""
    return False


def get_proxy_mode() -> None:
    """Return None: nothing is traced."""
    return None
