"""Rectified Adam."""

from __future__ import annotations

from typing import Any

from plait_optim._elementwise import Elementwise
from plait_optim._groups import ParamGroup, fractions, not_negative, not_supported

__all__ = ["RAdam"]


class RAdam(Elementwise):
    r"""Adam that waits with its adaptive rates until their variance is known well enough.

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
        lr: learning rate, at least 0.
        betas: :math:`\beta_1, \beta_2`, each in [0, 1).
        eps: :math:`\epsilon`, at least 0.
        weight_decay: :math:`\lambda`, at least 0.
        decoupled_weight_decay: decay weights as `AdamW` does.
        maximize: go up instead of down.
        foreach: accepted as in PyTorch; every step is fused.
        capturable, differentiable: must be False.

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
        not_negative("learning rate", lr)
        not_negative("epsilon value", eps)
        fractions(betas)
        not_negative("weight_decay value", weight_decay)
        not_supported(self, capturable=capturable, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def kept(self, group: ParamGroup) -> list[str]:
        """Return the names of the operator's lists."""
        return ["exp_avg", "exp_avg_sq"]

    def options(self, group: ParamGroup) -> dict[str, Any]:
        """Return the operator's options."""
        beta1, beta2 = group["betas"]
        return {
            "lr": float(group["lr"]),
            "beta1": float(beta1),
            "beta2": float(beta2),
            "eps": float(group["eps"]),
            "weight_decay": float(group["weight_decay"]),
            "decoupled": bool(group["decoupled_weight_decay"]),
        }
