"""`gradcheck` in one direction: all elements at once, against one difference an input."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from plait_autograd import _autograd, forward_ad
from plait_autograd._backward import grad
from plait_autograd._modes import no_grad

__all__ = ["Directions", "compare_projection", "compare_tangent"]

Report = Callable[[str], None]


class Directions:
    """For every wanted input a random direction, and what the outputs do along it."""

    def __init__(
        self,
        values: Callable[[tuple[Any, ...]], list[list[float]]],
        args: tuple[Any, ...],
        wanted: list[int],
        eps: float,
    ) -> None:
        self._random = random.Random(0)  # the same in every run
        self.directions = {i: self.draw(args[i]) for i in wanted}
        self.slopes = {i: self._slope(values, args, i, eps) for i in wanted}

    def draw(self, tensor: Any) -> list[float]:
        """Draw numbers for the elements, complex ones as two, of length 1 together."""
        n = _autograd.count(tensor) * (2 if _autograd.is_complex(tensor) else 1)
        drawn = [self._random.uniform(0.5, 1.5) * self._random.choice((-1, 1)) for _ in range(n)]
        length = sum(x * x for x in drawn) ** 0.5
        return [x / length for x in drawn]

    def _slope(
        self,
        values: Callable[[tuple[Any, ...]], list[list[float]]],
        args: tuple[Any, ...],
        i: int,
        eps: float,
    ) -> list[list[float]]:
        tensor, direction = args[i], elements(args[i], self.directions[i])
        before = [_autograd.element(tensor, j) for j in range(len(direction))]
        found = []
        for sign in (1, -1):
            for j, (value, step) in enumerate(zip(before, direction, strict=True)):
                _autograd.set_element(tensor, j, value + sign * eps * step)
            found.append(values(args))
        for j, value in enumerate(before):
            _autograd.set_element(tensor, j, value)
        above, below = found
        return [
            [(a - b) / (2 * eps) for a, b in zip(ys, zs, strict=True)]
            for ys, zs in zip(above, below, strict=True)
        ]


def elements(tensor: Any, numbers: list[float]) -> list[complex]:
    """Join numbers to the elements of a tensor: pairs of them where it is complex."""
    if not _autograd.is_complex(tensor):
        return list(numbers)
    return [complex(a, b) for a, b in zip(numbers[::2], numbers[1::2], strict=True)]


def filled(tensor: Any, numbers: list[float]) -> Any:
    """Return a tensor like another one, of given numbers."""
    made = _autograd.zeros_like(tensor)
    for j, value in enumerate(elements(tensor, numbers)):
        _autograd.set_element(made, j, value)
    return made


def compare_projection(
    output: Any,
    k: int,
    args: tuple[Any, ...],
    wanted: list[int],
    found: Directions,
    numbers: Callable[[Any], list[float]],
    tolerances: tuple[float, float],
    report: Report,
) -> None:
    """Compare u J v of a backward pass with that of the differences."""
    atol, rtol = tolerances
    u = found.draw(output)
    if not u:
        return
    chosen = [args[i] for i in wanted]
    gradients = grad(output, chosen, filled(output, u), retain_graph=True, allow_unused=True)
    for i, gradient in zip(wanted, gradients, strict=True):
        v = found.directions[i]
        row = [0.0] * len(v) if gradient is None else numbers(gradient)
        got = sum(a * b for a, b in zip(row, v, strict=True))
        expected = sum(a * b for a, b in zip(u, found.slopes[i][k], strict=True))
        bound = atol * sum(map(abs, u)) * sum(map(abs, v)) + rtol * abs(expected)
        if not abs(got - expected) <= bound:
            report(
                f"gradcheck: the derivative of output {k} for input {i} must be {expected:.9g} in "
                f"a random direction by finite differences; backward gives {got:.9g}; "
                f"fast_mode=False names the element"
            )


def compare_tangent(
    call: Callable[[tuple[Any, ...]], list[Any]],
    args: tuple[Any, ...],
    i: int,
    found: Directions,
    numbers: Callable[[Any], list[float]],
    tolerances: tuple[float, float],
    report: Report,
) -> None:
    """Compare J v of forward mode with that of the differences."""
    atol, rtol = tolerances
    v = found.directions[i]
    if not v:
        return
    with no_grad(), forward_ad.dual_level():
        dual = forward_ad.make_dual(args[i], filled(args[i], v))
        outputs = call((*args[:i], dual, *args[i + 1 :]))
        tangents = [_autograd.tangent(y) for y in outputs]
    for k, (tangent, expected) in enumerate(zip(tangents, found.slopes[i], strict=True)):
        row = [0.0] * len(expected) if tangent is None else numbers(tangent)
        for got, wanted in zip(row, expected, strict=True):
            if not abs(got - wanted) <= atol * sum(map(abs, v)) + rtol * abs(wanted):
                report(
                    f"gradcheck: the derivative of output {k} for input {i} must be {wanted:.9g} "
                    f"in a random direction by finite differences; forward mode gives {got:.9g}; "
                    f"fast_mode=False names the element"
                )
