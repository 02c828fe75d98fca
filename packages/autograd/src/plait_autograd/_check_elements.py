"""`gradcheck` element by element: the whole Jacobian against finite differences."""

from __future__ import annotations

from typing import Any

from plait_autograd import _autograd
from plait_autograd._backward import grad
from plait_autograd._check_numbers import Differences, GradcheckError, numbers_of, parts_of, slopes

__all__ = ["Elements"]


class Elements(Differences):
    """The derivatives of all outputs by finite differences, and the comparisons with them."""

    def _measure(self) -> None:
        # keys: input, number of the input, output, number of the output
        self._slopes = {i: self._differences(i) for i in self._wanted}

    def _differences(self, i: int) -> list[list[list[float]]]:
        rows, eps, tensor = [], self._eps, self._args[i]
        for at, part in _directions(tensor):
            value = _autograd.element(tensor, at)
            _autograd.set_element(tensor, at, value + part * eps)
            above = self._values()
            _autograd.set_element(tensor, at, value - part * eps)
            below = self._values()
            _autograd.set_element(tensor, at, value)
            rows.append(slopes(above, below, eps))
        return rows

    def changes(self, k: int) -> bool:
        """Whether output ``k`` changes with an input."""
        return any(d for i in self._wanted for row in self._slopes[i] for d in row[k])

    def compare_gradients(self, k: int, output: Any) -> None:
        """Compare the gradients of a backward pass for every number of output ``k``."""
        chosen = [self._args[i] for i in self._wanted]
        for n, (j, part) in enumerate(_directions(output)):
            one = _autograd.zeros_like(output)
            _autograd.set_element(one, j, part)
            result = grad(output, chosen, one, retain_graph=True, allow_unused=True)
            for i, gradient in zip(self._wanted, result, strict=True):
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
        self,
        got: float,
        expected: float,
        of: tuple[int, Any, int],
        by: tuple[int, int],
        way: str,
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
