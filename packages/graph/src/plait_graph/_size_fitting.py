"""Expressions for numbers that differ between recordings of one function at several sizes."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

from plait_abi import ArgumentError
from plait_graph._size_expressions import Expression, combine, evaluate

__all__ = ["Quotient", "SizeFit"]


@dataclasses.dataclass(frozen=True)
class Quotient:
    """A float that depends on sizes: ``factor * above / below``, computed in this order."""

    factor: float
    above: Expression
    below: Expression

    def value(self, sizes: Mapping[str, int]) -> float:
        """Return the float for sizes."""
        return self.factor * evaluate(self.above, sizes) / evaluate(self.below, sizes)


_DIVISORS = range(2, 65)
_MOST_CANDIDATES = 60  # whose products are tried


class SizeFit:
    """Finds expressions in the free sizes that have given values in all recordings.

    The first that fits is taken, in the order: a free size; an expression that the function
    computed, or the size of a value; multiples and sums with constants; products; floor divisions.

    Args:
        samples: the free sizes of each recording, by name.
    """

    def __init__(self, samples: Sequence[Mapping[str, int]]) -> None:
        self._samples = samples
        self._known: dict[tuple[int, ...], Expression] = {}
        self._found: dict[tuple[int, ...], Expression | None] = {}
        for name in samples[0]:
            self._known.setdefault(tuple(sample[name] for sample in samples), name)
        self._names = dict(self._known)

    def add(self, expression: Expression) -> None:
        """Add an expression that is likely to be among those in question."""
        try:
            numbers = tuple(evaluate(expression, sample) for sample in self._samples)
        except ArgumentError:
            return
        if len(set(numbers)) > 1 and numbers not in self._known:
            self._known[numbers] = expression
            self._found.pop(numbers, None)

    def known(self, numbers: Sequence[int]) -> Expression | None:
        """Return an expression that was added, a free size or a number, with these values."""
        key = tuple(numbers)
        return key[0] if len(set(key)) == 1 else self._known.get(key)

    def whole(self, numbers: Sequence[int]) -> Expression | None:
        """Return an expression with these values; None if there is none."""
        key = tuple(numbers)
        if len(set(key)) == 1:
            return key[0]
        if key in self._known:
            return self._known[key]
        if key not in self._found:
            self._found[key] = next(self._fits(key), None)
            if self._found[key] is not None:
                self._known[key] = self._found[key]  # type: ignore[assignment]
        return self._found[key]

    def quotient(self, numbers: Sequence[float]) -> Quotient | None:
        """Return c, a and b, so that ``c * a / b`` has these values; None if there are none."""
        if not all(map(math.isfinite, numbers)):
            return None
        if all(x == int(x) and abs(x) < 2**53 for x in numbers):
            whole = self.whole([int(x) for x in numbers])
            if whole is not None:
                return Quotient(1.0, whole, 1)
        for sizes, expression in self._products():
            for b, below in ((0, expression), (1, combine("-", expression, 1))):
                divisors = [size - b for size in sizes]
                if 0 in divisors:
                    continue
                for factors, above in (([1] * len(sizes), 1), (sizes, expression)):
                    exact = numbers[0] * divisors[0] / factors[0]
                    # the number that was written in the program is short
                    for c in dict.fromkeys([float(round(exact)), float(f"{exact:.12g}"), exact]):
                        fits = (c * f / d for f, d in zip(factors, divisors, strict=True))
                        if c and all(x == y for x, y in zip(fits, numbers, strict=True)):
                            return Quotient(c, above, below)
        return None

    def _products(self) -> Iterator[tuple[tuple[int, ...], Expression]]:
        """Yield candidates, and products of two and three of them."""
        candidates = list(self._known.items())[:_MOST_CANDIDATES]
        yield from candidates
        pairs = itertools.combinations_with_replacement(candidates, 2)
        triples = (
            (a, b, c) for a, b in itertools.combinations(candidates, 2) for c in self._names.items()
        )
        for factors in itertools.chain(pairs, triples):
            numbers, expression = factors[0]
            for others, other in factors[1:]:
                numbers = tuple(a * b for a, b in zip(numbers, others, strict=True))
                expression = combine("*", expression, other)
            yield numbers, expression

    def _fits(self, numbers: tuple[int, ...]) -> Iterator[Expression]:
        candidates = list(self._known.items())
        for constant in (False, True):
            for values, expression in candidates:
                yield from self._line(numbers, values, expression, constant)
        for values, expression in self._products():
            yield from self._line(numbers, values, expression, False)
        for (x, a), (y, b) in itertools.combinations(candidates[:_MOST_CANDIDATES], 2):
            for op in ("+", "-"):
                rest = {
                    n - i - (j if op == "+" else -j) for n, i, j in zip(numbers, x, y, strict=True)
                }
                if len(rest) == 1:
                    yield combine("+", combine(op, a, b), rest.pop())
        if len(self._samples) > 3:
            yield from self._floors(numbers, candidates)

    @staticmethod
    def _line(
        numbers: tuple[int, ...], values: tuple[int, ...], expression: Expression, constant: bool
    ) -> Iterator[Expression]:
        """Yield ``a * expression + b`` if it fits: with or without the constant."""
        if not constant:
            if not values[0] or numbers[0] % values[0]:
                return
            factor, shift = numbers[0] // values[0], 0
        else:
            at = next(i for i, value in enumerate(values) if value != values[0])
            factor, rest = divmod(numbers[at] - numbers[0], values[at] - values[0])
            if rest or not factor:
                return
            shift = numbers[0] - factor * values[0]
        if all(n == factor * v + shift for n, v in zip(numbers, values, strict=True)):
            yield combine("+", combine("*", expression, factor), shift)

    @staticmethod
    def _floors(
        numbers: tuple[int, ...], candidates: Sequence[tuple[tuple[int, ...], Expression]]
    ) -> Iterator[Expression]:
        """Yield ``(expression + b) // c`` with the least c that fits.

        Nothing if several b fit, as for ``n // 2`` and even n: other samples tell them apart.
        """
        for divisor in _DIVISORS:
            fits = []
            for values, expression in candidates:
                pairs = list(zip(numbers, values, strict=True))
                least = max(n * divisor - v for n, v in pairs)
                most = min(n * divisor - v + divisor - 1 for n, v in pairs)
                if least < most:
                    return
                if least == most:
                    fits.append(combine("//", combine("+", expression, least), divisor))
            if fits:
                yield fits[0]
                return
