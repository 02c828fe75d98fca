"""Examples for the docstrings of the standard's functions, many of which are made by factories.

A table of examples is a text: below each line ``# name`` is the doctest of that function.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from plait_core._docstrings import example
from plait_core.array_api import _examples_arrays, _examples_elementwise, _examples_extensions

_TABLES = (_examples_elementwise.TEXT, _examples_arrays.TEXT, _examples_extensions.TEXT)


def _examples() -> Iterator[tuple[str, str]]:
    for table in _TABLES:
        for block in table.split("\n# ")[1:]:
            name, _, text = block.partition("\n")
            yield name, text.rstrip()


def attach(names: dict[str, Any]) -> None:
    """Put each example at the end of its function's docstring; `names` are the namespace's."""
    for name, text in _examples():
        space, _, short = name.rpartition(".")
        function = getattr(names[space], short) if space else names[name]
        if not function.__doc__:  # python -OO
            continue
        block = example(text, "plait_core.array_api as xp")
        function.__doc__ = f"{inspect.cleandoc(function.__doc__)}\n\n{block}"
