"""Where PyTorch's users look for `plait.utils.data`, which is `plait_data`."""

from __future__ import annotations

import importlib
from types import ModuleType

__all__ = ["data"]


def __getattr__(name: str) -> ModuleType:
    if name == "data":
        return importlib.import_module("plait.utils.data")
    raise AttributeError(f"module 'plait.utils' has no attribute {name!r}")
