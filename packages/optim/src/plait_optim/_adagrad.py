"""Adagrad."""

from __future__ import annotations

from typing import Any

from plait_optim import _sparse
from plait_optim._arrays import filled_like
from plait_optim._elementwise import Elementwise
from plait_optim._groups import ParamGroup
from plait_optim._options import default_options, document_common_options, not_negative, number_of
from plait_optim._state import whole_number

__all__ = ["Adagrad"]

_FIRST_IN_GROUPS = ("lr", "lr_decay", "eps")


@document_common_options
class Adagrad(Elementwise):
    r"""Steps divided by the root of the sum of all squared gradients so far.

    With gradient :math:`g` (negated if ``maximize``), weight decay :math:`\lambda`, rate decay
    :math:`\eta` and the step number t from 1:

    .. math::
        g &\leftarrow g + \lambda p \\
        s &\leftarrow s + g^2 \\
        p &\leftarrow p - \frac{\mathrm{lr}}{1 + (t - 1)\, \eta} \frac{g}{\sqrt{s} + \epsilon}

    The state is there before the first step, as in PyTorch: ``optimizer.state[p]["sum"]``.

    Args:
        params: real floating arrays, or groups of them; see `Optimizer`.
        lr_decay: :math:`\eta`, at least 0.
        initial_accumulator_value: the initial value of s, at least 0.

    Raises:
        ValueError: if an option is out of its range.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> p = np.array([1.0, 2.0])
        >>> plait_optim.Adagrad([p], lr=0.5).step(grads=[np.array([3.0, -3.0])])
        >>> p.round(4)
        array([0.5, 2.5])

    References:
        Duchi, Hazan and Singer, "Adaptive subgradient methods" (2011).
    """

    operator = "adagrad_step"
    arrays = ("sum",)
    operator_options = ("lr", "lr_decay", "eps", "weight_decay")

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        defaults = default_options(self, locals(), first=_FIRST_IN_GROUPS)
        not_negative("lr_decay value", lr_decay)
        not_negative("initial_accumulator_value value", initial_accumulator_value)
        super().__init__(params, defaults)

    def add_param_group(self, param_group: ParamGroup) -> None:
        """Add a group, and the state of its parameters."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        for param in group["params"]:
            self.start(group, param, self.state[param])

    def fill(self, group: ParamGroup, name: str) -> float:
        """Return the initial value of the sum."""
        return number_of(group, "initial_accumulator_value")

    def update_sparse(
        self, group: ParamGroup, param: Any, grad: Any, state: dict[str, Any]
    ) -> None:
        """Update the elements of one parameter that a sparse gradient has.

        Raises:
            RuntimeError: if there is a weight decay.
        """
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        if "sum" not in state:
            state.setdefault("step", 0)
            state["sum"] = filled_like(param, self.fill(group, "sum"))
        state["step"] = whole_number("step", state["step"]) + 1
        rate = number_of(group, "lr") / (1 + (state["step"] - 1) * number_of(group, "lr_decay"))
        grad = (-grad if group["maximize"] else grad).coalesce()
        values = grad._values()
        state["sum"].add_(_sparse.like(grad, values * values))
        root = _sparse.at(state["sum"], grad).sqrt() + number_of(group, "eps")
        param.add_(_sparse.like(grad, values / root), alpha=-rate)
