"""The finite differences of `gradcheck`: of each element, or in one random direction."""

from __future__ import annotations

import abc
import random
from collections.abc import Callable
from typing import Any

from plait_autograd import _autograd, forward_ad
from plait_autograd._backward import grad
from plait_autograd._modes import no_grad


class GradcheckError(AssertionError, RuntimeError):
    """A derivative differs from the one by finite differences.

    Example:
        >>> import plait_core as pc, plait_autograd as pa
        >>> x = pc.tensor([1.0], dtype=pc.float64, requires_grad=True)
        >>> try:
        ...     pa.gradcheck(lambda x: x * x.detach(), x)  # half of the derivative is missing
        ... except pa.GradcheckError as error:
        ...     print(str(error)[:32])
        gradcheck: d output 0[0] / d inp
    """


def outputs_of(result: Any) -> list[Any]:
    """Return the tensors of a result that can have derivatives."""
    items = [result] if _autograd.is_tensor(result) else list(result)
    return [
        y
        for y in items
        if _autograd.is_tensor(y) and (_autograd.is_floating(y) or _autograd.is_complex(y))
    ]


def parts_of(tensor: Any) -> tuple[complex, ...]:
    """Return the directions in which an element can change: its real and its imaginary part."""
    return (1.0, 1j) if _autograd.is_complex(tensor) else (1.0,)


def numbers_of(tensor: Any) -> list[float]:
    """Return all elements as numbers, complex ones as two."""
    return [
        number
        for j in range(_autograd.count(tensor))
        for z in [_autograd.element(tensor, j)]
        for number in ((z.real, z.imag) if isinstance(z, complex) else (z,))
    ]


def _slopes_between(
    above: list[list[float]], below: list[list[float]], eps: float
) -> list[list[float]]:
    """Return the central differences between the numbers of two calls."""
    return [
        [(a - b) / (2 * eps) for a, b in zip(ys, zs, strict=True)]
        for ys, zs in zip(above, below, strict=True)
    ]


