"""PyTorch's format of files, which another package reads and writes."""

from __future__ import annotations

import importlib
from typing import Any

from plait_abi.components import require
from plait_core._checkpoints._errors import CheckpointError


def torch_files(description: str, module: str = "files") -> Any:
    """Return the module with `load` and `Archive` for PyTorch's files, or the one for its folders;
    `description` needs it.
    """
    try:
        package = require("torch").__name__
    except ModuleNotFoundError as error:
        raise CheckpointError(f"{description}: {error}") from error
    return importlib.import_module(f"{package}.{module}")
