"""Adam with Nesterov's momentum."""

from __future__ import annotations

from typing import Any

from plait_optim._elementwise import Elementwise
from plait_optim._groups import ParamGroup, fractions, not_negative, not_supported

__all__ = ["NAdam"]


class NAdam(Elementwise):
    r"""Adam whose average of gradients looks one step ahead, as Nesterov's momentum does.

    With gradient :math:`g` (negated if ``maximize``), weight decay :math:`\lambda`, momentum
    decay :math:`\psi` and the step number t from 1:

    .. math::
        \mu_t &= \beta_1 (1 - \tfrac{1}{2} 0.96^{t \psi}) \\
        g &\leftarrow g + \lambda p
            \quad (\text{or } p \leftarrow p - \mathrm{lr}\,\lambda p \text{ if decoupled}) \\
        m &\leftarrow \beta_1 m + (1 - \beta_1) g \\
        v &\leftarrow \beta_2 v + (1 - \beta_2) g^2 \\
        p &\leftarrow p - \frac{\mathrm{lr}}{\sqrt{v / (1 - \beta_2^t)} + \epsilon} \Bigl(
            \frac{(1 - \mu_t)\, g}{1 - \prod_{i=1}^{t} \mu_i}
            + \frac{\mu_{t+1}\, m}{1 - \prod_{i=1}^{t+1} \mu_i} \Bigr)

    Args:
        params: real floating arrays, or groups of them; see `Optimizer`.
        lr: learning rate, at least 0.
        betas: :math:`\beta_1, \beta_2`, each in [0, 1).
        eps: :math:`\epsilon`, at least 0.
        weight_decay: :math:`\lambda`, at least 0.
        momentum_decay: :math:`\psi`, at least 0.
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
        >>> plait_optim.NAdam([p], lr=0.5).step(grads=[np.array([3.0, -3.0])])
        >>> p.round(4)
        array([0.4718, 2.5282])

    References:
        Dozat, "Incorporating Nesterov momentum into Adam" (2016).
    """

    operator = "nadam_step"
    scalars = ("mu_product",)

    def __init__(
        self,
        params: Any,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
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
        not_negative("momentum_decay value", momentum_decay)
        not_supported(self, capturable=capturable, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
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
            "momentum_decay": float(group["momentum_decay"]),
            "decoupled": bool(group["decoupled_weight_decay"]),
        }

    def fill(self, group: ParamGroup, name: str) -> float:
        """Return what a state begins with: an empty product, and averages of 0."""
        return float(name == "mu_product")

    def numbers(self, group: ParamGroup, state: dict[str, Any], step: int) -> tuple[float, ...]:
        """Return the product of all momenta, this step's included."""
        mu = float(group["betas"][0]) * (1 - 0.5 * 0.96 ** (step * float(group["momentum_decay"])))
        return (state["mu_product"] * mu,)

    def count(self, group: ParamGroup, state: dict[str, Any], step: int) -> None:
        """Take down that a step was taken."""
        [state["mu_product"]] = self.numbers(group, state, step)
        state["step"] = step
