"""Adafactor: second moments as products of rows and columns."""

from __future__ import annotations

import math
from typing import Any

from plait_optim._arithmetic import (
    check_arithmetic,
    dtype_name,
    own_gradients,
    root_of_sum,
    widened,
    zeros,
)
from plait_optim._arrays import filled_like, load
from plait_optim._devices import number_on
from plait_optim._groups import ParamGroup, States
from plait_optim._optimizer import Optimizer
from plait_optim._options import default_options, not_negative, number_of
from plait_optim._powers import power
from plait_optim._state import whole_number

_FACTORS = ("row_var", "col_var")
# the state of a parameter has either the factors or the variance
_MOMENTS = (*_FACTORS, "variance")
_EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


class Adafactor(Optimizer):
    r"""Adafactor: second moments factored into rows and columns, and steps relative to the weights.

    With gradient :math:`g` (negated if ``maximize``) of m columns and n rows (the last two
    dimensions), weight decay :math:`\lambda` and the step number t from 1:

    .. math::
        \beta &= 1 - t^\tau, \quad \rho = \min(\mathrm{lr}, 1 / \sqrt t), \quad
            \alpha = \rho \max(\epsilon_2, \mathrm{RMS}(p)) \\
        p &\leftarrow (1 - \mathrm{lr}\,\lambda)\, p \\
        R &\leftarrow \beta R + (1 - \beta) \tfrac1m \sum_{\text{columns}} g^2, \quad
            C \leftarrow \beta C + (1 - \beta) \tfrac1n \sum_{\text{rows}} g^2, \quad
            V = \frac{R\, C}{\max(\overline R, \epsilon_1)} \\
        u &= g / \max(\sqrt V, \epsilon_1), \quad
            p \leftarrow p - \alpha\, u / \max(1, \mathrm{RMS}(u) / d)

    For vectors and 0-d arrays V itself is stored. As in PyTorch, and unlike the paper, lr is the
    largest relative step, and :math:`\epsilon_1` guards the quotients.

    Args:
        params: real floating arrays of NumPy, torch or plait; see `Optimizer`.
        lr: the largest relative step, at least 0.
        beta2_decay: :math:`\tau`, at most 0.
        eps: :math:`(\epsilon_1, \epsilon_2)`; None is the epsilon of the dtype.
        d: the largest root mean square of an update, at least 1.
        foreach: accepted for PyTorch's signature.

    Raises:
        ValueError: if an option is out of its range.
        TypeError: if the library of the parameters has no arithmetic.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> p = np.array([[1.0, 2.0], [3.0, 4.0]])
        >>> optimizer = plait_optim.Adafactor([p], lr=0.1)
        >>> optimizer.step(grads=[np.array([[1.0, -1.0], [1.0, -1.0]])])
        >>> p.round(3)
        array([[0.726, 2.274],
               [2.726, 4.274]])
        >>> optimizer.state[p]["row_var"].shape
        (2, 1)

    References:
        Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost" (2018).
    """

    arrays = ("variance",)

    scales_gradients = True

    takes_complex = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        defaults = default_options(self, locals(), own=("eps",))
        not_negative("epsilon1", 0.0 if eps[0] is None else eps[0])
        not_negative("epsilon2", eps[1])
        if not beta2_decay <= 0:
            raise ValueError(f"Adafactor: beta2_decay must be at most 0; got {beta2_decay}")
        if not d >= 1:
            raise ValueError(f"Adafactor: d must be at least 1; got {d}")
        super().__init__(params, defaults)

    def check_group(self, group: ParamGroup) -> None:
        """Raise for arrays without arithmetic: see `Optimizer.check_group`."""
        check_arithmetic(self, group["params"])

    def load_value(self, param: Any, name: str, value: Any) -> Any:
        """Return the stored form of a loaded value: see `Optimizer.load_value`."""
        if name not in _FACTORS:
            return super().load_value(param, name, value)
        zero = zeros(param, tuple(value.shape))
        load(zero, value)
        return zero

    def update(
        self, group: ParamGroup, params: list[Any], grads: list[Any], states: States
    ) -> None:
        """Update one group: see `Optimizer.update`."""
        gradients = own_gradients(self, params, grads)
        sign = -1.0 if group["maximize"] else 1.0
        lr, decay = number_of(group, "lr"), number_of(group, "weight_decay")
        for param, grad, state in zip(params, gradients, states, strict=True):
            _start(param, state)
            state["step"] = whole_number("step", state["step"]) + 1
            count = math.prod(param.shape)
            if count == 0:
                continue
            grad *= sign * number_on(self.gradient_factor, grad)
            eps1, eps2 = group["eps"]
            eps1 = _EPSILON[dtype_name(param)] if eps1 is None else float(eps1)
            rho = min(lr, 1 / math.sqrt(state["step"]))
            arrays = [state[name] for name in _MOMENTS if name in state]
            with widened(param, *arrays) as [values, *moments]:
                alpha = _root_mean_square(values, count).clip(float(eps2)) * rho
                update = grad * _scale(
                    grad, moments, power(state["step"], group["beta2_decay"]), eps1
                )
                largest = (_root_mean_square(update, count) / number_of(group, "d")).clip(1.0)
                if decay:
                    values *= 1 - lr * decay
                values -= (alpha / largest) * update


def _start(param: Any, state: dict[str, Any]) -> None:
    if "step" in state:
        return
    state["step"] = 0
    shape = tuple(param.shape)
    if len(shape) > 1:
        state["row_var"] = zeros(param, (*shape[:-1], 1))
        state["col_var"] = zeros(param, (*shape[:-2], 1, shape[-1]))
    else:
        state["variance"] = filled_like(param)


def _root_mean_square(array: Any, count: int) -> Any:
    return root_of_sum(array * array) / math.sqrt(count)


def _scale(grad: Any, moments: list[Any], weight: float, eps: float) -> Any:
    """Return 1 / root of the second moment, after its update by this gradient with ``weight``."""
    squares = grad * grad
    if len(moments) == 1:
        [moment] = moments
        moment += weight * (squares - moment)
        estimate = moment
    else:
        rows, columns = moments
        shape = tuple(grad.shape)
        rows += weight * (squares.sum(-1).reshape(tuple(rows.shape)) / shape[-1] - rows)
        columns += weight * (squares.sum(-2).reshape(tuple(columns.shape)) / shape[-2] - columns)
        mean = rows.sum(-2).reshape((*shape[:-2], 1, 1)) / shape[-2]
        estimate = rows * columns / mean.clip(eps)
    return estimate.clip(eps * eps) ** -0.5
