"""`torch.nn.functional` beside plait's: a name that programs take from there for annotations."""

from __future__ import annotations

import plait

__all__ = ["Tensor"]

Tensor = plait.Tensor