class Differences(abc.ABC):
    """The finite differences of a function at its arguments, and derivatives to be compared with
    them.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        args: tuple[Any, ...],
        positions: list[int],
        eps: float,
        tolerances: tuple[float, float],
    ) -> None:
        self._fn, self._args, self._positions, self._eps = fn, args, positions, eps
        self._atol, self._rtol = tolerances
        self._measure()

    @abc.abstractmethod
    def _measure(self) -> None:
        """Call the function near its arguments, which counts as a write to them."""

    def _values(self) -> list[list[float]]:
        """Return the numbers of every output, computed without a graph."""
        with no_grad():
            return [numbers_of(y) for y in outputs_of(self._fn(*self._args))]

    def _with_tangent(self, i: int, direction: Any) -> tuple[list[Any], list[Any]]:
        """Return the outputs and their tangents, with a tangent for argument ``i``."""
        args = self._args
        with no_grad(), forward_ad.dual_level():
            dual = forward_ad.make_dual(args[i], direction)
            outputs = outputs_of(self._fn(*args[:i], dual, *args[i + 1 :]))
            return outputs, [_autograd.tangent(y) for y in outputs]

    @abc.abstractmethod
    def changes(self, k: int) -> bool:
        """Whether output ``k`` changes with an input."""

    @abc.abstractmethod
    def compare_gradients(self, k: int, output: Any) -> None:
        """Compare the gradients of backward passes from output ``k``."""

    @abc.abstractmethod
    def compare_tangents(self, i: int) -> None:
        """Compare the tangents of forward mode for input ``i``."""


class Elements(Differences):
    """The derivatives of all outputs by finite differences, and the comparisons with them."""

    def _measure(self) -> None:
        # keys: input, number of the input, output, number of the output
        self._slopes = {i: self._differences(i) for i in self._positions}

    def _differences(self, i: int) -> list[list[list[float]]]:
        rows, eps, tensor = [], self._eps, self._args[i]
        for at, part in _directions(tensor):
            value = _autograd.element(tensor, at)
            _autograd.set_element(tensor, at, value + part * eps)
            above = self._values()
            _autograd.set_element(tensor, at, value - part * eps)
            below = self._values()
            _autograd.set_element(tensor, at, value)
            rows.append(_slopes_between(above, below, eps))
        return rows

    def changes(self, k: int) -> bool:
        """Whether output ``k`` changes with an input."""
        return any(d for i in self._positions for row in self._slopes[i] for d in row[k])

    def compare_gradients(self, k: int, output: Any) -> None:
        """Compare the gradients of a backward pass for every number of output ``k``."""
        selection = [self._args[i] for i in self._positions]
        for n, (j, part) in enumerate(_directions(output)):
            one = _autograd.zeros_like(output)
            _autograd.set_element(one, j, part)
            result = grad(output, selection, one, retain_graph=True, allow_unused=True)
            for i, gradient in zip(self._positions, result, strict=True):
                rows = self._slopes[i]
                numbers = [0.0] * len(rows) if gradient is None else numbers_of(gradient)
                for at, (got, row) in enumerate(zip(numbers, rows, strict=True)):
                    self._compare(got, row[k][n], (k, output, n), (i, at), "backward")

    def compare_tangents(self, i: int) -> None:
        """Compare the tangents of a call in forward mode for every number of input ``i``."""
        tensor = self._args[i]
        for at, (j, part) in enumerate(_directions(tensor)):
            direction = _autograd.zeros_like(tensor)
            _autograd.set_element(direction, j, part)
            outputs, tangents = self._with_tangent(i, direction)
            for k, (output, tangent) in enumerate(zip(outputs, tangents, strict=True)):
                expected = self._slopes[i][at][k]
                numbers = [0.0] * len(expected) if tangent is None else numbers_of(tangent)
                for n, (got, one) in enumerate(zip(numbers, expected, strict=True)):
                    self._compare(got, one, (k, output, n), (i, at), "forward mode")

    def _compare(
        self, got: float, expected: float, of: tuple[int, Any, int], by: tuple[int, int], way: str
    ) -> None:
        """Compare the derivative of (output's number, output, number in it) by (input, number)."""
        if abs(got - expected) <= self._atol + self._rtol * abs(expected):
            return
        k, output, n = of
        i, at = by
        raise GradcheckError(
            f"gradcheck: d output {k}[{_label(output, n)}] / d input "
            f"{i}[{_label(self._args[i], at)}] must be {expected:.9g} by finite differences; "
            f"{way} gives {got:.9g}"
        )


def _directions(tensor: Any) -> list[tuple[int, complex]]:
    """Return all steps of length 1, each as an element and its real or imaginary part."""
    return [(j, part) for j in range(_autograd.count(tensor)) for part in parts_of(tensor)]


def _label(tensor: Any, number: int) -> str:
    """Name a number of a tensor: the element, and the part of a complex one."""
    if not _autograd.is_complex(tensor):
        return str(number)
    return f"{number // 2}, {'imaginary' if number % 2 else 'real'} part"


class Directions(Differences):
    """A random direction for every input to check, the derivatives along it, and comparisons."""

    def _measure(self) -> None:
        self._random = random.Random(0)  # the same in every run
        self._directions = {i: self._draw(self._args[i]) for i in self._positions}
        self._slopes = {i: self._slope(i) for i in self._positions}

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
        return _slopes_between(above, below, self._eps)

    def changes(self, k: int) -> bool:
        """Whether output ``k`` changes with an input."""
        return any(d for i in self._positions for d in self._slopes[i][k])

    def compare_gradients(self, k: int, output: Any) -> None:
        """Compare u J v of a backward pass with that of the differences."""
        u = self._draw(output)
        if not u:
            return
        selection = [self._args[i] for i in self._positions]
        result = grad(output, selection, _filled(output, u), retain_graph=True, allow_unused=True)
        for i, gradient in zip(self._positions, result, strict=True):
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
