"""`torch._tensor_str`: the text of a tensor's elements, and how it is printed."""

from __future__ import annotations

from typing import Any

import plait
from plait_abi.imports import import_module
from plait_core._repr import _options as PRINT_OPTS

__all__ = ["PRINT_OPTS", "_add_suffixes", "_str", "_tensor_str"]


def _tensor_str(self: Any, indent: int) -> str:
    """Return the elements as they are printed, without the name and the dtype around them.

    Example:
        >>> import plait
        >>> from plait_torch._tensor_str import _tensor_str
        >>> print(_tensor_str(plait.eye(2, dtype=plait.int64), 0))
        [[1, 0],
         [0, 1]]
    """
    elements = plait.as_tensor(self).detach()
    return str(import_module("plait_core._repr").text_of_elements(elements, indent))


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """Return the text with notes after it, and the bracket that ends it."""
    for suffix in suffixes:
        last = len(tensor_str) - tensor_str.rfind("\n") - 1
        own = force_newline or last + len(suffix) + 3 > PRINT_OPTS.linewidth
        tensor_str += (",\n" + " " * indent if own else ", ") + suffix
        force_newline = False
    return tensor_str + ")"


def _str(self: Any, *, tensor_contents: str | None = None) -> str:
    """Return the whole text."""
    return repr(self)
