"""Sizes that the function reads while it is recorded, and what it does with them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from typing import Any

from plait_graph._size_expressions import Expression, combine

__all__ = ["SizeReads", "SymbolicSize", "plain_sizes"]


class SizeReads:
    """What a function did with sizes in one call, in its order.

    Expressions name the sizes that were read ``r0``, ``r1`` and so on.

    Attributes:
        values: what the sizes were, by their numbers.
        relations: comparisons: operation, two expressions, and whether it was true.
        fixed: expressions whose value the function took as a plain number, and where.
        arguments: expressions that calls of operators got.
        comparisons: what decompositions and derivatives of operators compared; see `Capture`.
    """

    def __init__(self) -> None:
        self.values: list[int] = []
        self.relations: list[tuple[str, Expression, Expression, bool]] = []
        self.fixed: list[tuple[Expression, str]] = []
        self.arguments: dict[Expression, int] = {}
        self.comparisons: list[tuple[int, int, int]] = []
        self.is_open = True

    def read(self, value: int) -> SymbolicSize:
        """Return the object for a size that Python reads."""
        self.values.append(value)
        return SymbolicSize(self, value, f"r{len(self.values) - 1}")


def _is_own(names: dict[str, Any]) -> bool:
    """Return whether globals are those of a module of plait."""
    package = str(names.get("__name__", "")).partition(".")[0]
    return package == "plait" or package.startswith("plait_")


def _place() -> str:
    """Return the line of the function that runs, outside of plait."""
    frame = sys._getframe(2)
    while frame.f_back is not None:
        if not _is_own(frame.f_globals):
            break
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _value(other: Any) -> int | None:
    """Return an operand as an int; None if it is no integer."""
    if type(other) is SymbolicSize:
        return other._value
    return int(other) if isinstance(other, int) else None


def _expression(other: Any) -> Expression:
    return other._expression if type(other) is SymbolicSize else int(other)


def _operation(op: str, compute: Callable[[int, int], Any]) -> tuple[Any, Any]:
    def forward(self: SymbolicSize, other: Any) -> Any:
        return self._combined(op, self, other, compute)

    def backward(self: SymbolicSize, other: Any) -> Any:
        return self._combined(op, other, self, compute)

    return forward, backward


def _comparison(op: str, compute: Callable[[Any, Any], bool]) -> Any:
    def compare(self: SymbolicSize, other: Any) -> Any:
        value = _value(other)
        if value is None and isinstance(other, float):
            if math.isinf(other):  # every int is on the same side
                return compute(0, other)
            return compute(self._fix(), other)
        if value is None:
            return NotImplemented
        result = compute(self._value, value)
        if self._reads.is_open:
            self._reads.relations.append((op, self._expression, _expression(other), result))
        return result

    return compare


def _text(compute: Callable[..., str]) -> Any:
    def method(self: SymbolicSize, *others: Any) -> str:
        # plait itself makes texts of sizes for messages alone
        is_own = _is_own(sys._getframe(1).f_globals)
        return compute(self._value if is_own else self._fix(), *others)

    return method


def _fixed(compute: Callable[..., Any]) -> Any:
    def method(self: SymbolicSize, *others: Any) -> Any:
        return compute(self._fix(), *others)

    return method


class SymbolicSize:
    """A size with the expression of what it was computed from: it passes for an int.

    It derives from no int, so that C code asks it for its number, by ``__index__``. A call of an
    operator asks by ``_argument`` instead (plait/index.hpp).
    """

    __slots__ = ("_expression", "_reads", "_value")

    def __init__(self, reads: SizeReads, value: int, expression: Expression) -> None:
        self._reads, self._value, self._expression = reads, value, expression

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int

    def _argument(self) -> int:
        if self._reads.is_open:
            self._reads.arguments.setdefault(self._expression, self._value)
        return self._value

    def _fix(self) -> int:
        if self._reads.is_open:
            self._reads.fixed.append((self._expression, _place()))
        return self._value

    def _combined(self, op: str, a: Any, b: Any, compute: Callable[[int, int], Any]) -> Any:
        left, right = _value(a), _value(b)
        if left is None or right is None:
            other = a if left is None else b
            if not isinstance(other, (float, complex)):
                return NotImplemented
            plain = self._fix()
            return compute(other, plain) if left is None else compute(plain, other)  # type: ignore[arg-type]
        value = compute(left, right)
        return SymbolicSize(self._reads, value, combine(op, _expression(a), _expression(b)))

    __add__, __radd__ = _operation("+", lambda a, b: a + b)
    __sub__, __rsub__ = _operation("-", lambda a, b: a - b)
    __mul__, __rmul__ = _operation("*", lambda a, b: a * b)
    __floordiv__, __rfloordiv__ = _operation("//", lambda a, b: a // b)
    __mod__, __rmod__ = _operation("%", lambda a, b: a % b)
    __eq__ = _comparison("==", lambda a, b: a == b)
    __ne__ = _comparison("!=", lambda a, b: a != b)
    __lt__ = _comparison("<", lambda a, b: a < b)
    __le__ = _comparison("<=", lambda a, b: a <= b)
    __gt__ = _comparison(">", lambda a, b: a > b)
    __ge__ = _comparison(">=", lambda a, b: a >= b)

    __hash__ = _fixed(hash)
    __index__ = _fixed(int)
    __int__ = _fixed(int)
    __float__ = _fixed(float)
    __complex__ = _fixed(complex)
    __repr__ = _text(repr)
    __str__ = _text(str)
    __format__ = _text(format)
    __truediv__ = _fixed(lambda a, b: a / b)
    __rtruediv__ = _fixed(lambda a, b: b / a)
    __and__ = _fixed(lambda a, b: a & b)
    __rand__ = _fixed(lambda a, b: b & a)
    __or__ = _fixed(lambda a, b: a | b)
    __ror__ = _fixed(lambda a, b: b | a)
    __xor__ = _fixed(lambda a, b: a ^ b)
    __rxor__ = _fixed(lambda a, b: b ^ a)
    __lshift__ = _fixed(lambda a, b: a << b)
    __rlshift__ = _fixed(lambda a, b: b << a)
    __rshift__ = _fixed(lambda a, b: a >> b)
    __rrshift__ = _fixed(lambda a, b: b >> a)
    __invert__ = _fixed(lambda a: ~a)
    __rpow__ = _fixed(lambda a, b: b**a)

    def __pow__(self, other: Any, *modulo: Any) -> Any:
        if type(other) is int and 1 <= other <= 4 and not modulo:
            result: Any = self
            for _ in range(other - 1):
                result = result * self
            return result
        return pow(self._fix(), other, *modulo)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __neg__(self) -> Any:
        return 0 - self

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __round__(self, digits: Any = None) -> Any:
        return self if digits is None else round(self._fix(), digits)

    __trunc__ = __floor__ = __ceil__ = __pos__

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> Any:
        return int, (self._fix(),)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fix(), name)


def plain_sizes(sizes: Iterable[Any]) -> list[int]:
    """Return sizes as ints, for a description of what is recorded: nothing depends on them."""
    return [size._value if type(size) is SymbolicSize else size for size in sizes]
