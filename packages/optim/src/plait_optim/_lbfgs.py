"""Limited-memory BFGS."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from plait_optim import _sparse
from plait_optim._arithmetic import check_arithmetic, narrowed, wide, widened, zeros
from plait_optim._arrays import exposed, filled_like, library_function, load, mark_written
from plait_optim._complex import real
from plait_optim._component import grad_mode
from plait_optim._groups import ParamGroup
from plait_optim._optimizer import Optimizer
from plait_optim._options import default_options, number_of


def joined(arrays: list[Any]) -> Any:
    """Return a copy of all elements as a vector."""
    join = library_function(type(arrays[0]), "concatenate")
    [own] = exposed(arrays)
    return join([wide(array).reshape(-1) for array in own])


def total(params: list[Any]) -> int:
    """Return the number of elements."""
    count = 0
    for param in params:
        size = 1
        for length in param.shape:
            size *= int(length)
        count += size
    return count


def _parts(flat: Any, params: list[Any]) -> list[Any]:
    parts, start = [], 0
    for param in params:
        end = start + total([param])
        parts.append(flat[start:end].reshape(tuple(param.shape)))
        start = end
    return parts


def add(params: list[Any], flat: Any, factor: float) -> None:
    """Add ``factor`` times a vector to the parameters, in place."""
    for param, part in zip(params, _parts(flat, params), strict=True):
        with widened(param) as [values]:
            values += factor * part


def assign(params: list[Any], flat: Any) -> None:
    """Write a vector into the parameters."""
    [targets] = exposed(params)
    for target, part in zip(targets, _parts(flat, params), strict=True):
        target[...] = part


def dot(a: Any, b: Any) -> float:
    """Return the inner product of two vectors."""
    return float(a @ b)


def largest(a: Any) -> float:
    """Return the largest absolute value in a vector."""
    return float(abs(a).max()) if a.shape[0] else 0.0


def loaded(params: list[Any], value: Any) -> Any:
    """Return a copy of a saved vector in the library and dtype of the parameters."""
    flat = zeros(params[0], total(params))
    load(flat, value)
    return flat


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
    conditions: tuple[float, float] = (1e-4, 0.9),
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
        conditions: the shares of the slope in the conditions of decrease and of curvature.
    """
    decrease, curvature = conditions

    def too_high(point: Point) -> bool:
        return point.loss > start.loss + decrease * point.t * start.slope

    def flat(point: Point) -> bool:
        return abs(point.slope) <= -curvature * start.slope

    before, point, tried = start, evaluate(t), 0
    while tried < most:
        if too_high(point) or (tried > 1 and point.loss >= before.loss):
            break
        if flat(point):
            return point, tried + 1
        if point.slope >= 0:
            break
        bounds = point.t + 0.01 * (point.t - before.t), point.t * 10
        length = minimum_of_cubic(before, point, bounds)
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
        length = minimum_of_cubic(first, second, (first.t, second.t))
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


def minimum_of_cubic(a: Point, b: Point, bounds: tuple[float, float]) -> float:
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


