"""A step length along a direction that satisfies the strong Wolfe conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["Point", "strong_wolfe"]

DECREASE, CURVATURE = 1e-4, 0.9


class Point(NamedTuple):
    """A point on the line: step length, loss, gradient, and slope along the direction."""

    t: float
    loss: float
    grad: Any
    slope: float


def strong_wolfe(
    evaluate: Callable[[float], Point],
    start: Point,
    t: float,
    size: float,
    most: int,
    tolerance: float = 1e-9,
) -> tuple[Point, int]:
    """Return a point that satisfies the strong Wolfe conditions, and the number of evaluations.

    Nocedal and Wright, "Numerical optimization" (2006), algorithms 3.5 and 3.6, with cubic
    interpolation and the safeguards of Schmidt's minFunc, as in PyTorch.

    Args:
        evaluate: the function, at a step length.
        start: the point at 0, whose slope is negative.
        t: the first step length.
        size: the largest element of the direction; ``tolerance`` is a step length times this.
        most: the limit of step lengths to try after the first.
        tolerance: smaller brackets are not searched.
    """

    def too_high(point: Point) -> bool:
        return point.loss > start.loss + DECREASE * point.t * start.slope

    def flat(point: Point) -> bool:
        return abs(point.slope) <= -CURVATURE * start.slope

    before, point, tried = start, evaluate(t), 0
    while tried < most:
        if too_high(point) or (tried > 1 and point.loss >= before.loss):
            break
        if flat(point):
            return point, tried + 1
        if point.slope >= 0:
            break
        bounds = point.t + 0.01 * (point.t - before.t), point.t * 10
        length = _minimum_of_cubic(before, point, bounds)
        before, point = point, evaluate(length)
        tried += 1
    else:
        before = start

    low, high = before, point
    if not before.loss <= point.loss:
        low, high = point, before
    stuck = False
    while tried < most and not abs(high.t - low.t) * size < tolerance:
        first, second = (low, high) if low.t <= high.t else (high, low)
        length = _minimum_of_cubic(first, second, (first.t, second.t))
        length, stuck = _away_from_ends(length, first.t, second.t, stuck)
        point = evaluate(length)
        tried += 1
        if too_high(point) or point.loss >= low.loss:
            high = point
            if not low.loss <= high.loss:
                low, high = high, low
            continue
        if flat(point):
            return point, tried + 1
        if point.slope * (high.t - low.t) >= 0:
            high = low
        low = point
    return low, tried + 1


def _away_from_ends(t: float, least: float, most: float, stuck: bool) -> tuple[float, bool]:
    """Return ``t``, moved inwards if it is near an end for the second time, and whether it is near
    an end.
    """
    margin = 0.1 * (most - least)
    if min(most - t, t - least) >= margin:
        return t, False
    if not (stuck or t >= most or t <= least):
        return t, True
    return (most - margin if abs(t - most) < abs(t - least) else least + margin), False


def _minimum_of_cubic(a: Point, b: Point, bounds: tuple[float, float]) -> float:
    """Return the minimum of the cubic through two points with their slopes, within bounds."""
    if b.t < a.t:
        a, b = b, a
    d = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t) if a.t != b.t else math.nan
    square = d * d - a.slope * b.slope
    if not square >= 0:
        return (bounds[0] + bounds[1]) / 2
    root = math.sqrt(square)
    bottom = b.slope - a.slope + 2 * root
    if bottom == 0:
        return (bounds[0] + bounds[1]) / 2
    t = b.t - (b.t - a.t) * ((b.slope + root - d) / bottom)
    return min(max(t, bounds[0]), bounds[1])
