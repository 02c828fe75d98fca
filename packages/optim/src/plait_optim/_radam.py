"""Rectified Adam."""

from __future__ import annotations

from typing import Any

from plait_optim._elementwise import Elementwise
from plait_optim._options import default_options, document_common_options

__all__ = ["RAdam"]

_FIRST_IN_GROUPS = ("lr", "betas", "eps", "weight_decay", "maximize", "foreach", "capturable")


@document_common_options
class RAdam(Elementwise):
    r"""RAdam: Adam without adaptive rates in the first steps, in which their variance is large.

    With gradient :math:`g` (negated if ``maximize``), weight decay :math:`\lambda` and the step
    number t from 1:

    .. math::
        g &\leftarrow g + \lambda p
            \quad (\text{or } p \leftarrow p - \mathrm{lr}\,\lambda p \text{ if decoupled}) \\
        m &\leftarrow \beta_1 m + (1 - \beta_1) g \\
        v &\leftarrow \beta_2 v + (1 - \beta_2) g^2 \\
        n &= \frac{2}{1 - \beta_2} - 1, \quad
            l = n - \frac{2 t \beta_2^t}{1 - \beta_2^t}, \quad
            r = \sqrt{\frac{(l - 4)(l - 2)\, n}{(n - 4)(n - 2)\, l}} \\
        p &\leftarrow p - \mathrm{lr}\, \frac{m}{1 - \beta_1^t} \cdot
            \begin{cases} r \sqrt{1 - \beta_2^t} / (\sqrt{v} + \epsilon) & l > 5 \\
            1 & \text{otherwise} \end{cases}

    Args:
        params: real floating arrays, or groups of them; see `Optimizer`.

    Raises:
        ValueError: if an option is out of its range.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> p = np.array([1.0, 2.0])
        >>> plait_optim.RAdam([p], lr=0.5).step(grads=[np.array([3.0, -3.0])])
        >>> p.round(4)
        array([-0.5,  3.5])

    References:
        Liu et al., "On the variance of the adaptive learning rate and beyond" (2020).
    """

    operator = "radam_step"
    arrays = ("exp_avg", "exp_avg_sq")
    operator_options = ("lr", "betas", "eps", "weight_decay", "decoupled_weight_decay")

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        super().__init__(params, default_options(self, locals(), first=_FIRST_IN_GROUPS))