class LBFGS(Optimizer):
    r"""L-BFGS: steps along an approximate Newton direction, from recent gradients. It is for full
    batches.

    With gradient :math:`g`, the differences :math:`s_i` of points and :math:`y_i` of gradients in
    the last ``history_size`` iterations, :math:`\rho_i = 1 / y_i^T s_i`:

    .. math::
        H_{i+1} &= (I - \rho_i s_i y_i^T) H_i (I - \rho_i y_i s_i^T) + \rho_i s_i s_i^T, \quad
            H_0 = \frac{y^T s}{y^T y} I \\
        p &\leftarrow p - t H g

    where t is ``lr``, in the first iteration at most :math:`\mathrm{lr} / \lVert g \rVert_1`, or
    the result of a line search that starts there.

    Parameters are arrays of one library and dtype, in one group: NumPy's, torch's or plait's. If
    they have no ``.grad``, the closure returns the loss and a list of gradients.

    A step decides by the loss, by norms and by inner products what to do next. So it reads them,
    with a line search or without, and waits for parameters on a device, which must be one for all.

    Args:
        params: floating arrays; see `Optimizer`.
        max_iter: iterations in a step.
        max_eval: calls of the closure in a step; 1.25 times ``max_iter`` by default.
        tolerance_grad: stop where no element of the gradient is larger.
        tolerance_change: stop where neither loss nor parameters change more.
        history_size: the number of differences that are stored.
        line_search_fn: "strong_wolfe", or None for steps of fixed length.

    Raises:
        ValueError: if an option is out of its range, or there is more than one group.
        TypeError: if the library of the parameters has no arithmetic.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> p = np.array([-1.0, 1.0])
        >>> def closure():  # Rosenbrock's valley
        ...     x, y = p
        ...     gradient = [-2 * (1 - x) - 400 * x * (y - x**2), 200 * (y - x**2)]
        ...     return (1 - x) ** 2 + 100 * (y - x**2) ** 2, [np.array(gradient)]
        >>> optimizer = plait_optim.LBFGS([p], max_iter=100, line_search_fn="strong_wolfe")
        >>> float(optimizer.step(closure))
        4.0
        >>> p.round(3)
        array([1., 1.])

    References:
        Liu and Nocedal, "On the limited memory BFGS method" (1989); Nocedal and Wright, "Numerical
        optimization" (2006), chapters 3 and 7.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        defaults = default_options(self, locals())
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f"only 'strong_wolfe' is supported; got {line_search_fn!r}")
        if max_eval is None:
            defaults["max_eval"] = max_iter * 5 // 4
        super().__init__(params, defaults)

    def check_group(self, group: ParamGroup) -> None:
        """Raise for a second group: see `Optimizer.check_group`."""
        if self.param_groups:
            raise ValueError(
                "LBFGS doesn't support per-parameter options (parameter groups); "
                f"got {len(self.param_groups) + 1} groups"
            )
        check_arithmetic(self, group["params"])

    def step(self, closure: Callable[[], Any]) -> Any:
        """Iterate until one of the limits is reached.

        Args:
            closure: computes the loss and the gradients; called many times. It returns the loss,
                or, if parameters have no ``.grad``, the loss and a list of gradients.

        Returns:
            The loss before the step.
        """
        [group] = self.param_groups
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        with grad_mode(False):
            first, loss, grad = self._evaluate(closure)
            state["func_evals"] += 1
            if largest(grad) > group["tolerance_grad"]:
                self._iterate(closure, group, state, loss, grad)
            mark_written(group["params"])
        return first

    def _iterate(
        self,
        closure: Callable[[], Any],
        group: dict[str, Any],
        state: dict[str, Any],
        loss: float,
        grad: Any,
    ) -> None:
        lr, tolerance = number_of(group, "lr"), group["tolerance_change"]
        params = self._arrays()
        first = params[0]
        evaluations, last = 1, group["max_iter"]
        for iteration in range(1, last + 1):
            state["n_iter"] += 1
            d = _direction(state, grad, first, group["history_size"])
            state["d"], state["prev_flat_grad"] = narrowed(first, d), narrowed(first, grad)
            state["prev_loss"] = loss
            state["t"] = lr
            if state["n_iter"] == 1:
                state["t"] = min(1.0, 1.0 / float(abs(grad).sum())) * lr
            slope = dot(grad, d)
            if slope > -tolerance:
                break
            start = Point(0.0, loss, grad, slope)
            more = group["max_eval"] - evaluations
            if group["line_search_fn"] is not None:
                point, calls = self._search(closure, start, state["t"], d, more)
                state["t"], loss, grad = point.t, point.loss, point.grad
                add(params, d, point.t)
            else:
                add(params, d, state["t"])
                calls = int(iteration != last)
                if calls:
                    _, loss, grad = self._evaluate(closure)
            evaluations += calls
            state["func_evals"] += calls
            if (
                evaluations >= group["max_eval"]
                or (calls and largest(grad) <= group["tolerance_grad"])
                or abs(state["t"]) * largest(d) <= tolerance
                or abs(loss - start.loss) < tolerance
            ):
                break

    def _search(
        self, closure: Callable[[], Any], start: Point, t: float, d: Any, most: int
    ) -> tuple[Point, int]:
        params = self._arrays()
        here = joined(params)

        def evaluate(t: float) -> Point:
            add(params, d, t)
            _, loss, grad = self._evaluate(closure)
            assign(params, here)
            return Point(t, loss, grad, dot(grad, d))

        return strong_wolfe(evaluate, start, t, largest(d), most)

    def _evaluate(self, closure: Callable[[], Any]) -> tuple[Any, float, Any]:
        params = self.param_groups[0]["params"]
        with grad_mode(True):
            loss = closure()
        if isinstance(loss, tuple):
            loss, grads = loss
            if len(grads) != len(params):
                raise ValueError(
                    "LBFGS: the closure must return one gradient for each of the "
                    f"{len(params)} parameters; got {len(grads)}"
                )
        else:
            missing = [p for p in params if not hasattr(p, "grad")]
            if missing:
                raise TypeError(
                    "LBFGS: parameters without .grad need a closure that returns "
                    f"(loss, gradients); got {type(loss).__name__}"
                )
            grads = [p.grad for p in params]
        grads = [g.to_dense() if _sparse.is_sparse(g) else g for g in grads]
        gradients = [filled_like(p) if g is None else g for p, g in zip(params, grads, strict=True)]
        value = float(loss.detach() if hasattr(loss, "detach") else loss)
        return loss, value, joined([real(each) for each in gradients])

    def _arrays(self) -> list[Any]:
        """Return the parameters, the complex ones as real arrays on the same memory."""
        return [real(param) for param in self.param_groups[0]["params"]]

    def load_value(self, param: Any, name: str, value: Any) -> Any:
        """Return the stored form of a loaded value: see `Optimizer.load_value`."""
        params = self._arrays()
        if name in ("d", "prev_flat_grad"):
            return None if value is None else loaded(params, value)
        if name in ("old_dirs", "old_stps"):
            return [loaded(params, each) for each in value]
        if name in ("ro", "al"):
            return [None if each is None else float(each) for each in value]
        if name in ("H_diag", "prev_loss", "t") and value is not None:
            return float(value)
        return super().load_value(param, name, value)


def _direction(state: dict[str, Any], grad: Any, param: Any, history_size: int) -> Any:
    """Add the last difference to the history and return -H g."""
    if state["n_iter"] == 1:
        state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
        return -grad
    ys, steps, rho = state["old_dirs"], state["old_stps"], state["ro"]
    y, s = grad - wide(state["prev_flat_grad"]), wide(state["d"]) * state["t"]
    curvature = dot(y, s)
    if curvature > 1e-10:
        if len(ys) == history_size:
            for history in (ys, steps, rho):
                del history[0]
        ys.append(narrowed(param, y))
        steps.append(narrowed(param, s))
        rho.append(1.0 / curvature)
        state["H_diag"] = curvature / dot(y, y)
    d = -grad
    weights = []
    for y, s, r in zip(reversed(ys), reversed(steps), reversed(rho), strict=True):
        weights.append(dot(wide(s), d) * r)
        d -= weights[-1] * wide(y)
    d *= state["H_diag"]
    for y, s, r in zip(ys, steps, rho, strict=True):
        d += (weights.pop() - dot(wide(y), d) * r) * wide(s)
    return d
