"""Limited-memory BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_optim import _flat, _sparse
from plait_optim._arithmetic import check_arithmetic, narrowed, wide
from plait_optim._arrays import filled_like, mark_written
from plait_optim._component import grad_mode
from plait_optim._groups import ParamGroup
from plait_optim._line_search import Point, strong_wolfe
from plait_optim._optimizer import Optimizer
from plait_optim._options import default_options, document_common_options, number_of

__all__ = ["LBFGS"]


@document_common_options
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
        params: real floating arrays; see `Optimizer`.
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
            if _flat.largest(grad) > group["tolerance_grad"]:
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
        first = group["params"][0]
        evaluations, last = 1, group["max_iter"]
        for iteration in range(1, last + 1):
            state["n_iter"] += 1
            d = _direction(state, grad, group)
            state["d"], state["prev_flat_grad"] = narrowed(first, d), narrowed(first, grad)
            state["prev_loss"] = loss
            state["t"] = lr
            if state["n_iter"] == 1:
                state["t"] = min(1.0, 1.0 / float(abs(grad).sum())) * lr
            slope = _flat.dot(grad, d)
            if slope > -tolerance:
                break
            start = Point(0.0, loss, grad, slope)
            more = group["max_eval"] - evaluations
            if group["line_search_fn"] is not None:
                point, calls = self._search(closure, start, state["t"], d, more)
                state["t"], loss, grad = point.t, point.loss, point.grad
                _flat.add(group["params"], d, point.t)
            else:
                _flat.add(group["params"], d, state["t"])
                calls = int(iteration != last)
                if calls:
                    _, loss, grad = self._evaluate(closure)
            evaluations += calls
            state["func_evals"] += calls
            if (
                evaluations >= group["max_eval"]
                or (calls and _flat.largest(grad) <= group["tolerance_grad"])
                or abs(state["t"]) * _flat.largest(d) <= tolerance
                or abs(loss - start.loss) < tolerance
            ):
                break

    def _search(
        self, closure: Callable[[], Any], start: Point, t: float, d: Any, most: int
    ) -> tuple[Point, int]:
        params = self.param_groups[0]["params"]
        here = _flat.joined(params)

        def evaluate(t: float) -> Point:
            _flat.add(params, d, t)
            _, loss, grad = self._evaluate(closure)
            _flat.assign(params, here)
            return Point(t, loss, grad, _flat.dot(grad, d))

        return strong_wolfe(evaluate, start, t, _flat.largest(d), most)

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
        return loss, value, _flat.joined(gradients)

    def load_value(self, param: Any, name: str, value: Any) -> Any:
        """Return the stored form of a loaded value: see `Optimizer.load_value`."""
        params = self.param_groups[0]["params"]
        if name in ("d", "prev_flat_grad"):
            return None if value is None else _flat.loaded(params, value)
        if name in ("old_dirs", "old_stps"):
            return [_flat.loaded(params, each) for each in value]
        if name in ("ro", "al"):
            return [None if each is None else float(each) for each in value]
        if name in ("H_diag", "prev_loss", "t") and value is not None:
            return float(value)
        return super().load_value(param, name, value)


def _direction(state: dict[str, Any], grad: Any, group: ParamGroup) -> Any:
    """Add the last difference to the history and return -H g."""
    if state["n_iter"] == 1:
        state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
        return -grad
    ys, steps, rho = state["old_dirs"], state["old_stps"], state["ro"]
    y, s = grad - wide(state["prev_flat_grad"]), wide(state["d"]) * state["t"]
    curvature = _flat.dot(y, s)
    if curvature > 1e-10:
        if len(ys) == group["history_size"]:
            for history in (ys, steps, rho):
                del history[0]
        ys.append(narrowed(group["params"][0], y))
        steps.append(narrowed(group["params"][0], s))
        rho.append(1.0 / curvature)
        state["H_diag"] = curvature / _flat.dot(y, y)
    d = -grad
    weights = []
    for y, s, r in zip(reversed(ys), reversed(steps), reversed(rho), strict=True):
        weights.append(_flat.dot(wide(s), d) * r)
        d -= weights[-1] * wide(y)
    d *= state["H_diag"]
    for y, s, r in zip(ys, steps, rho, strict=True):
        d += (weights.pop() - _flat.dot(wide(y), d) * r) * wide(s)
    return d
