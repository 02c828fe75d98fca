"""`torch.utils.hooks`: handles of hooks."""

from __future__ import annotations

from plait_nn._hooks import RemovableHandle

__all__ = ["RemovableHandle"]
