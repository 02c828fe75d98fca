"""Losses. ``reduction`` is "mean", "sum" or "none" everywhere."""

from __future__ import annotations

from collections.abc import Callable

import plait_core as pc
from plait_abi import ArgumentError
from plait_abi.arguments import passes_on
from plait_abi.frames import warn
from plait_core import Tensor
from plait_nn import _operators as operators

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "huber_loss",
    "l1_loss",
    "mse_loss",
    "nll_loss",
    "smooth_l1_loss",
    "translate_reduction",
]


def translate_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """Translate the two arguments of old PyTorch programs."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


def _weighted(losses: Tensor, weight: Tensor, reduction: str, name: str, by_count: bool) -> Tensor:
    """Reduce the losses of the elements, each with its factor."""
    if weight.shape != losses.shape:
        raise ArgumentError(
            f"{name}: `weight` must have the shape of `input`; got {tuple(weight.shape)} for "
            f"losses of shape {tuple(losses.shape)}"
        )
    if reduction not in ("mean", "sum", "none"):
        raise ArgumentError(
            f'{name}: `reduction` must be "mean", "sum" or "none"; got {reduction!r}'
        )
    losses = losses * weight
    if reduction == "none":
        return losses
    total = losses.sum()
    if reduction == "sum":
        return total
    return total / losses.numel() if by_count else total / weight.sum()


def _of_elements(
    name: str,
    operator: Callable[..., Tensor],
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    number: tuple[float] | None = None,
    by_count: bool = False,
) -> Tensor:
    """Compare elements with an operator without weights; weights multiply its losses.

    ``number`` is the operator's numeric argument, if it has one. With ``by_count`` the mean
    divides by the number of elements, else by the weights' sum.
    """
    # different shapes are nearly always a mistake, which broadcasting would hide
    if input.shape != target.shape:
        warn(
            f"{name}: `target` {tuple(target.shape)} is broadcast against `input` "
            f"{tuple(input.shape)}; give both the same shape",
        )
    own = reduction if weight is None else "none"
    if number is None:
        losses = operator(input, target, reduction=own)
    else:  # positional arguments: keywords take a tenth of the time of a small loss
        losses = operator(input, target, own, number[0])
    return losses if weight is None else _weighted(losses, weight, reduction, name, by_count)


def _must_be_like(input: Tensor, target: Tensor, name: str) -> None:
    if input.shape != target.shape:
        raise ArgumentError(
            f"{name}: `target` must have the shape of `input`; "
            f"got {tuple(target.shape)} and {tuple(input.shape)}"
        )


@passes_on
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    r"""Compute :math:`-w_y \log \mathrm{softmax}(x)_y`, from logits.

    Args:
        input: Logits of shape (N, C), (N, C, d1, ...) or (C).
        target: Class numbers of shape (N), (N, d1, ...) or (), or probabilities like ``input``.
        weight: Shape (C): a factor for every class. The mean divides by the factors' sum.
        size_average: As in old PyTorch programs; use ``reduction``.
        ignore_index: A class number that contributes nothing; negative for probabilities.
        reduce: As in old PyTorch programs; use ``reduction``.
        reduction: "mean", "sum" or "none".
        label_smoothing: In [0, 1]: the part of the target that is spread over all classes.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> loss = nn.functional.cross_entropy(pc.zeros(3, 4), pc.tensor([0, 1, 2]))
        >>> round(loss.item(), 4)  # log 4
        1.3863
    """
    return operators.cross_entropy(
        input,
        target,
        weight=weight,
        ignore_index=ignore_index,
        reduction=translate_reduction(size_average, reduce, reduction),
        label_smoothing=label_smoothing,
    )


@passes_on
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute ``-weight[y] * x[y]`` from log-probabilities; arguments as in `cross_entropy`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.functional.nll_loss(pc.tensor([[-1.0, -3.0]]), pc.tensor([1])).item()
        3.0
    """
    return operators.nll_loss(
        input,
        target,
        weight=weight,
        reduction=translate_reduction(size_average, reduce, reduction),
        ignore_index=ignore_index,
    )


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Compute ``(x - y)^2``, times ``weight`` of the same shape; the mean divides by its sum.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.functional.mse_loss(pc.tensor([1.0, 2.0]), pc.tensor([1.0, 4.0])).item()
        2.0
    """
    reduction = translate_reduction(size_average, reduce, reduction)
    return _of_elements("mse_loss", operators.mse_loss, input, target, weight, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Compute ``|x - y|``, times ``weight`` of the same shape; the mean divides by its sum.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.l1_loss(pc.tensor([0.5, 3.0]), pc.zeros(2))
        tensor(1.7500)
    """
    reduction = translate_reduction(size_average, reduce, reduction)
    return _of_elements("l1_loss", operators.l1_loss, input, target, weight, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Compute ``d^2 / (2 beta)`` where ``d = |x - y| < beta``, else ``d - beta / 2``.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.smooth_l1_loss(pc.tensor([0.5, 3.0]), pc.zeros(2))
        tensor(1.3125)
    """
    reduction = translate_reduction(size_average, reduce, reduction)
    operator = operators.smooth_l1_loss
    return _of_elements("smooth_l1_loss", operator, input, target, None, reduction, (beta,))


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Compute ``d^2 / 2`` where ``d = |x - y| <= delta``, else ``delta (d - delta / 2)``.

    ``weight``, of the same shape, multiplies; the mean divides by the number of elements.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.huber_loss(pc.tensor([0.5, 3.0]), pc.zeros(2))
        tensor(1.3125)
    """
    operator = operators.huber_loss
    return _of_elements("huber_loss", operator, input, target, weight, reduction, (delta,), True)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute ``-(y log x + (1 - y) log(1 - x))`` from probabilities; logarithms are at least -100.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> loss = nn.functional.binary_cross_entropy(pc.tensor([0.5]), pc.tensor([1.0]))
        >>> round(loss.item(), 4)
        0.6931
    """
    _must_be_like(input, target, "binary_cross_entropy")
    reduction = translate_reduction(size_average, reduce, reduction)
    return operators.binary_cross_entropy(input, target, weight=weight, reduction=reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Compute ``-(p y log s(x) + (1 - y) log(1 - s(x)))``, ``s`` the sigmoid, without overflow.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.binary_cross_entropy_with_logits(pc.tensor([0.0, 0.0]), pc.tensor([0.0, 1.0]))
        tensor(0.6931)
    """
    _must_be_like(input, target, "binary_cross_entropy_with_logits")
    return pc.binary_cross_entropy_with_logits(
        input,
        target,
        weight=weight,
        reduction=translate_reduction(size_average, reduce, reduction),
        pos_weight=pos_weight,
    )
