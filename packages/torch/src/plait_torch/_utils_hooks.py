"""`torch.utils.hooks`: what registering a hook returns."""

from __future__ import annotations

from plait_nn._hooks import RemovableHandle

__all__ = ["RemovableHandle"]
