"""PyTorch's format of files, which another package reads and writes."""

from __future__ import annotations

import importlib
from typing import Any

from plait_abi.components import require
from plait_core._checkpoints._errors import CheckpointError


def torch_files(what: str) -> Any:
    """Return the module with `load` and `Archive` for PyTorch's files; `what` needs it."""
    try:
        package = require("torch").__name__
    except ModuleNotFoundError as error:
        raise CheckpointError(f"{what}: {error}") from error
    return importlib.import_module(f"{package}.files")
