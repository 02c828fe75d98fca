"""PyTorch, as it is and tuned."""

from __future__ import annotations

from collections.abc import Callable

import torch

from sides import eager

__all__ = ["prepare", "version"]


def version() -> str:
    """The installed version."""
    return str(torch.__version__)


def prepare(model: str, mode: str, batch: int, threads: int, tuned: bool) -> Callable[[], float]:
    """A step of the model."""
    return eager.prepare(torch, model, mode, batch, threads, tuned)
