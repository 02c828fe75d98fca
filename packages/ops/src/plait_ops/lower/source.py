"""Where the translator finds a function's text and what its names mean."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from plait_ops.spec import SpecError

__all__ = ["definition", "visible"]


def definition(function: Callable[..., Any]) -> tuple[ast.FunctionDef, str, int]:
    """Return the syntax tree of a function, its file and its first line."""
    lines, first = inspect.getsourcelines(function)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    node = tree.body[0]
    path = inspect.getsourcefile(function) or "?"
    if not isinstance(node, ast.FunctionDef):
        raise SpecError(f"{path}:{first}: a function is required, not {type(node).__name__}")
    return node, path, first


def visible(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the names that a function sees: those of its module and of functions around it."""
    return {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
