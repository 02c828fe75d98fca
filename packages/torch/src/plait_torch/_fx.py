"""`torch.fx` as far as modules touch it: marks for a tracer that is not there."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["Proxy", "get_proxy_mode", "has_side_effect", "is_fx_tracing", "wrap"]

T = TypeVar("T")


class Proxy:
    """A class without instances: nothing is traced."""


def wrap(fn_or_name: T) -> T:
    """Return the function, or its name, as it is: a mark for a tracer."""
    return fn_or_name


def has_side_effect(fn: T) -> T:
    """Return the function as it is: a mark for a tracer."""
    return fn


def is_fx_tracing() -> bool:
    """Return False: nothing is traced."""
    return False


def get_proxy_mode() -> None:
    """Return None: nothing is traced."""
    return None
