"""Shared by both modes of `gradcheck`: tensors as numbers, and calls with their outputs and
tangents.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

from plait_autograd import _autograd, forward_ad
from plait_autograd._modes import no_grad

__all__ = ["Differences", "GradcheckError", "numbers_of", "outputs_of", "parts_of", "slopes"]


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


def slopes(above: list[list[float]], below: list[list[float]], eps: float) -> list[list[float]]:
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
        wanted: list[int],
        eps: float,
        tolerances: tuple[float, float],
    ) -> None:
        self._fn, self._args, self._wanted, self._eps = fn, args, wanted, eps
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
