"""Adam with Nesterov's momentum."""

from __future__ import annotations

from typing import Any

from plait_optim._elementwise import Elementwise
from plait_optim._groups import ParamGroup
from plait_optim._options import default_options, document_common_options, not_negative, number_of
from plait_optim._powers import power

__all__ = ["NAdam"]

_FIRST_IN_GROUPS = (
    "lr",
    "betas",
    "eps",
    "weight_decay",
    "momentum_decay",
    "decoupled_weight_decay",
    "maximize",
)


@document_common_options
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
        momentum_decay: :math:`\psi`, at least 0.

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
    arrays = ("exp_avg", "exp_avg_sq")
    operator_options = (
        "lr",
        "betas",
        "eps",
        "weight_decay",
        "momentum_decay",
        "decoupled_weight_decay",
    )
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
        defaults = default_options(self, locals(), first=_FIRST_IN_GROUPS)
        not_negative("momentum_decay value", momentum_decay)
        super().__init__(params, defaults)

    def fill(self, group: ParamGroup, name: str) -> float:
        """Return the initial value of a state: 1 for the product, 0 for averages."""
        return float(name == "mu_product")

    def numbers(self, group: ParamGroup, state: dict[str, Any], step: int) -> tuple[float, ...]:
        """Return the product of the momenta of all steps up to this one."""
        mu = number_of(group, "betas", 0) * (
            1 - 0.5 * power(0.96, step * number_of(group, "momentum_decay"))
        )
        return (float(state["mu_product"]) * mu,)

    def count(self, group: ParamGroup, state: dict[str, Any], step: int) -> None:
        """Count a step."""
        [state["mu_product"]] = self.numbers(group, state, step)
        state["step"] = step
