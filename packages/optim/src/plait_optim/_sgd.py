"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from plait_optim import _sparse
from plait_optim._arrays import filled_like
from plait_optim._component import operator
from plait_optim._groups import ParamGroup, ParamState, States
from plait_optim._optimizer import Optimizer
from plait_optim._options import default_options, number_of


class SGD(Optimizer):
    r"""Stochastic gradient descent, with momentum if wanted.

    With gradient :math:`g` (negated if ``maximize``), weight decay :math:`\lambda`, momentum
    :math:`\mu` and dampening :math:`\tau`, the step number t from 1:

    .. math::
        g &\leftarrow g + \lambda p \\
        b &\leftarrow g \text{ if } t = 1 \text{ else } \mu b + (1 - \tau) g \\
        g &\leftarrow g + \mu b \text{ if nesterov else } b \\
        p &\leftarrow p - \mathrm{lr}\, g

    Args:
        momentum: :math:`\mu`, at least 0; with 0 there is no state.
        dampening: :math:`\tau`.
        nesterov: use Nesterov's form; needs a momentum and no dampening.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> p = np.array([1.0, 2.0])
        >>> plait_optim.SGD([p], lr=0.5).step(grads=[np.array([2.0, 2.0])])
        >>> p
        array([0., 1.])

    References:
        Sutskever, Martens, Dahl and Hinton, "On the importance of initialization and momentum in
        deep learning" (2013).
    """

    arrays = ("momentum_buffer",)

    scales_gradients = True
    all_or_nothing = True

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        defaults = default_options(self, locals())
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, defaults)

    def update(
        self, group: ParamGroup, params: list[Any], grads: list[Any], states: States
    ) -> None:
        """Update one group: see `Optimizer.update`."""
        buffers: list[Any] = []
        steps = [1]
        if group["momentum"] != 0:
            buffers = [_dense(state.get("momentum_buffer")) for state in states]
            steps = [1 if buffer is None else 2 for buffer in buffers]
            if 1 in steps:
                buffers = [
                    filled_like(param) if buffer is None else buffer
                    for param, buffer in zip(params, buffers, strict=True)
                ]
        operator("sgd_step")(
            params,
            grads,
            buffers,
            steps,
            lr=number_of(group, "lr"),
            momentum=number_of(group, "momentum"),
            dampening=number_of(group, "dampening"),
            weight_decay=number_of(group, "weight_decay"),
            nesterov=bool(group["nesterov"]),
            maximize=bool(group["maximize"]),
            grad_scale=self.gradient_factor,
        )
        # only after the operator has succeeded, so that a failed step does not count
        if buffers and 1 in steps:
            for state, buffer in zip(states, buffers, strict=True):
                state["momentum_buffer"] = buffer

    def update_sparse(self, group: ParamGroup, param: Any, grad: Any, state: ParamState) -> None:
        """Update one parameter by a sparse gradient, with a sparse buffer of the momentum.

        Raises:
            RuntimeError: if there is a weight decay.
        """
        if group["weight_decay"] != 0:
            raise RuntimeError(
                "add(sparse, dense) is not supported. Use add(dense, sparse) instead: SGD has no "
                "weight_decay for sparse gradients"
            )
        grad = -grad if group["maximize"] else grad
        momentum = number_of(group, "momentum")
        if momentum != 0:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                state["momentum_buffer"] = buffer = grad.detach().coalesce().clone()
            elif _sparse.is_sparse(buffer):
                added = buffer.mul(momentum).add(grad, alpha=1 - number_of(group, "dampening"))
                state["momentum_buffer"] = buffer = added.coalesce()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - number_of(group, "dampening"))
            grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        param.add_(grad, alpha=-number_of(group, "lr"))


def _dense(buffer: Any) -> Any:
    """Return the buffer of a parameter whose gradient is dense, and perhaps was sparse before."""
    return buffer.to_dense() if _sparse.is_sparse(buffer) else buffer
