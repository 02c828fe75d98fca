"""`torch.types`: names for annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plait

__all__ = ["Device", "FileLike", "IntLikeType", "Number", "Storage", "Tensor", "_TensorOrTensors",
           "_bool", "_complex", "_device", "_dtype", "_float", "_int", "_layout", "_qscheme",
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
_complex = complex
_device = plait.device
_layout = plait.layout
_qscheme = Any
_TensorOrTensors = plait.Tensor | Sequence[plait.Tensor]
IntLikeType = int
