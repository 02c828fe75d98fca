"""Losses that are negative log-likelihoods of a distribution, or divergences of two."""

from __future__ import annotations

import math

import plait_core as pc
from plait_abi import ArgumentError
from plait_abi.frames import warn
from plait_core import Tensor
from plait_nn._all_samples import all_samples
from plait_nn.functional._dtypes import require_floating
from plait_nn.functional._loss import translate_reduction

__all__ = ["gaussian_nll_loss", "kl_div", "poisson_nll_loss", "reduced"]


def reduced(values: Tensor, reduction: str, operator: str) -> Tensor:
    """Return the mean, the sum or the values themselves."""
    if reduction == "mean":
        return values.mean()
    if reduction == "sum":
        return values.sum()
    if reduction == "none":
        return values
    raise ArgumentError(f"{operator}: `reduction` must be mean, sum or none; got {reduction!r}")


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    r"""Compute the pointwise Kullback-Leibler divergence :math:`y (\log y - x)`.

    Args:
        input: Log-probabilities x, any shape.
        target: Probabilities y of the same shape; their logarithms with ``log_target``.
        size_average: As in old PyTorch programs; use ``reduction``.
        reduce: As in old PyTorch programs; use ``reduction``.
        reduction: "batchmean" (the divergence: the sum divided by the first size), "mean" (divided
            by the number of elements), "sum" or "none".
        log_target: Whether the target is logarithms.

    Raises:
        DTypeError: The log-probabilities are no floating-point numbers.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> x, y = pc.tensor([[0.5, 0.5]]).log(), pc.tensor([[1.0, 0.0]])
        >>> F.kl_div(x, y, reduction="batchmean")  # log 2
        tensor(0.6931)
    """
    require_floating("kl_div", "input", input)
    reduction = translate_reduction(size_average, reduce, reduction)
    if reduction == "mean":
        warn(
            'kl_div: reduction="mean" divides by the number of elements; "batchmean" gives the '
            "divergence",
        )
    if log_target:
        values = target.exp() * (target - input)
    else:
        values = pc.xlogy(target, target) - target * input
    if reduction == "batchmean":
        return values.sum() / (input.shape[0] if input.ndim else 1)
    return reduced(values, reduction, "kl_div")


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""Compute :math:`e^x - y x`, the negative log-likelihood of counts y at the rate :math:`e^x`.

    Args:
        input: The rate's logarithm, or without ``log_input`` the rate: :math:`x - y \log(x + eps)`.
        target: Counts, of the same shape.
        log_input: Whether the input is a logarithm.
        full: Add Stirling's :math:`y \log y - y + \log(2 \pi y) / 2` where y > 1.
        size_average: As in old PyTorch programs; use ``reduction``.
        eps: Keeps the logarithm away from 0.
        reduce: As in old PyTorch programs; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.poisson_nll_loss(pc.tensor([0.0, 0.0]), pc.tensor([1.0, 2.0]))
        tensor(1.)
    """
    reduction = translate_reduction(size_average, reduce, reduction)
    values = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        safe = target.clamp(min=1)
        stirling = target * safe.log() - target + 0.5 * (2 * math.pi * safe).log()
        values = values + stirling.masked_fill(target <= 1, 0)
    return reduced(values, reduction, "poisson_nll_loss")


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    r"""Compute :math:`(\log \sigma^2 + (x - y)^2 / \sigma^2) / 2`.

    Args:
        input: Means x.
        target: Values y, of the same shape.
        var: The variances: of the input's shape, of that without the last dimension, with a last
            dimension of 1, or one number. Those below ``eps`` are replaced by ``eps``, with the
            gradient of the original value.
        full: Add the constant :math:`\log(2 \pi) / 2`.
        eps: The smallest variance.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: A variance is negative, or their shape does not fit.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.gaussian_nll_loss(pc.zeros(2), pc.tensor([1.0, 3.0]), pc.ones(2))
        tensor(2.5000)
    """
    if not (input.is_floating_point() or target.is_floating_point()):
        input = input.to(pc.get_default_dtype())  # squares of integers wrap around
    if not isinstance(var, Tensor):
        if var < 0:
            raise ArgumentError(f"gaussian_nll_loss: `var` must not be negative; got {var}")
        var = pc.full_like(input.detach(), var, dtype=pc.result_type(input, target))
    elif var.is_cpu and bool(
        all_samples(var.detach() < 0).any()
    ):  # elsewhere the host would have to wait
        raise ArgumentError("gaussian_nll_loss: `var` must not be negative; some elements are")
    shape, var_shape = tuple(input.shape), tuple(var.shape)
    if var_shape != shape:
        if var_shape == shape[:-1]:
            var = var.unsqueeze(-1)
        elif not (
            len(var_shape) == len(shape)
            and sum(g != s for g, s in zip(var_shape, shape, strict=True)) == 1
            and all(g in (1, s) for g, s in zip(var_shape, shape, strict=True))
        ):
            raise ArgumentError(
                f"gaussian_nll_loss: `var` must have the shape of `input` {shape}, or be 1 or "
                f"absent in one dimension; got {var_shape}"
            )
    known = var.detach()
    var = pc.where(known < eps, var + (eps - known), var)
    values = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        values = values + 0.5 * math.log(2 * math.pi)
    return reduced(values, reduction, "gaussian_nll_loss")
