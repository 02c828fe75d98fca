"""Adadelta."""

from __future__ import annotations

from typing import Any

from plait_optim._elementwise import Elementwise
from plait_optim._groups import ParamGroup, not_negative, not_supported

__all__ = ["Adadelta"]


class Adadelta(Elementwise):
    r"""Steps as large as those of late were, relative to the gradients of late.

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
        lr: learning rate, at least 0.
        rho: :math:`\rho`, in [0, 1].
        eps: :math:`\epsilon`, at least 0.
        weight_decay: :math:`\lambda`, at least 0.
        foreach: accepted as in PyTorch; every step is fused.
        maximize: go up instead of down.
        capturable, differentiable: must be False.

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
        not_negative("learning rate", lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        not_negative("epsilon value", eps)
        not_negative("weight_decay value", weight_decay)
        not_supported(self, capturable=capturable, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def kept(self, group: ParamGroup) -> list[str]:
        """Return the names of the operator's lists."""
        return ["square_avg", "acc_delta"]

    def options(self, group: ParamGroup) -> dict[str, Any]:
        """Return the operator's options."""
        return {
            "lr": float(group["lr"]),
            "rho": float(group["rho"]),
            "eps": float(group["eps"]),
            "weight_decay": float(group["weight_decay"]),
        }
