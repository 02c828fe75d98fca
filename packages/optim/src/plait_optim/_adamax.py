"""Adam with the infinity norm."""

from __future__ import annotations

from typing import Any

from plait_optim._elementwise import Elementwise
from plait_optim._options import default_options, document_common_options

__all__ = ["Adamax"]


@document_common_options
class Adamax(Elementwise):
    r"""Adamax: Adam with the infinity norm of recent gradients instead of their squares.

    With gradient :math:`g` (negated if ``maximize``), weight decay :math:`\lambda` and the step
    number t from 1:

    .. math::
        g &\leftarrow g + \lambda p \\
        m &\leftarrow \beta_1 m + (1 - \beta_1) g \\
        u &\leftarrow \max(\beta_2 u, |g| + \epsilon) \\
        p &\leftarrow p - \frac{\mathrm{lr}}{1 - \beta_1^t} \frac{m}{u}

    Args:
        params: real floating arrays, or groups of them; see `Optimizer`.

    Raises:
        ValueError: if an option is out of its range.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> p = np.array([1.0, 2.0])
        >>> plait_optim.Adamax([p], lr=0.5).step(grads=[np.array([3.0, -3.0])])
        >>> p.round(4)
        array([0.5, 2.5])

    References:
        Kingma and Ba, "Adam: a method for stochastic optimization" (2015), section 7.1.
    """

    operator = "adamax_step"
    arrays = ("exp_avg", "exp_inf")
    operator_options = ("lr", "betas", "eps", "weight_decay")

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        super().__init__(params, default_options(self, locals()))
