"""Losses with a margin as modules; `plait_nn.functional` has the formulas."""

from __future__ import annotations

from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._loss import _Loss, _MarginLoss, _WeightedLoss

__all__ = [
    "HingeEmbeddingLoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "SoftMarginLoss",
]


class SoftMarginLoss(_Loss):
    """The logistic loss of targets 1 and -1; see `plait_nn.functional.soft_margin_loss`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.SoftMarginLoss()(pc.tensor([0.0, 2.0]), pc.tensor([1.0, 1.0]))
        tensor(0.4100)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class HingeEmbeddingLoss(_MarginLoss):
    """The hinge loss of distances; see `plait_nn.functional.hinge_embedding_loss`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> loss = nn.HingeEmbeddingLoss(reduction="none")
        >>> loss(pc.tensor([0.5, 0.25]), pc.tensor([1, -1]))
        tensor([0.5000, 0.7500])
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_MarginLoss):
    """The ranking loss of pairs of scores; see `plait_nn.functional.margin_ranking_loss`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.MarginRankingLoss(0.5)(pc.tensor([2.0]), pc.tensor([3.0]), pc.tensor([1.0]))
        tensor(1.5000)
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class MultiMarginLoss(_WeightedLoss):
    """The hinge loss of classes; see `plait_nn.functional.multi_margin_loss`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.MultiMarginLoss()(pc.tensor([[0.1, 0.2, 0.4, 0.8]]), pc.tensor([3]))
        tensor(0.3250)
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input,
            target,
            p=self.p,
            margin=self.margin,
            weight=self.weight,
            reduction=self.reduction,
        )


class MultiLabelMarginLoss(_Loss):
    """The hinge loss of sets of classes; see `plait_nn.functional.multilabel_margin_loss`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x, y = pc.tensor([[0.1, 0.2, 0.4, 0.8]]), pc.tensor([[3, 0, -1, 1]])
        >>> nn.MultiLabelMarginLoss()(x, y)
        tensor(0.8500)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The binary cross entropy of logits, averaged over classes.

    See `plait_nn.functional.multilabel_soft_margin_loss`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.MultiLabelSoftMarginLoss()(pc.zeros(1, 2), pc.tensor([[0.0, 1.0]]))
        tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)
