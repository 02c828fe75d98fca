"""Steps divided by the roots of squared gradients: Adagrad, Adadelta, RMSprop."""

from __future__ import annotations

from typing import Any

from plait_optim import _sparse
from plait_optim._arrays import filled_like
from plait_optim._elementwise import Elementwise
from plait_optim._groups import ParamGroup, ParamState
from plait_optim._options import default_options, not_negative, number_of
from plait_optim._state import whole_number


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
        lr_decay: :math:`\eta`, at least 0.
        initial_accumulator_value: the initial value of s, at least 0.

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
    first_in_groups = ("lr", "lr_decay", "eps")
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
        defaults = default_options(self, locals())
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

    def update_sparse(self, group: ParamGroup, param: Any, grad: Any, state: ParamState) -> None:
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


class Adadelta(Elementwise):
    r"""Adadelta: steps scaled by running averages of squared steps and squared gradients.

    With gradient :math:`g` (negated if ``maximize``), weight decay :math:`\lambda` and the step
    number t from 1:

    .. math::
        g &\leftarrow g + \lambda p \\
        v &\leftarrow \rho v + (1 - \rho) g^2 \\
        d &= \frac{\sqrt{u + \epsilon}}{\sqrt{v + \epsilon}}\, g \\
        u &\leftarrow \rho u + (1 - \rho) d^2 \\
        p &\leftarrow p - \mathrm{lr}\, d

    Args:
        rho: :math:`\rho`, in [0, 1].
        capturable: accepted as in PyTorch; a step does not depend on its number.

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
    counts_steps = False
    supports = ("capturable",)
    first_in_groups = ("lr", "rho", "eps", "weight_decay", "maximize", "capturable")
    arrays = ("square_avg", "acc_delta")
    operator_options = ("lr", "rho", "eps", "weight_decay")

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
        defaults = default_options(self, locals())
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        super().__init__(params, defaults)


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
        alpha: :math:`\alpha`, at least 0.
        momentum: :math:`\mu`, at least 0; with 0 there is no b.
        centered: divide by an estimate of the standard deviation instead.
        capturable: accepted as in PyTorch; a step does not depend on its number.

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
    counts_steps = False
    supports = ("capturable",)
    first_in_groups = ("lr", "momentum", "alpha", "eps", "centered")
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
        defaults = default_options(self, locals())
        not_negative("alpha value", alpha)
        super().__init__(params, defaults)

    def state_names(self, group: ParamGroup) -> list[str]:
        """Return the names of the operator's lists."""
        return [
            "square_avg",
            "momentum_buffer" if group["momentum"] > 0 else "",
            "grad_avg" if group["centered"] else "",
        ]
