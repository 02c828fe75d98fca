"""The inner functions of `torch.optim.lbfgs`, with which libraries make their own optimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plait
from plait_optim import _lbfgs

__all__: list[str] = []


def _strong_wolfe(
    obj_func: Callable[[Any, Any, Any], tuple[Any, Any]],
    x: Any,
    t: Any,
    d: Any,
    f: Any,
    g: Any,
    gtd: Any,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
    max_ls: int = 25,
) -> tuple[Any, Any, Any, int]:
    r"""Return loss, gradient and length of a step with the strong Wolfe conditions, and the number
    of evaluations.

    The conditions are :math:`f(t) \le f(0) + c_1 t f'(0)` and :math:`|f'(t)| \le c_2 |f'(0)|`.

    Args:
        obj_func: a function from x, a length and a direction to the loss there and its gradient.
        x: the point.
        t: the first length.
        d: the direction.
        f, g, gtd: the loss and the gradient at `x`, and its slope along `d`.
        c1, c2: the shares of the slope.
        tolerance_change: shorter brackets are not searched.
        max_ls: how many lengths are tried after the first.

    Example:
        >>> import plait
        >>> from plait_torch._line_search import _strong_wolfe
        >>> x = plait.tensor([2.0])
        >>> def square(x, t, d):
        ...     return float((x + t * d).square().sum()), 2 * (x + t * d)
        >>> f, g = square(x, 0.0, x)
        >>> loss, _, t, count = _strong_wolfe(square, x, 1.0, -g, f, g, -(g @ g))
        >>> loss, t, count
        (0.0, 0.5, 2)
    """

    def evaluate(length: float) -> Any:
        loss, gradient = obj_func(x, length, d)
        values = loss, gradient.clone(memory_format=plait.contiguous_format)
        return _lbfgs.Point(length, float(loss), values, float(gradient.dot(d)))

    start = _lbfgs.Point(0, float(f), (f, g), float(gtd))
    size = float(d.abs().max())
    point, count = _lbfgs.strong_wolfe(
        evaluate, start, float(t), size, max_ls, tolerance_change, (c1, c2)
    )
    return (*point.grad, point.t, count)


def _cubic_interpolate(
    x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: Any = None
) -> Any:
    """Return the minimum of the cubic through two points, within bounds.

    Args:
        x1, f1, g1: the first point, its value and its slope.
        x2, f2, g2: the second.
        bounds: the least and the largest result; None is the two points.

    Example:
        >>> from plait_torch._line_search import _cubic_interpolate
        >>> _cubic_interpolate(0.0, 1.0, -1.0, 1.0, 1.0, 1.0)
        0.5
    """
    first = _lbfgs.Point(float(x1), float(f1), None, float(g1))
    second = _lbfgs.Point(float(x2), float(f2), None, float(g2))
    ends = sorted((first.t, second.t)) if bounds is None else [float(each) for each in bounds]
    result = _lbfgs.minimum_of_cubic(first, second, (ends[0], ends[1]))
    return g1.new_tensor(result) if isinstance(g1, plait.Tensor) else result
