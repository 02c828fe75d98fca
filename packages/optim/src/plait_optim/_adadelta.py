"""Adadelta."""

from __future__ import annotations

from typing import Any

from plait_optim._elementwise import Elementwise
from plait_optim._options import default_options, document_common_options

__all__ = ["Adadelta"]

_FIRST_IN_GROUPS = ("lr", "rho", "eps", "weight_decay", "maximize", "capturable")


@document_common_options
class Adadelta(Elementwise):
    r"""Adadelta: steps scaled by running averages of squared steps and squared gradients.

    With gradient :math:`g` (negated if ``maximize``), weight decay :math:`\lambda` and the step
    number t from 1:

    .. math::
        g &\leftarrow g + \lambda p \\
        v &\leftarrow \rho v + (1 - \rho) g^2 \\
        d &= \frac{\sqrt{u + \epsilon}}{\sqrt{v + \epsilon}}\, g \\
        u &\leftarrow \rho u + (1 - \rho) d^2 \\
        p &\leftarrow p - \mathrm{lr}\, d

    Args:
        params: real floating arrays, or groups of them; see `Optimizer`.
        rho: :math:`\rho`, in [0, 1].

    Raises:
        ValueError: if an option is out of its range.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> p = np.array([1.0, 2.0])
        >>> plait_optim.Adadelta([p], lr=100.0).step(grads=[np.array([3.0, -3.0])])
        >>> p.round(4)
        array([0.6838, 2.3162])

    References:
        Zeiler, "ADADELTA: an adaptive learning rate method" (2012).
    """

    operator = "adadelta_step"
    arrays = ("square_avg", "acc_delta")
    operator_options = ("lr", "rho", "eps", "weight_decay")

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = default_options(self, locals(), first=_FIRST_IN_GROUPS)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        super().__init__(params, defaults)
