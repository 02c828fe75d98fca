"""`torch.nn.functional` beside plait's: older names."""

from __future__ import annotations

from typing import Any

import plait
import plait.nn.functional as F

__all__ = ["Tensor", "upsample_bilinear", "upsample_nearest"]

Tensor = plait.Tensor


def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Return the picture in another size: ``interpolate(mode="nearest")``."""
    return F.interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """Return the picture in another size: ``interpolate(mode="bilinear", align_corners=True)``."""
    return F.interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
