"""Additions to plait's `lr_scheduler`: the older name of the base class."""

from __future__ import annotations

from plait.optim.lr_scheduler import LRScheduler

__all__ = ["_LRScheduler"]

_LRScheduler = LRScheduler
