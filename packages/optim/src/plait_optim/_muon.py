"""Momentum orthogonalised by Newton-Schulz iterations."""

from __future__ import annotations

import math
from typing import Any

from plait_optim._arithmetic import check_arithmetic, own_gradients, root_of_sum, widened
from plait_optim._arrays import filled_like
from plait_optim._devices import number_on
from plait_optim._groups import ParamGroup, States
from plait_optim._optimizer import Optimizer
from plait_optim._options import default_options, number_of


class Muon(Optimizer):
    r"""Muon: orthogonalised momentum, for the matrices of hidden layers.

    With gradient :math:`g`, weight decay :math:`\lambda`, momentum :math:`\mu`:

    .. math::
        b &\leftarrow \mu b + (1 - \mu) g \\
        X_0 &= \frac{u}{\max(\lVert u \rVert_F, \epsilon)}, \quad
            u = (1 - \mu) g + \mu b \text{ if nesterov else } b \\
        X_{k+1} &= a X_k + \bigl(b' A + c A^2\bigr) X_k, \quad A = X_k X_k^T \\
        p &\leftarrow (1 - \mathrm{lr}\,\lambda)\, p - \gamma\,\mathrm{lr}\, X_K

    with :math:`(a, b', c)` of ``ns_coefficients``, K ``ns_steps``, and for m rows and n columns
    :math:`\gamma = \sqrt{\max(1, m / n)}` ("original") or :math:`0.2 \sqrt{\max(m, n)}`
    ("match_rms_adamw"). Biases, embeddings and similar parameters need another optimizer.

    PyTorch iterates in bfloat16, this optimizer in the dtype of the parameters; in float32 if they
    are halves.

    Args:
        params: real floating matrices of NumPy, torch or plait; see `Optimizer`.
        nesterov: use Nesterov's form.
        ns_coefficients: the polynomial of an iteration.
        eps: :math:`\epsilon`.
        ns_steps: iterations, fewer than 100.
        adjust_lr_fn: "original", "match_rms_adamw", or None for the first.

    Raises:
        ValueError: if an option is out of its range, or a parameter is not a matrix.
        TypeError: if the library of the parameters has no arithmetic.

    Example:
        >>> import numpy as np
        >>> import plait_optim
        >>> p = np.zeros((2, 2))
        >>> optimizer = plait_optim.Muon([p], lr=1.0, ns_coefficients=(1.5, -0.5, 0.0), ns_steps=20)
        >>> optimizer.step(grads=[np.array([[0.0, 5.0], [-0.1, 0.0]])])
        >>> p.round(4) + 0.0
        array([[ 0., -1.],
               [ 1.,  0.]])

    References:
        Jordan et al., "Muon: an optimizer for hidden layers in neural networks" (2024); Liu et al.,
        "Muon is scalable for LLM training" (2025).
    """

    arrays = ("momentum_buffer",)

    scales_gradients = True

    takes_complex = False

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        defaults = default_options(self, locals(), own=("eps",))
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(
                "Muon: adjust_lr_fn must be 'original', 'match_rms_adamw' or None; "
                f"got {adjust_lr_fn!r}"
            )
        if ns_steps >= 100:
            raise ValueError(f"Muon: ns_steps must be less than 100; got {ns_steps}")
        if len(ns_coefficients) != 3:
            raise ValueError(f"Muon: ns_coefficients must be 3 numbers; got {ns_coefficients}")
        super().__init__(params, defaults)

    def check_group(self, group: ParamGroup) -> None:
        """Raise for parameters that are not matrices: see `Optimizer.check_group`."""
        check_arithmetic(self, group["params"])
        for param in group["params"]:
            if len(param.shape) != 2:
                raise ValueError(
                    "Muon only supports 2D parameters whereas we found a parameter with size: "
                    f"{tuple(param.shape)}"
                )

    def update(
        self, group: ParamGroup, params: list[Any], grads: list[Any], states: States
    ) -> None:
        """Update one group: see `Optimizer.update`."""
        gradients = own_gradients(self, params, grads)
        lr, mu = number_of(group, "lr"), number_of(group, "momentum")
        iteration = group["ns_coefficients"], group["ns_steps"], group["eps"]
        for param, grad, state in zip(params, gradients, states, strict=True):
            grad *= number_on(self.gradient_factor, grad)
            if "momentum_buffer" not in state:
                state["momentum_buffer"] = filled_like(param)
            with widened(param, state["momentum_buffer"]) as [values, buffer]:
                buffer += (1 - mu) * (grad - buffer)
                moved = grad + mu * (buffer - grad) if group["nesterov"] else buffer
                x = _orthogonalised(moved, *iteration)
                values *= 1 - lr * number_of(group, "weight_decay")
                values -= lr * _adjustment(group["adjust_lr_fn"], param.shape) * x


def _orthogonalised(
    matrix: Any, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Any:
    rows, columns = matrix.shape
    if rows == 0 or columns == 0:
        return matrix
    a, b, c = coefficients
    x = matrix.T if rows > columns else matrix
    x = x / root_of_sum(x * x).clip(eps)
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return x.T if rows > columns else x


def _adjustment(which: str | None, shape: Any) -> float:
    rows, columns = shape
    if which == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1.0, rows / max(columns, 1)))
