"""`torch._subclasses` and `torch._guards`: tensors without values and the state of PyTorch's
compiler, which plait does not have. tensordict and torchao use them.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

__all__ = [
    "FakeTensor",
    "TracingContext",
    "active_fake_mode",
    "detect_fake_mode",
    "is_fake",
    "unset_fake_temporarily",
]


class FakeTensor:
    """A class without instances."""


def is_fake(x: Any) -> bool:
    """Return False."""
    return False


def active_fake_mode() -> None:
    """Return None: no mode makes fake tensors."""


def detect_fake_mode(inputs: Any = None) -> None:
    """Return None: no input belongs to a mode that makes fake tensors."""


def unset_fake_temporarily() -> AbstractContextManager[None]:
    """Return a context with None, the mode that was active: no mode makes fake tensors.

    Example:
        >>> from plait_torch._fake_tensors import unset_fake_temporarily
        >>> with unset_fake_temporarily() as mode:
        ...     mode is None
        True
    """
    return nullcontext()


class TracingContext:
    """What PyTorch's compiler knows while it traces; nothing is compiled here."""

    @staticmethod
    def try_get() -> None:
        """Return None: nothing is traced."""

    @staticmethod
    def get() -> Any:
        """Raise RuntimeError: nothing is traced."""
        raise RuntimeError("TracingContext.get: nothing is traced: plait compiles nothing")
