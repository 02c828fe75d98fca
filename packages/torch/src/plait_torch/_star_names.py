"""What a star import of each of PyTorch's modules leaves.

`star_names.json` has the names; `tools/torch_names.py` writes it.
"""

from __future__ import annotations

import builtins
import functools
import json
import pathlib


@functools.cache
def table() -> dict[str, str]:
    """Return the names by module, those of one module in one text."""
    file = pathlib.Path(__file__).with_name("star_names.json")
    result: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return result


def left_by(module: str, known: list[str]) -> list[str]:
    """Return the names that a star import of a module of PyTorch leaves.

    Of a module that is not in the table, these are the public names among ``known`` that hide no
    built-in function.
    """
    names = table().get(module)
    if names is not None:
        return names.split()
    return [name for name in known if not name.startswith("_") and not hasattr(builtins, name)]
