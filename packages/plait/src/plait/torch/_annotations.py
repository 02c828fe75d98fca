"""`torch.types`: names for annotations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Union

import plait

__all__ = ["Device", "FileLike", "Number", "Storage", "Tensor", "_bool", "_dtype", "_float", "_int",
           "_size"]  # fmt: skip

Tensor = plait.Tensor
Number = Union[int, float, bool]
Device = Union[plait.device, str, int, None]
FileLike = Union[str, "os.PathLike[str]", Any]
Storage = Any
_int = int
_float = float
_bool = bool
_dtype = plait.dtype
_size = Union[plait.Size, Sequence[int]]
