"""RMSprop."""

from __future__ import annotations

from typing import Any

from plait_optim._elementwise import Elementwise
from plait_optim._groups import ParamGroup
from plait_optim._options import default_options, document_common_options, not_negative

__all__ = ["RMSprop"]

_FIRST_IN_GROUPS = ("lr", "momentum", "alpha", "eps", "centered")


@document_common_options
class RMSprop(Elementwise):
    r"""Steps divided by the root of a running average of squared gradients.

    With gradient :math:`g` (negated if ``maximize``), weight decay :math:`\lambda`, momentum
    :math:`\mu` and the step number t from 1:

    .. math::
        g &\leftarrow g + \lambda p \\
        v &\leftarrow \alpha v + (1 - \alpha) g^2, \quad a \leftarrow \alpha a + (1 - \alpha) g \\
        d &= \frac{g}{\sqrt{v} + \epsilon}
            \quad (\text{or } \frac{g}{\sqrt{v - a^2} + \epsilon} \text{ if centered}) \\
        b &\leftarrow \mu b + d \\
        p &\leftarrow p - \mathrm{lr}\, b

    Args:
        params: real floating arrays, or groups of them; see `Optimizer`.
        alpha: :math:`\alpha`, at least 0.
        momentum: :math:`\mu`, at least 0; with 0 there is no b.
        centered: divide by an estimate of the standard deviation instead.

    Raises:
        ValueError: if an option is out of its range.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> p = np.array([1.0, 2.0])
        >>> plait_optim.RMSprop([p], lr=0.05).step(grads=[np.array([3.0, -3.0])])
        >>> p.round(4)
        array([0.5, 2.5])

    References:
        Hinton, lecture 6e of "Neural networks for machine learning" (2012); centered: Graves,
        "Generating sequences with recurrent neural networks" (2013).
    """

    operator = "rmsprop_step"
    arrays = ("square_avg", "momentum_buffer", "grad_avg")
    operator_options = ("lr", "alpha", "eps", "weight_decay", "momentum")

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = default_options(self, locals(), first=_FIRST_IN_GROUPS)
        not_negative("alpha value", alpha)
        super().__init__(params, defaults)

    def state_names(self, group: ParamGroup) -> list[str]:
        """Return the names of the operator's lists."""
        return [
            "square_avg",
            "momentum_buffer" if group["momentum"] > 0 else "",
            "grad_avg" if group["centered"] else "",
        ]
