"""A folder of checkpoints, of which the newest whole one is taken."""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any

from plait_abi.components import require

_NAME = re.compile(r"checkpoint-(\d{8})\.pt")
_KEPT = 2  # the newest, and the one before it


def _numbers(folder: str) -> list[int]:
    with contextlib.suppress(FileNotFoundError):
        result = (_NAME.fullmatch(name) for name in os.listdir(folder))
        return sorted(int(match[1]) for match in result if match)
    return []


def _path(folder: str, number: int) -> str:
    return os.path.join(folder, f"checkpoint-{number:08d}.pt")


def newest(folder: str | None) -> str | None:
    """Return the path of the newest checkpoint in a folder; None if there is none."""
    numbers = _numbers(folder) if folder is not None else []
    return _path(folder, numbers[-1]) if folder is not None and numbers else None


def save(folder: str, state: Any) -> str:
    """Write a checkpoint, which appears in the folder when it is whole; return its path."""
    os.makedirs(folder, exist_ok=True)
    numbers = _numbers(folder)
    path = _path(folder, numbers[-1] + 1 if numbers else 1)
    require("core").save(state, path, format="plait")  # atomically
    for number in numbers[: 1 - _KEPT]:
        with contextlib.suppress(OSError):
            os.remove(_path(folder, number))
    return path


def load(path: str) -> Any:
    """Return what a checkpoint holds: tensors and plain Python objects; no code is run."""
    return require("core").load(path, weights_only=True)
