"""Adam, and AdamW, which decays weights apart from the gradient."""

from __future__ import annotations

from typing import Any

from plait_optim._elementwise import Elementwise
from plait_optim._groups import ParamGroup, fractions, not_negative, not_supported

__all__ = ["Adam", "AdamW"]


class Adam(Elementwise):
    r"""Adam: steps scaled by running averages of the gradient and of its square.

    With gradient :math:`g` (negated if ``maximize``), weight decay :math:`\lambda` and the step
    number t from 1:

    .. math::
        g &\leftarrow g + \lambda p
            \quad (\text{or } p \leftarrow p - \mathrm{lr}\,\lambda p \text{ if decoupled}) \\
        m &\leftarrow \beta_1 m + (1 - \beta_1) g \\
        v &\leftarrow \beta_2 v + (1 - \beta_2) g^2 \\
        p &\leftarrow p - \mathrm{lr}\, \frac{m / (1 - \beta_1^t)}
            {\sqrt{v / (1 - \beta_2^t)} + \epsilon}

    With ``amsgrad`` the largest v so far stands in the denominator.

    Args:
        params: real floating arrays, or groups of them; see `Optimizer`.
        lr: learning rate, at least 0.
        betas: :math:`\beta_1, \beta_2`, each in [0, 1).
        eps: :math:`\epsilon`, at least 0.
        weight_decay: :math:`\lambda`, at least 0.
        amsgrad: keep the maximum of v.
        maximize: go up instead of down.
        decoupled_weight_decay: decay weights as `AdamW` does.
        foreach, fused: accepted as in PyTorch; every step is fused.
        capturable, differentiable: must be False.

    Raises:
        ValueError: if an option is out of its range.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> p = np.array([1.0, 2.0])
        >>> plait_optim.Adam([p], lr=0.5).step(grads=[np.array([3.0, -3.0])])
        >>> p.round(6)
        array([0.5, 2.5])

    References:
        Kingma and Ba, "Adam: a method for stochastic optimization" (2015); Reddi, Kale and Kumar,
        "On the convergence of Adam and beyond" (2018).
    """

    operator = "adam_step"

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
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
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def kept(self, group: ParamGroup) -> list[str]:
        """Return the names of the operator's lists."""
        return ["exp_avg", "exp_avg_sq", "max_exp_avg_sq" if group["amsgrad"] else ""]

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


class AdamW(Adam):
    r"""Adam with decoupled weight decay: :math:`p` shrinks by :math:`\mathrm{lr}\,\lambda p`.

    Arguments are those of `Adam`, with a weight decay of 0.01.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> p = np.array([1.0, 2.0])
        >>> plait_optim.AdamW([p], lr=0.5, weight_decay=0.1).step(grads=[np.array([3.0, -3.0])])
        >>> p.round(6)
        array([0.45, 2.4 ])

    References:
        Loshchilov and Hutter, "Decoupled weight decay regularization" (2019).
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )
