"""Losses as modules; the functions in `plait_nn.functional` have formulas and shapes."""

from __future__ import annotations

from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._module import Module
from plait_nn.functional._loss import translate_reduction

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "HuberLoss",
    "L1Loss",
    "MSELoss",
    "NLLLoss",
    "NLLLoss2d",
    "SmoothL1Loss",
]

_REDUCTIONS = ("mean", "sum", "none")


class _Loss(Module):
    reduction: str
    _reductions: tuple[str, ...] = _REDUCTIONS

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        self.reduction = translate_reduction(size_average, reduce, reduction)
        if self.reduction not in self._reductions:
            choices = f"{', '.join(self._reductions[:-1])} or {self._reductions[-1]}"
            raise ValueError(
                f"{type(self).__name__}: `reduction` must be {choices}; got {reduction!r}"
            )


class _WeightedLoss(_Loss):
    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class _MarginLoss(_Loss):
    margin: float

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class _ClassLoss(_WeightedLoss):
    """A loss of class indices, one of which is ignored."""

    ignore_index: int

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index


class L1Loss(_Loss):
    """The absolute error; see `plait_nn.functional.l1_loss`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.L1Loss()(pc.tensor([0.5, 3.0]), pc.zeros(2))
        tensor(1.7500)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """The squared error; see `plait_nn.functional.mse_loss`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.MSELoss()(pc.tensor([1.0, 2.0]), pc.tensor([1.0, 4.0])).item()
        2.0
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Squared near 0 and absolute beyond ``beta``; see `plait_nn.functional.smooth_l1_loss`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.SmoothL1Loss()(pc.tensor([0.5, 3.0]), pc.zeros(2))
        tensor(1.3125)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Squared near 0 and absolute beyond ``delta``; see `plait_nn.functional.huber_loss`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.HuberLoss()(pc.tensor([0.5, 3.0]), pc.zeros(2))
        tensor(1.3125)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class NLLLoss(_ClassLoss):
    """The negative log-likelihood, of log-probabilities; see `plait_nn.functional.nll_loss`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.NLLLoss()(pc.tensor([[-0.5, -1.5]]), pc.tensor([1]))
        tensor(1.5000)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class NLLLoss2d(NLLLoss):
    """An old name of `NLLLoss`, for images (N, C, H, W).

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.NLLLoss2d()(pc.full((1, 2, 1, 1), -0.5), pc.zeros(1, 1, 1, dtype=pc.int64))
        tensor(0.5000)
    """


class CrossEntropyLoss(_ClassLoss):
    """The cross entropy, of logits; see `plait_nn.functional.cross_entropy`.

    Args:
        weight: Shape (C): a factor for every class.
        size_average: As in old PyTorch programs; use ``reduction``.
        ignore_index: A class number that contributes nothing.
        reduce: As in old PyTorch programs; use ``reduction``.
        reduction: "mean", "sum" or "none".
        label_smoothing: The part of the target that is spread over all classes.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> loss = nn.CrossEntropyLoss()(pc.zeros(3, 4), pc.tensor([0, 1, 2]))
        >>> round(loss.item(), 4)
        1.3863
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, ignore_index, reduce, reduction)
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(_WeightedLoss):
    """The binary cross entropy, of probabilities.

    See `plait_nn.functional.binary_cross_entropy`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.BCELoss()(pc.tensor([0.5, 0.5]), pc.tensor([0.0, 1.0]))
        tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_WeightedLoss):
    """The binary cross entropy, of logits.

    See `plait_nn.functional.binary_cross_entropy_with_logits`.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.BCEWithLogitsLoss()(pc.tensor([0.0, 0.0]), pc.tensor([0.0, 1.0]))
        tensor(0.6931)
    """

    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )
