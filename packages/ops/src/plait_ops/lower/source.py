"""Reads a function's source text and resolves its names."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from plait_ops.spec import SpecError

__all__ = ["Source", "read"]


@dataclasses.dataclass(frozen=True)
class Source:
    """A function's syntax tree, its file and first line, and the names in its scope."""

    tree: ast.FunctionDef
    path: str
    first_line: int
    names: dict[str, Any]
    parameters: tuple[str, ...]


def read(function: Callable[..., Any]) -> Source:
    """Return the source of a function; its scope is its module and enclosing functions."""
    node, path, first = _parse(function)
    names = {**function.__globals__, **inspect.getclosurevars(function).nonlocals}
    return Source(node, path, first, names, tuple(inspect.signature(function).parameters))


@functools.cache
def _parse(function: Callable[..., Any]) -> tuple[ast.FunctionDef, str, int]:
    lines, first = inspect.getsourcelines(function)
    node = ast.parse(textwrap.dedent("".join(lines))).body[0]
    path = inspect.getsourcefile(function) or "?"
    if not isinstance(node, ast.FunctionDef):
        raise SpecError(f"{path}:{first}: a function is required, not {type(node).__name__}")
    return node, path, first
