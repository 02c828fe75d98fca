"""Resilient backpropagation."""

from __future__ import annotations

from typing import Any

from plait_optim._elementwise import Elementwise
from plait_optim._groups import ParamGroup
from plait_optim._options import default_options, number_of


class Rprop(Elementwise):
    r"""Rprop: steps by the signs of gradients, which grow while the signs do not change. It is for
    full batches.

    With gradient :math:`g` (negated if ``maximize``) and the step number t from 1:

    .. math::
        s &\leftarrow s \cdot \begin{cases} \eta^+ & g q > 0 \\ \eta^- & g q < 0 \\
            1 & \text{otherwise} \end{cases}, \text{ kept within the step sizes} \\
        g &\leftarrow 0 \text{ where } g q < 0 \\
        p &\leftarrow p - \operatorname{sign}(g)\, s, \quad q \leftarrow g

    Args:
        lr: the first s, at least 0.
        etas: :math:`\eta^-, \eta^+`, on either side of 1.
        step_sizes: the smallest and the largest s.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> p = np.array([1.0, 2.0])
        >>> plait_optim.Rprop([p], lr=0.5).step(grads=[np.array([3.0, -3.0])])
        >>> p.round(4)
        array([0.5, 2.5])

    References:
        Riedmiller and Braun, "A direct adaptive method for faster backpropagation learning" (1993).
    """

    operator = "rprop_step"
    first_in_groups = ("lr", "etas", "step_sizes", "foreach", "maximize", "differentiable")
    arrays = ("prev", "step_size")

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = default_options(self, locals())
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, defaults)

    def options(self, group: ParamGroup) -> dict[str, Any]:
        """Return the operator's options."""
        return {
            "etaminus": number_of(group, "etas", 0),
            "etaplus": number_of(group, "etas", 1),
            "step_size_min": number_of(group, "step_sizes", 0),
            "step_size_max": number_of(group, "step_sizes", 1),
        }

    def fill(self, group: ParamGroup, name: str) -> float:
        """Return the initial value of a state: ``lr`` for the step sizes."""
        return number_of(group, "lr") if name == "step_size" else 0.0
