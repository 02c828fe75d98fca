"""Adam, and AdamW, whose weight decay is not a part of the gradient."""

from __future__ import annotations

from typing import Any

from plait_optim._elementwise import Elementwise
from plait_optim._groups import ParamGroup
from plait_optim._options import default_options, document_common_options, init_options

__all__ = ["Adam", "AdamW"]

_FIRST_IN_GROUPS = ("lr", "betas", "eps", "weight_decay", "amsgrad", "maximize")


@document_common_options
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
        params: real floating arrays, or groups of them; see `Optimizer`.
        amsgrad: keep the maximum of v.

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
        super().__init__(params, default_options(self, locals(), first=_FIRST_IN_GROUPS))

    def state_names(self, group: ParamGroup) -> list[str]:
        """Return the names of the operator's lists."""
        return ["exp_avg", "exp_avg_sq", "max_exp_avg_sq" if group["amsgrad"] else ""]


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
        super().__init__(params, **init_options(locals()), decoupled_weight_decay=True)
