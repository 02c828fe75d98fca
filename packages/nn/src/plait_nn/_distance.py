"""Distances, and losses of pairs and triplets, as modules."""

from __future__ import annotations

from collections.abc import Callable

from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._loss import _Loss, _MarginLoss
from plait_nn._module import Module

__all__ = [
    "CosineEmbeddingLoss",
    "CosineSimilarity",
    "PairwiseDistance",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class CosineSimilarity(Module):
    """The cosine of vectors along ``dim``; see `plait_nn.functional.cosine_similarity`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.CosineSimilarity(dim=0)(pc.tensor([3.0, 4.0]), pc.tensor([3.0, 0.0]))
        tensor(0.6000)
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The distance of vectors along the last dimension.

    See `plait_nn.functional.pairwise_distance`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.PairwiseDistance(eps=0.0)(pc.tensor([[3.0, 4.0]]), pc.zeros(1, 2))
        tensor([5.])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineEmbeddingLoss(_MarginLoss):
    """The cosine loss of pairs; see `plait_nn.functional.cosine_embedding_loss`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.tensor([[1.0, 0.0], [1.0, 0.0]])
        >>> nn.CosineEmbeddingLoss(reduction="none")(x, x, pc.tensor([1, -1]))
        tensor([0., 1.])
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class TripletMarginLoss(_Loss):
    """The margin loss of triplets; see `plait_nn.functional.triplet_margin_loss`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> a, b, c = pc.tensor([[0.0]]), pc.tensor([[3.0]]), pc.tensor([[1.0]])
        >>> nn.TripletMarginLoss()(a, b, c)
        tensor(3.)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """`TripletMarginLoss` with a given distance function.

    See `plait_nn.functional.triplet_margin_with_distance_loss`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> a, b, c = pc.tensor([0.0]), pc.tensor([3.0]), pc.tensor([1.0])
        >>> loss = nn.TripletMarginWithDistanceLoss(distance_function=lambda x, y: (x - y).abs())
        >>> loss(a, b, c)
        tensor(3.)
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.distance_function = (
            PairwiseDistance() if distance_function is None else distance_function
        )
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
