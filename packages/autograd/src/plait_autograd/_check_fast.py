"""`gradcheck` in one random direction for each input, instead of each element."""

from __future__ import annotations

import random
from typing import Any

from plait_autograd import _autograd
from plait_autograd._backward import grad
from plait_autograd._check_numbers import Differences, GradcheckError, numbers_of, slopes

__all__ = ["Directions"]


class Directions(Differences):
    """A random direction for every input to check, the derivatives along it, and comparisons."""

    def _measure(self) -> None:
        self._random = random.Random(0)  # the same in every run
        self._directions = {i: self._draw(self._args[i]) for i in self._wanted}
        self._slopes = {i: self._slope(i) for i in self._wanted}

    def _draw(self, tensor: Any) -> list[float]:
        """Return a random vector of length 1: a number for each element, two for complex ones."""
        n = _autograd.count(tensor) * (2 if _autograd.is_complex(tensor) else 1)
        drawn = [self._random.uniform(0.5, 1.5) * self._random.choice((-1, 1)) for _ in range(n)]
        length = sum(x * x for x in drawn) ** 0.5
        return [x / length for x in drawn]

    def _slope(self, i: int) -> list[list[float]]:
        tensor = self._args[i]
        direction = _elements(tensor, self._directions[i])
        before = [_autograd.element(tensor, j) for j in range(len(direction))]
        result = []
        for sign in (1, -1):
            for j, (value, step) in enumerate(zip(before, direction, strict=True)):
                _autograd.set_element(tensor, j, value + sign * self._eps * step)
            result.append(self._values())
        for j, value in enumerate(before):
            _autograd.set_element(tensor, j, value)
        above, below = result
        return slopes(above, below, self._eps)

    def changes(self, k: int) -> bool:
        """Whether output ``k`` changes with an input."""
        return any(d for i in self._wanted for d in self._slopes[i][k])

    def compare_gradients(self, k: int, output: Any) -> None:
        """Compare u J v of a backward pass with that of the differences."""
        u = self._draw(output)
        if not u:
            return
        chosen = [self._args[i] for i in self._wanted]
        result = grad(output, chosen, _filled(output, u), retain_graph=True, allow_unused=True)
        for i, gradient in zip(self._wanted, result, strict=True):
            v = self._directions[i]
            row = [0.0] * len(v) if gradient is None else numbers_of(gradient)
            got = sum(a * b for a, b in zip(row, v, strict=True))
            expected = sum(a * b for a, b in zip(u, self._slopes[i][k], strict=True))
            weight = sum(map(abs, u)) * sum(map(abs, v))
            self._compare(got, expected, weight, k, i, "backward")

    def compare_tangents(self, i: int) -> None:
        """Compare J v of forward mode with that of the differences."""
        v = self._directions[i]
        if not v:
            return
        _, tangents = self._with_tangent(i, _filled(self._args[i], v))
        for k, (tangent, expected) in enumerate(zip(tangents, self._slopes[i], strict=True)):
            row = [0.0] * len(expected) if tangent is None else numbers_of(tangent)
            for got, one in zip(row, expected, strict=True):
                self._compare(got, one, sum(map(abs, v)), k, i, "forward mode")

    def _compare(
        self, got: float, expected: float, weight: float, k: int, i: int, way: str
    ) -> None:
        """Compare two sums of derivatives whose weights add up to ``weight``."""
        if abs(got - expected) <= self._atol * weight + self._rtol * abs(expected):
            return
        raise GradcheckError(
            f"gradcheck: the derivative of output {k} for input {i} must be {expected:.9g} in a "
            f"random direction by finite differences; {way} gives {got:.9g}; fast_mode=False "
            "names the element"
        )


def _elements(tensor: Any, numbers: list[float]) -> list[complex]:
    """Return the elements for numbers: for a complex tensor two numbers are one element."""
    if not _autograd.is_complex(tensor):
        return list(numbers)
    return [complex(a, b) for a, b in zip(numbers[::2], numbers[1::2], strict=True)]


def _filled(tensor: Any, numbers: list[float]) -> Any:
    """Return a tensor with the shape and dtype of another one, filled with given numbers."""
    result = _autograd.zeros_like(tensor)
    for j, value in enumerate(_elements(tensor, numbers)):
        _autograd.set_element(result, j, value)
    return result
