"""Additions to plait's `nn.functional`: a name for annotations."""

from __future__ import annotations

import plait

__all__ = ["Tensor"]

Tensor = plait.Tensor
