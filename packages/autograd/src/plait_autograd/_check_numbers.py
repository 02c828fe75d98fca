"""What both ways of `gradcheck` share: the numbers of tensors, and how outputs are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_autograd import _autograd
from plait_autograd._modes import no_grad

__all__ = ["GradcheckError", "numbers_of", "outputs_of", "parts_of", "slopes", "values_of"]


class GradcheckError(AssertionError, RuntimeError):
    """A derivative is not what finite differences say.

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
    """The directions in which an element can change: its real and its imaginary part."""
    return (1.0, 1j) if _autograd.is_complex(tensor) else (1.0,)


def numbers_of(tensor: Any) -> list[float]:
    """All elements, complex ones as two numbers."""
    return [
        number
        for j in range(_autograd.count(tensor))
        for z in [_autograd.element(tensor, j)]
        for number in ((z.real, z.imag) if isinstance(z, complex) else (z,))
    ]


def values_of(fn: Callable[..., Any], args: tuple[Any, ...]) -> list[list[float]]:
    """Return the numbers of every output, computed without a graph."""
    with no_grad():
        return [numbers_of(y) for y in outputs_of(fn(*args))]


def slopes(above: list[list[float]], below: list[list[float]], eps: float) -> list[list[float]]:
    """Return the central differences between the numbers of two calls."""
    return [
        [(a - b) / (2 * eps) for a, b in zip(ys, zs, strict=True)]
        for ys, zs in zip(above, below, strict=True)
    ]
