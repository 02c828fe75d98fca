"""Adam for sparse gradients."""

from __future__ import annotations

from typing import Any

from plait_optim import _sparse
from plait_optim._arrays import filled_like
from plait_optim._groups import ParamGroup, ParamState, States
from plait_optim._optimizer import Optimizer
from plait_optim._options import default_options, number_of
from plait_optim._state import whole_number


class SparseAdam(Optimizer):
    r"""Adam for sparse gradients: only the elements that a gradient has are updated, their moments
    too.

    For each stored element :math:`g` of the coalesced gradient (negated if ``maximize``), with
    the step number t from 1, which counts for all elements:

    .. math::
        m &\leftarrow m + (1 - \beta_1) (g - m) \\
        v &\leftarrow v + (1 - \beta_2) (g^2 - v) \\
        p &\leftarrow p - \mathrm{lr} \frac{\sqrt{1 - \beta_2^t}}{1 - \beta_1^t}
            \frac{m}{\sqrt{v} + \epsilon}

    The moments of other elements do not decay, unlike in `Adam`.

    Args:
        params: plait tensors, or groups of them; see `Optimizer`.
        lr: learning rate, above 0.
        eps: :math:`\epsilon`, above 0.

    Raises:
        ValueError: if an option is out of its range, or a parameter is sparse itself.

    Example:
        >>> import plait_core as pc, plait_optim
        >>> table = pc.ones(3, 2)
        >>> gradient = pc.sparse_coo_tensor([[1]], [[2.0, 2.0]], (3, 2))  # of row 1
        >>> plait_optim.SparseAdam([table], lr=0.5).step(grads=[gradient])
        >>> table
        tensor([[1.0000, 1.0000],
                [0.5000, 0.5000],
                [1.0000, 1.0000]])

    References:
        Kingma and Ba, "Adam: a method for stochastic optimization" (2015).
    """

    arrays = ("exp_avg", "exp_avg_sq")

    takes_dense_gradients = False

    takes_complex = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        defaults = default_options(self, locals())
        if not float(lr) > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not float(eps) > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        super().__init__(params, defaults)

    def check_group(self, group: ParamGroup) -> None:
        """Raise for sparse parameters: see `Optimizer.check_group`."""
        sparse = [i for i, param in enumerate(group["params"]) if _sparse.is_sparse(param)]
        if sparse:
            raise ValueError(
                f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors"
            )

    def _split(
        self, group: ParamGroup, params: list[Any], grads: list[Any]
    ) -> tuple[list[Any], list[Any]]:
        if not all(map(_sparse.is_sparse, grads)):
            self.update(group, params, grads, [])
        return super()._split(group, params, grads)

    def update(
        self, group: ParamGroup, params: list[Any], grads: list[Any], states: States
    ) -> None:
        """Refuse dense gradients."""
        raise RuntimeError(
            "SparseAdam does not support dense gradients, please consider Adam instead"
        )

    def update_sparse(self, group: ParamGroup, param: Any, grad: Any, state: ParamState) -> None:
        """Update one parameter: see `Optimizer.update_sparse`."""
        if not state:
            state["step"] = 0
            state["exp_avg"], state["exp_avg_sq"] = filled_like(param), filled_like(param)
        state["step"] = whole_number("step", state["step"]) + 1
        grad = (-grad if group["maximize"] else grad).coalesce()
        beta1, beta2 = (number_of(group, "betas", at) for at in (0, 1))
        values = grad._values()
        if not values.shape[0]:
            return
        moved = []
        for name, beta, expected in (
            ("exp_avg", beta1, values),
            ("exp_avg_sq", beta2, values * values),
        ):
            old = _sparse.at(state[name], grad)
            change = (expected - old) * (1 - beta)
            state[name].add_(_sparse.like(grad, change))
            moved.append(old + change)
        mean, square = moved
        bias1, bias2 = 1 - beta1 ** state["step"], 1 - beta2 ** state["step"]
        rate = number_of(group, "lr") * bias2**0.5 / bias1
        step = mean / (square.sqrt() + number_of(group, "eps"))
        param.add_(_sparse.like(grad, step * -rate))
