"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from plait_optim._elementwise import Elementwise
from plait_optim._groups import ParamGroup
from plait_optim._options import default_options, number_of
from plait_optim._powers import power


class ASGD(Elementwise):
    r"""Gradient descent with a decaying rate, which also averages the parameters over the steps.

    With gradient :math:`g` (negated if ``maximize``), weight decay :math:`\lambda` and the step
    number t from 1:

    .. math::
        g &\leftarrow g + \lambda p \\
        p &\leftarrow (1 - \lambda_d \eta)\, p - \eta g \\
        a &\leftarrow a + \mu (p - a) \\
        \eta &\leftarrow \mathrm{lr} / (1 + \lambda_d\, \mathrm{lr}\, t)^\alpha, \quad
            \mu \leftarrow 1 / \max(1, t - t_0)

    The average a is ``state[p]["ax"]``.

    Args:
        lambd: :math:`\lambda_d`, the decay of weights and of the rate.
        alpha: :math:`\alpha`, the exponent of the rate's decay.
        t0: the step :math:`t_0` after which averaging begins.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> p = np.array([1.0, 2.0])
        >>> plait_optim.ASGD([p], lr=0.5, lambd=0.0).step(grads=[np.array([3.0, -3.0])])
        >>> p.round(4)
        array([-0.5,  3.5])

    References:
        Polyak and Juditsky, "Acceleration of stochastic approximation by averaging" (1992).
    """

    operator = "asgd_step"
    arrays = ("ax",)
    operator_options = ("lambd", "weight_decay")
    scalars = ("eta", "mu")

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, default_options(self, locals()))

    def fill(self, group: ParamGroup, name: str) -> float:
        """Return the initial value of a state."""
        return {"eta": number_of(group, "lr"), "mu": 1.0}.get(name, 0.0)

    def numbers(self, group: ParamGroup, state: dict[str, Any], step: int) -> tuple[float, ...]:
        """Return this step's rate and the weight of its point in the average."""
        return float(state["eta"]), float(state["mu"])

    def count(self, group: ParamGroup, state: dict[str, Any], step: int) -> None:
        """Count a step, and compute the rate and the weight of the next one."""
        lr, lambd = number_of(group, "lr"), number_of(group, "lambd")
        state["step"] = step
        state["eta"] = lr / power(1 + lambd * lr * step, number_of(group, "alpha"))
        state["mu"] = 1 / max(1, step - number_of(group, "t0"))
