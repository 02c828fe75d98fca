"""The table of operators that are written as ONNX nodes, by their names."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from plait_onnx._builder import Builder

__all__ = ["TABLE", "lower_call", "lowers"]

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)
TABLE: dict[str, tuple[Function, frozenset[str]]] = {}


def lowers(*names: str) -> Callable[[F], F]:
    """Enter a function into the table for operators.

    It gets a `Builder` and arguments of the call by the names of the schema, and returns the name
    of a result, or a tuple of them.
    """

    def enter(function: F) -> F:
        parameters = list(inspect.signature(function).parameters)[1:]
        for name in names:
            TABLE[name] = function, frozenset(parameters)
        return function

    return enter


def lower_call(builder: Builder, name: str, arguments: dict[str, Any]) -> Any:
    """Add the nodes of a call, and return the names of its results."""
    function, parameters = TABLE[name]
    given = {key: value for key, value in arguments.items() if key in parameters}
    if "arguments" in parameters:
        given["arguments"] = arguments
    return function(builder, **given)
