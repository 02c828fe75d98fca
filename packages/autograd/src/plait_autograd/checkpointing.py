"""Checkpointing; ``plait.utils.checkpoint`` is this module, as in PyTorch."""

from __future__ import annotations

from plait_autograd._checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    noop_context_fn,
)

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential", "noop_context_fn"]
