"""Examples in the docstrings of functions that are made by factories."""

from __future__ import annotations

import textwrap


def example(text: str, module: str = "plait_core as pc") -> str:
    """Return the last paragraph of a docstring: `text`, a doctest, below the import of `module`."""
    return "Example:\n" + textwrap.indent(f">>> import {module}\n{text}", "    ")
