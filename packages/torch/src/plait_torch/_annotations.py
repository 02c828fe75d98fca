"""`torch.types`: names for annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plait

__all__ = ["Device", "FileLike", "Number", "Storage", "Tensor", "_bool", "_dtype", "_float", "_int",
           "_size"]  # fmt: skip

Tensor = plait.Tensor
Number = int | float | bool
Device = Any  # a device, its name or number, or None
FileLike = Any  # a path or a file object
Storage = Any
_int = int
_float = float
_bool = bool
_dtype = plait.dtype
_size = Sequence[int]
