"""`torch._subclasses`: tensors without values, which PyTorch's compiler has and plait does not."""

from __future__ import annotations

from typing import Any

__all__ = ["FakeTensor", "is_fake"]


class FakeTensor:
    """A class without instances."""


def is_fake(x: Any) -> bool:
    """Return False."""
    return False
