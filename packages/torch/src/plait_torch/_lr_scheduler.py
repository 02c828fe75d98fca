"""Additions to plait's `lr_scheduler`, for schedulers of others."""

from __future__ import annotations

from collections import Counter
from typing import Any

from plait.optim import Optimizer
from plait.optim.lr_scheduler import LRScheduler

__all__ = ["Counter", "Optimizer", "_LRScheduler", "_enable_get_lr_call"]

_LRScheduler = LRScheduler


class _enable_get_lr_call:  # noqa: N801 - PyTorch's name
    """A context manager in which a scheduler's `get_lr` gives no warning."""

    def __init__(self, o: Any) -> None:
        self.o = o

    def __enter__(self) -> _enable_get_lr_call:
        self.o._get_lr_called_within_step = True
        return self

    def __exit__(self, *error: object) -> None:
        self.o._get_lr_called_within_step = False
