"""What PyTorch's names in pickles mean in plait, without an import of `torch`."""

from __future__ import annotations

import importlib
from typing import Any

from plait_torch import _module_names

__all__ = ["of_torch"]


def of_torch(module: str, name: str) -> Any:
    """Return what PyTorch calls ``module.name`` if it is plait's, else None; no module is imported
    for it but plait's own.

    Example:
        >>> import plait
        >>> from plait_torch._names_in_files import of_torch
        >>> of_torch("torch.nn.modules.linear", "Linear") is plait.nn.Linear
        True
    """
    if module != "torch" and not module.startswith("torch."):
        return None
    for source in _module_names.sources(module) or ():
        place, _, inner = source.partition(":")
        result: Any = importlib.import_module(place)
        for part in ([inner] if inner else []) + name.split("."):
            result = getattr(result, part, None)
        if result is not None:
            return result
    return None
