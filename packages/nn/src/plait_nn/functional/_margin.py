"""Losses with a margin: the right score must exceed wrong ones by the margin."""

from __future__ import annotations

import plait_core as pc
from plait_abi import ArgumentError
from plait_core import Tensor
from plait_nn import _operators as operators
from plait_nn._all_samples import all_samples
from plait_nn.functional._dtypes import require_floating
from plait_nn.functional._likelihood import reduced
from plait_nn.functional._loss import translate_reduction
from plait_nn.functional._package import F

__all__ = [
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "soft_margin_loss",
]


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""Compute :math:`\log(1 + \exp(-y x))` for targets y of 1 and -1.

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
    values = all_samples(target)
    if values.numel() and values.is_cpu:  # the host would wait for another device
        low, high = (0 if labels else int(values.min())), int(values.max())
        if low < 0 or high >= classes:
            raise IndexError(
                f"{operator}: `target` must hold classes in [0, {classes}); "
                f"got {low if low < 0 else high}"
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
        size_average: As in old PyTorch programs; use ``reduction``.
        reduce: As in old PyTorch programs; use ``reduction``.
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
        size_average: As in old PyTorch programs; use ``reduction``.
        reduce: As in old PyTorch programs; use ``reduction``.
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
