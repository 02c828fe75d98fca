"""Declarations of words: a Python function whose annotations are its C++ types too."""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable
from typing import Any, TypeVar

from plait_ops.value_types import Kind, Type, of_annotation

__all__ = ["WORDS", "Parameter", "Word", "part", "word"]

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A parameter of a word; ``default`` is `inspect.Parameter.empty` if it has none."""

    name: str
    type: Type
    default: Any = inspect.Parameter.empty


@dataclasses.dataclass(frozen=True)
class Word:
    """A function that specs may call; C++ has one of the same name and types.

    Args:
        on_call: it fails, makes results or calls operators for the current call; in C++ its first
            argument is the `Scope`.
        reads_values: whether it reads the elements of its tensor arguments; derivatives do not save
            tensors of which only shape and dtype are read.
    """

    function: Callable[..., Any]
    parameters: tuple[Parameter, ...]
    result: Type
    on_call: bool
    reads_values: bool

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def makes_result(self) -> bool:
        """Whether it makes a result of a shape function, which is allowed in `return` only."""
        return self.result.kind is Kind.RESULT


WORDS: dict[str, Word] = {}
"""All words by name, in order of declaration."""


def word(*, on_call: bool = False, reads_values: bool = True) -> Callable[[Function], Function]:
    """Declare a function as a word of the spec language; see `Word`."""

    def declare(function: Function) -> Function:
        hints = typing.get_type_hints(function, include_extras=True)
        parameters = tuple(
            Parameter(each.name, of_annotation(hints[each.name]), each.default)
            for each in inspect.signature(function).parameters.values()
        )
        result = of_annotation(hints["return"])
        declaration = Word(function, parameters, result, on_call, reads_values)
        if declaration.name in WORDS:
            raise ValueError(f"the word `{declaration.name}` is declared twice")
        WORDS[declaration.name] = declaration
        function.__word__ = declaration  # type: ignore[attr-defined]
        return function

    return declare


def part(function: Function) -> Function:
    """Mark a function that shape functions, derivatives, decompositions and costs share: the
    translator inserts its body where it is called. It returns a value of one type, or nothing,
    and makes no results.
    """
    function.__part__ = True  # type: ignore[attr-defined]
    return function
