"""The public names that `dir` returns for PyTorch's modules.

A module of PyTorch has few names, and its names are looked up in modules of plait that have more.
Programs that count the classes of a module, as registries of layers and optimizers do, must find
those of PyTorch. `dir_names.json` has the names; `tools/torch_names.py` writes it.
"""

from __future__ import annotations

import functools
import json
import pathlib


@functools.cache
def table() -> dict[str, str]:
    """Return the names by module, those of one module in one text."""
    file = pathlib.Path(__file__).with_name("dir_names.json")
    result: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return result


def of(module: str) -> list[str] | None:
    """Return the public names of a module of PyTorch; None if it is not in the table.

    Example:
        >>> from plait_torch._dir_names import of
        >>> of("torch.nn.modules.flatten")
        ['Flatten', 'Module', 'Tensor', 'Unflatten']
    """
    names = table().get(module)
    return None if names is None else names.split()
