"""Losses. ``reduction`` is "mean", "sum" or "none" everywhere."""

from __future__ import annotations

import math
from collections.abc import Callable

import plait_core as pc
from plait_abi import ArgumentError, OutOfRangeError
from plait_abi.arguments import passes_on
from plait_abi.frames import warn
from plait_core import Tensor
from plait_nn import _operators as operators
from plait_nn._all_samples import all_samples, holds_for_all
from plait_nn.functional._checks import require_floating
from plait_nn.functional._package import F


def translate_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """Translate the two arguments of old PyTorch programs."""
    if size_average is None and reduce is None:
        return reduction
    result = "none" if reduce is False else "sum" if size_average is False else "mean"
    warn(
        f"size_average and reduce args will be deprecated, please use reduction='{result}' instead."
    )
    return result


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
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}): {name} broadcasts them; give both the same shape"
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
        size_average, reduce: As in old PyTorch programs; use ``reduction``.
        ignore_index: A class number that contributes nothing; negative for probabilities.
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

    Args:
        input: Logarithms of the probabilities: shape (N, C, ...) or (C).
        target: The class of each sample, int64.
        weight: Weight of each class: shape (C), or None.
        size_average: Of old programs: False sums the losses. Use `reduction`.
        ignore_index: The class whose elements give no loss and no gradient.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.

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

    Args:
        input: The predicted values.
        target: The expected values, of the shape of `input`.
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.
        weight: What the loss of each element is multiplied with, or None.

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

    Args:
        input: The predicted values.
        target: The expected values, of the shape of `input`.
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.
        weight: What the loss of each element is multiplied with, or None.

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

    Args:
        input: The predicted values.
        target: The expected values, of the shape of `input`.
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.
        beta: The difference from which the loss is linear; not negative.

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

    Args:
        input: The predicted values.
        target: The expected values, of the shape of `input`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.
        delta: The difference from which the loss is linear; positive.
        weight: What the loss of each element is multiplied with, or None.

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

    Args:
        input: The predicted values.
        target: The expected values, of the shape of `input`.
        weight: What the loss of each element is multiplied with, or None.
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.

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

    Args:
        input: The predicted values.
        target: The expected values, of the shape of `input`.
        weight: What the loss of each element is multiplied with, or None.
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.
        pos_weight: Weight of the positive targets of each class, or None.

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
        size_average, reduce: As in old PyTorch programs; use ``reduction``.
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
            "reduction: 'mean' divides the total loss by both the batch size and the support "
            "size: 'batchmean', which divides by the batch size, gives the divergence"
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
        size_average, reduce: As in old PyTorch programs; use ``reduction``.
        eps: Keeps the logarithm away from 0.
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
    elif var.is_cpu and not holds_for_all(~(var.detach() < 0)):  # elsewhere the host would wait
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


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""Compute :math:`\log(1 + \exp(-y x))` for targets y of 1 and -1.

    Args:
        input: The predicted values.
        target: The expected values, of the shape of `input`.
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.soft_margin_loss(pc.tensor([0.0, 2.0]), pc.tensor([1.0, 1.0]))
        tensor(0.4100)
    """
    reduction = translate_reduction(size_average, reduce, reduction)
    return reduced(-operators.log_sigmoid(target * input), reduction, "soft_margin_loss")


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""Compute ``x`` where the target is 1 and ``max(0, margin - x)`` where it is -1.

    Args:
        input: Distances.
        target: 1 for pairs that belong together, -1 for others.
        margin: The distance that is enough.
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.hinge_embedding_loss(pc.tensor([0.5, 0.25]), pc.tensor([1, -1]), reduction="none")
        tensor([0.5000, 0.7500])
    """
    reduction = translate_reduction(size_average, reduce, reduction)
    outside = (margin - input).clamp(min=0).masked_fill(target == 1, 0)
    values = outside + input.masked_fill(target == -1, 0)
    return reduced(values, reduction, "hinge_embedding_loss")


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""Compute :math:`\max(0, -y (x_1 - x_2) + margin)`; y = 1 means that :math:`x_1` should be
    larger.

    Args:
        input1: The first scores.
        input2: The second scores.
        target: 1 where the first should be larger, -1 where the second.
        margin: The difference that is enough.
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.

    Raises:
        ValueError: The three have different numbers of dimensions.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.margin_ranking_loss(pc.tensor([2.0]), pc.tensor([3.0]), pc.tensor([1.0]), 0.5)
        tensor(1.5000)
    """
    if not input1.ndim == input2.ndim == target.ndim:
        raise ArgumentError(
            f"margin_ranking_loss: `input1`, `input2` and `target` must have equally many "
            f"dimensions; got shapes {tuple(input1.shape)}, {tuple(input2.shape)} and "
            f"{tuple(target.shape)}"
        )
    reduction = translate_reduction(size_average, reduce, reduction)
    values = (-target * (input1 - input2) + margin).clamp(min=0)
    return reduced(values, reduction, "margin_ranking_loss")


def _rows(input: Tensor, target: Tensor, labels: bool, operator: str) -> tuple[Tensor, Tensor]:
    """Return input as (N, C) and target as (N) or, for ``labels``, (N, C); () is one class."""
    require_floating(operator, "input", input)
    shape, target_shape = tuple(input.shape), tuple(target.shape)
    fits = input.ndim <= 2 and (
        target_shape == shape
        if labels
        else target_shape == shape[:-1] or (len(shape) < 2 and target_shape == (1,))
    )
    if not fits:
        expected = "like it" if labels else "(N) or ()"
        raise ArgumentError(
            f"{operator}: `input` must be (N, C) or (C) and `target` {expected}; "
            f"got shapes {shape} and {target_shape}"
        )
    classes = shape[-1] if shape else 1
    # a list of labels ends with a number below 0; elsewhere such numbers would count from the end
    inside = (target < classes) if labels else (target >= 0) & (target < classes)
    if target.is_cpu and not holds_for_all(inside):  # the host would wait for another device
        values = all_samples(target)
        low, high = (0 if labels else int(values.min())), int(values.max())
        raise OutOfRangeError(
            f"{operator}: `target` must hold classes in [0, {classes}); "
            f"got {low if low < 0 else high}. target out of range"
        )
    return input.reshape((-1, classes)), target.reshape((-1, classes) if labels else (-1,))


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""Compute :math:`\frac{1}{C} \sum_{j \ne y} \max(0, margin - x_y + x_j)^p w_y`.

    Args:
        input: Scores, (N, C) or (C).
        target: Class numbers, (N) or ().
        p: 1 or 2.
        margin: The margin by which the right class must be better.
        weight: Shape (C): a factor for every class.
        size_average, reduce: As in old PyTorch programs; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: ``p`` is neither 1 nor 2, or the shapes don't fit.
        IndexError: A class index is out of range.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.multi_margin_loss(pc.tensor([[0.1, 0.2, 0.4, 0.8]]), pc.tensor([3]))
        tensor(0.3250)
    """
    if p not in (1, 2):
        raise ArgumentError(f"multi_margin_loss: `p` must be 1 or 2; got {p}")
    reduction = translate_reduction(size_average, reduce, reduction)
    rows, classes = _rows(input, target, False, "multi_margin_loss")
    index = classes.unsqueeze(1)
    # as in PyTorch, a score that is better by exactly the margin has no gradient: not so by clamp
    values = (margin - rows.gather(1, index) + rows).relu()
    if p == 2:
        values = values * values
    if weight is not None:
        if tuple(weight.shape) != (rows.shape[1],):
            raise ArgumentError(
                f"multi_margin_loss: `weight` must have shape ({rows.shape[1]},); "
                f"got {tuple(weight.shape)}"
            )
        values = values * weight.index_select(0, classes).unsqueeze(1)
    wrong = pc.ones_like(rows.detach()).scatter_(1, index, 0.0)
    losses = (values * wrong).sum(1) / rows.shape[1]
    return reduced(losses if input.ndim == 2 else losses[0], reduction, "multi_margin_loss")


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""Compute :math:`\frac{1}{C} \sum_j \sum_{i \notin y} \max(0, 1 - (x_{y_j} - x_i))`.

    Args:
        input: Scores, (N, C) or (C).
        target: Class numbers of the same shape: each row ends at its first -1.
        size_average, reduce: As in old PyTorch programs; use ``reduction``.
        reduction: "mean", "sum" or "none".

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> x, y = pc.tensor([[0.1, 0.2, 0.4, 0.8]]), pc.tensor([[3, 0, -1, 1]])
        >>> F.multilabel_margin_loss(x, y)
        tensor(0.8500)
    """
    reduction = translate_reduction(size_average, reduce, reduction)
    rows, labels = _rows(input, target, True, "multilabel_margin_loss")
    listed = (labels < 0).long().cumsum(1) == 0  # before the first -1
    index = labels.masked_fill(~listed, 0).long()
    right = pc.zeros_like(labels).long().scatter_add_(1, index, listed.long()) > 0
    scores = rows.gather(1, index).unsqueeze(2)
    values = (1 - (scores - rows.unsqueeze(1))).relu()  # no gradient at the margin: not clamp
    counted = listed.unsqueeze(2) & ~right.unsqueeze(1)
    losses = values.masked_fill(~counted, 0).sum((1, 2)) / max(rows.shape[1], 1)
    return reduced(losses if input.ndim == 2 else losses[0], reduction, "multilabel_margin_loss")


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""Compute the binary cross entropy of logits, averaged over the classes (the last dimension).

    Args:
        input: The predicted values.
        target: The expected values, of the shape of `input`.
        weight: What the loss of each element is multiplied with, or None.
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.

    Example:
        >>> import plait_core as pc, plait_nn.functional as F
        >>> F.multilabel_soft_margin_loss(pc.zeros(1, 2), pc.tensor([[0.0, 1.0]]))
        tensor(0.6931)
    """
    reduction = translate_reduction(size_average, reduce, reduction)
    values = -(target * F.logsigmoid(input) + (1 - target) * F.logsigmoid(-input))
    if weight is not None:
        values = values * weight
    return reduced(values.mean(-1), reduction, "multilabel_soft_margin_loss")
