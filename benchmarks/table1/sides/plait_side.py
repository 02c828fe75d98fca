"""plait."""

from __future__ import annotations

from collections.abc import Callable

import plait
from sides import eager

__all__ = ["prepare", "version"]


def version() -> str:
    """The installed version."""
    return str(plait.__version__)


def prepare(model: str, mode: str, batch: int, threads: int, tuned: bool) -> Callable[[], float]:
    """A step of the model."""
    return eager.prepare(plait, model, mode, batch, threads, tuned)
