"""Adam, and optimizers that are variants of it."""

from __future__ import annotations

from typing import Any

from plait_optim._elementwise import Elementwise
from plait_optim._groups import ParamGroup
from plait_optim._options import default_options, init_options, not_negative, number_of
from plait_optim._powers import power


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

    With ``amsgrad`` the denominator has the largest v so far.

    Args:
        amsgrad: keep the maximum of v.
        capturable: count steps on the device of the parameters, which are plait tensors, so that a
            graph of the device (`plait.cuda.graph`) can repeat a step. Options keep the values of
            the recorded step.

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
    supports = ("capturable",)
    first_in_groups = ("lr", "betas", "eps", "weight_decay", "amsgrad", "maximize")
    arrays = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
    instead_of_sparse = ", please consider SparseAdam instead"
    operator_options = ("lr", "betas", "eps", "weight_decay", "decoupled_weight_decay")

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
        super().__init__(params, default_options(self, locals()))

    def state_names(self, group: ParamGroup) -> list[str]:
        """Return the names of the operator's lists."""
        return ["exp_avg", "exp_avg_sq", "max_exp_avg_sq" if group["amsgrad"] else ""]


class AdamW(Adam):
    r"""Adam with decoupled weight decay: :math:`p` shrinks by :math:`\mathrm{lr}\,\lambda p`.

    Args:
        amsgrad: keep the maximum of v; see `Adam`.
        capturable: count steps on the device of the parameters; see `Adam`.

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
        super().__init__(params, **init_options(locals()), decoupled_weight_decay=True)


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
        momentum_decay: :math:`\psi`, at least 0.

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
    first_in_groups = (
        "lr",
        "betas",
        "eps",
        "weight_decay",
        "momentum_decay",
        "decoupled_weight_decay",
        "maximize",
    )
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
        defaults = default_options(self, locals())
        not_negative("momentum_decay value", momentum_decay)
        super().__init__(params, defaults)

    def fill(self, group: ParamGroup, name: str) -> float:
        """Return the initial value of a state: 1 for the product, 0 for averages."""
        return float(name == "mu_product")

    def numbers(self, group: ParamGroup, state: dict[str, Any], step: int) -> tuple[float, ...]:
        """Return the product of the momenta of all steps up to this one.

        Args:
            group: The parameter group.
            state: The state of the parameter.
        """
        mu = number_of(group, "betas", 0) * (
            1 - 0.5 * power(0.96, step * number_of(group, "momentum_decay"))
        )
        return (float(state["mu_product"]) * mu,)

    def count(self, group: ParamGroup, state: dict[str, Any], step: int) -> None:
        """Count a step.

        Args:
            group: The parameter group.
            state: The state of the parameter.
        """
        [state["mu_product"]] = self.numbers(group, state, step)
        state["step"] = step


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
    first_in_groups = ("lr", "betas", "eps", "weight_decay", "maximize", "foreach", "capturable")
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
        super().__init__(params, default_options(self, locals()))


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
        capturable: count steps on the device of the parameters; see `Adam`.

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
    supports = ("capturable",)
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
