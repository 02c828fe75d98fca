"""Checkpoints: `save` and `load`, design note 0010."""

from __future__ import annotations

from plait_core._checkpoints._calls import load, save
from plait_core._checkpoints._errors import CheckpointError

__all__ = ["CheckpointError", "load", "save"]
