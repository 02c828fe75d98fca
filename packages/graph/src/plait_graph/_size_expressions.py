"""Expressions of sizes: what a number of a graph is for other sizes than those of the recording.

An expression is an int, the name of a free size, or a tuple of an operation and two expressions.
Its text has the operators of Python: ``(h + 1) // 2 * n``, ``min(n, 8)``. Values are ints of 64
bits, as in `cpp/program/size_expression.hpp`, which reads the same texts.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import plait_abi

__all__ = [
    "RELATIONS",
    "Expression",
    "Relation",
    "check_names",
    "combine",
    "evaluate",
    "expression_text",
    "holds",
    "names_in",
    "parse_expression",
    "parse_relation",
    "relation_text",
]

Expression: TypeAlias = "int | str | tuple[str, Expression, Expression]"
Relation: TypeAlias = tuple[str, Expression, Expression]

_LONGEST, _DEEPEST = 1000, 64  # characters of a text; operations within operations
_SUMS, _PRODUCTS = ("+", "-"), ("*", "//", "%")
_RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "min": min,
    "max": max,
}
RELATIONS = tuple(_RELATIONS)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*|[0-9]+|//|==|!=|<=|>=|[-+*%(),<>])")


def check_names(names: Mapping[str, object]) -> None:
    """Raise ArgumentError unless all names can stand in expressions."""
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name in ("min", "max"):
            raise plait_abi.ArgumentError(
                f"sizes: a name consists of letters, digits and _, and is not min or max, got "
                f"{name!r}"
            )


def combine(op: str, a: Expression, b: Expression) -> Expression:
    """Return an operation; what is known at once is computed."""
    if isinstance(a, int) and isinstance(b, int) and (op not in ("//", "%") or b != 0):
        return _OPERATIONS[op](a, b)
    if (op in ("+", "-") and b == 0) or (op in ("*", "//") and b == 1):
        return a
    if (op == "+" and a == 0) or (op == "*" and a == 1):
        return b
    if op == "+" and isinstance(b, int) and b < 0:
        return "-", a, -b
    return op, a, b


def evaluate(expression: Expression, sizes: Mapping[str, int]) -> int:
    """Return the value of an expression.

    Raises: ArgumentError for a division by zero, a value beyond 64 bits, and an unknown name.
    """
    if isinstance(expression, int):
        return expression
    if isinstance(expression, str):
        if expression not in sizes:
            raise plait_abi.ArgumentError(f"sizes: there is no size {expression!r}")
        return sizes[expression]
    op, a, b = expression
    left, right = evaluate(a, sizes), evaluate(b, sizes)
    if op in ("//", "%") and right == 0:
        raise plait_abi.ArgumentError(
            f"sizes: {expression_text(expression)} divides by zero for {dict(sizes)}"
        )
    value = _OPERATIONS[op](left, right)
    if not -(2**63) <= value < 2**63:
        raise plait_abi.ArgumentError(
            f"sizes: {expression_text(expression)} is beyond 64 bits for {dict(sizes)}"
        )
    return value


def holds(relation: Relation, sizes: Mapping[str, int]) -> bool:
    """Return whether a relation of two expressions is true."""
    op, a, b = relation
    return _RELATIONS[op](evaluate(a, sizes), evaluate(b, sizes))


def names_in(expression: Expression) -> Iterator[str]:
    """Yield the names in an expression."""
    if isinstance(expression, str):
        yield expression
    elif isinstance(expression, tuple):
        yield from names_in(expression[1])
        yield from names_in(expression[2])


def expression_text(expression: Expression) -> str:
    """Return the text of an expression, with as few parentheses as it needs."""
    return _text(expression, 0)


def _text(expression: Expression, least: int) -> str:
    """Return a text in parentheses if its operation binds less than `least`."""
    if isinstance(expression, int):
        return str(expression) if expression >= 0 or not least else f"({expression})"
    if isinstance(expression, str):
        return expression
    op, a, b = expression
    if op in ("min", "max"):
        return f"{op}({_text(a, 0)}, {_text(b, 0)})"
    rank = 1 if op in _SUMS else 2
    text = f"{_text(a, rank)} {op} {_text(b, rank + 1)}"
    return f"({text})" if rank < least else text


def relation_text(relation: Relation) -> str:
    """Return the text of a relation: ``n % 2 == 0``."""
    op, a, b = relation
    return f"{expression_text(a)} {op} {expression_text(b)}"


class _Parser:
    def __init__(self, text: str) -> None:
        if not isinstance(text, str) or len(text) > _LONGEST:
            raise plait_abi.ArgumentError(
                f"sizes: an expression is a str of at most {_LONGEST} characters"
            )
        self.text, self.tokens, self.at, self.depth = text, list[str](), 0, 0
        end = 0
        while text[end:].strip():
            match = _TOKEN.match(text, end)
            if match is None:
                raise self.fail()
            self.tokens.append(match[1])
            end = match.end()

    def fail(self) -> plait_abi.ArgumentError:
        return plait_abi.ArgumentError(f"sizes: this is no expression: {self.text!r}")

    @property
    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, token: str = "") -> str:
        found = self.next
        if not found or (token and found != token):
            raise self.fail()
        self.at += 1
        return found

    def sum(self) -> Expression:
        return self.chain(self.product, _SUMS)

    def product(self) -> Expression:
        return self.chain(self.factor, _PRODUCTS)

    def chain(self, part: Callable[[], Expression], ops: tuple[str, ...]) -> Expression:
        result, before = part(), self.depth
        while self.next in ops:
            op = self.take()
            self.deeper()
            result = (op, result, part())
        self.depth = before
        return result

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise plait_abi.ArgumentError(
                f"sizes: an expression has operations in more than {_DEEPEST} levels"
            )

    def factor(self) -> Expression:
        token = self.take()
        if token.isdecimal():
            if int(token) >= 2**63:
                raise self.fail()
            return int(token)
        if _NAME.fullmatch(token) and token not in ("min", "max"):
            return token
        before = self.depth
        self.deeper()
        result: Expression
        if token == "-":
            inner = self.factor()
            result = -inner if isinstance(inner, int) else ("-", 0, inner)
        elif token == "(":
            result = self.sum()
            self.take(")")
        elif token in ("min", "max"):
            self.take("(")
            first = self.sum()
            self.take(",")
            result = (token, first, self.sum())
            self.take(")")
        else:
            raise self.fail()
        self.depth = before
        return result


def parse_expression(text: str) -> Expression:
    """Return the expression of a text.

    Raises: ArgumentError if it is none.
    """
    parser = _Parser(text)
    result = parser.sum()
    if parser.next:
        raise parser.fail()
    return result


def parse_relation(text: str) -> Relation:
    """Return the relation of a text.

    Raises: ArgumentError if it is none.
    """
    parser = _Parser(text)
    left = parser.sum()
    op = parser.take()
    if op not in _RELATIONS:
        raise parser.fail()
    right = parser.sum()
    if parser.next:
        raise parser.fail()
    return op, left, right
