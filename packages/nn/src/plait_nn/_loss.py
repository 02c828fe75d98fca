"""Losses and distances as modules."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from plait_abi.frames import warn
from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._linear import Linear
from plait_nn._module import Module
from plait_nn.functional._grouped import LinearCrossEntropyOptions
from plait_nn.functional._loss import translate_reduction

_REDUCTIONS = ("mean", "sum", "none")


class _Loss(Module):
    reduction: str
    _reductions: tuple[str, ...] = _REDUCTIONS

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
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
    """The absolute error; see `plait.nn.functional.l1_loss`.

    Args:
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.L1Loss()(pc.tensor([0.5, 3.0]), pc.zeros(2))
        tensor(1.7500)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """The squared error; see `plait.nn.functional.mse_loss`.

    Args:
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.MSELoss()(pc.tensor([1.0, 2.0]), pc.tensor([1.0, 4.0])).item()
        2.0
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Squared near 0 and absolute beyond ``beta``; see `plait.nn.functional.smooth_l1_loss`.

    Args:
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.
        beta: The difference from which the loss is linear; not negative.

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
    """Squared near 0 and absolute beyond ``delta``; see `plait.nn.functional.huber_loss`.

    Args:
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.
        delta: The difference from which the loss is linear; positive.

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
    """The negative log-likelihood, of log-probabilities; see `plait.nn.functional.nll_loss`.

    Args:
        weight: Weight of each class: shape (C), or None.
        size_average: Of old programs: False sums the losses. Use `reduction`.
        ignore_index: The class whose elements give no loss and no gradient.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.

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

    Args:
        weight: Weight of each class: shape (C), or None.
        size_average: Of old programs: False sums the losses. Use `reduction`.
        ignore_index: The class whose elements give no loss and no gradient.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.NLLLoss2d()(pc.full((1, 2, 1, 1), -0.5), pc.zeros(1, 1, 1, dtype=pc.int64))
        tensor(0.5000)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        warn("`NLLLoss2d` has been deprecated. Please use `NLLLoss` instead.", FutureWarning)
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class CrossEntropyLoss(_ClassLoss):
    """The cross entropy, of logits; see `plait.nn.functional.cross_entropy`.

    Args:
        weight: Shape (C): a factor for every class.
        size_average, reduce: As in old PyTorch programs; use ``reduction``.
        ignore_index: A class number that contributes nothing.
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

    See `plait.nn.functional.binary_cross_entropy`.

    Args:
        weight: What the loss of each element (or class) is multiplied with, or None.
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.BCELoss()(pc.tensor([0.5, 0.5]), pc.tensor([0.0, 1.0]))
        tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_WeightedLoss):
    """The binary cross entropy, of logits.

    See `plait.nn.functional.binary_cross_entropy_with_logits`.

    Args:
        weight: What the loss of each element (or class) is multiplied with, or None.
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.
        pos_weight: Weight of the positive targets of each class, or None.

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


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence, pointwise; see `plait.nn.functional.kl_div`.

    Args:
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean", "batchmean" (the sum over the batch's size, as the formula has it), "sum"
            or "none".
        log_target: Whether the target has logarithms too.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x, y = pc.tensor([[0.5, 0.5]]).log(), pc.tensor([[1.0, 0.0]])
        >>> nn.KLDivLoss(reduction="batchmean")(x, y)  # log 2
        tensor(0.6931)
    """

    _reductions = ("batchmean", "mean", "sum", "none")

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(_Loss):
    """The negative log-likelihood of counts; see `plait.nn.functional.poisson_nll_loss`.

    Args:
        log_input: Whether the input is the logarithm of the rate.
        full: Whether Stirling's approximation of the constant term is added.
        size_average: Of old programs: False sums the losses. Use `reduction`.
        eps: Added to the rate, against log(0).
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.PoissonNLLLoss()(pc.tensor([0.0, 0.0]), pc.tensor([1.0, 2.0]))
        tensor(1.)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class GaussianNLLLoss(_Loss):
    """The negative log-likelihood of normal values; see `plait.nn.functional.gaussian_nll_loss`.

    Args:
        full: Whether the constant term is added.
        eps: The least variance, against division by 0.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.GaussianNLLLoss()(pc.zeros(2), pc.tensor([1.0, 3.0]), pc.ones(2))
        tensor(2.5000)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(
            input, target, var, full=self.full, eps=self.eps, reduction=self.reduction
        )


class CTCLoss(_Loss):
    """The loss of sequences without alignment; see `plait.nn.functional.ctc_loss`.

    Args:
        blank: The class of the blank.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.
        zero_infinity: Whether infinite losses and their gradients become 0.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> x = pc.full((2, 1, 2), 0.5).log()
        >>> nn.CTCLoss()(x, pc.tensor([[1]]), [2], [1]).exp()
        tensor(1.3333)
    """

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor | Sequence[int],
        target_lengths: Tensor | Sequence[int],
    ) -> Tensor:
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )


class SoftMarginLoss(_Loss):
    """The logistic loss of targets 1 and -1; see `plait.nn.functional.soft_margin_loss`.

    Args:
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.SoftMarginLoss()(pc.tensor([0.0, 2.0]), pc.tensor([1.0, 1.0]))
        tensor(0.4100)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class HingeEmbeddingLoss(_MarginLoss):
    """The hinge loss of distances; see `plait.nn.functional.hinge_embedding_loss`.

    Args:
        margin: The distance that is enough: what is farther gives no loss.
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.

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
    """The ranking loss of pairs of scores; see `plait.nn.functional.margin_ranking_loss`.

    Args:
        margin: The distance that is enough: what is farther gives no loss.
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.

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
    """The hinge loss of classes; see `plait.nn.functional.multi_margin_loss`.

    Args:
        p: The exponent: 1 or 2.
        margin: The distance that is enough.
        weight: Weight of each class: shape (C), or None.
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.

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
    """The hinge loss of sets of classes; see `plait.nn.functional.multilabel_margin_loss`.

    Args:
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.

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

    See `plait.nn.functional.multilabel_soft_margin_loss`.

    Args:
        weight: What the loss of each element (or class) is multiplied with, or None.
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.MultiLabelSoftMarginLoss()(pc.zeros(1, 2), pc.tensor([[0.0, 1.0]]))
        tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class LinearCrossEntropyLoss(Module):
    """The cross entropy of a linear layer; `plait.nn.functional.linear_cross_entropy`.

    With ``options`` the logits of the whole batch are never in memory at once.

    Args:
        in_features: Size of the input.
        num_classes: Number of classes, C.
        out_features: Further dimensions of the loss, (d1, ...).
        bias: Whether the layer has a bias.
        device, dtype: Where the parameters are, and their dtype; None is float32.
        reduction: "mean", "sum" or "none".
        weight: A factor for each class.
        ignore_index: A class that is ignored; None: -100 for class indices.
        label_smoothing: The part of the target that is spread over all classes.
        options: `LinearCrossEntropyOptions`; None makes all logits at once.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> loss = nn.LinearCrossEntropyLoss(8, 20, options=nn.LinearCrossEntropyOptions())
        >>> bool(loss(pc.randn(5, 8), pc.tensor([0, 3, 4, 12, 19])) > 0)
        True
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ) -> None:
        super().__init__()
        self.reduction = reduction
        self.num_classes = num_classes
        self.out_features = tuple(out_features)
        rows = num_classes * math.prod(self.out_features)
        self.linear = Linear(in_features, rows, bias=bias, device=device, dtype=dtype)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        weight: Tensor = self.linear.weight
        bias: Tensor | None = self.linear.bias
        if self.out_features:
            shape = (self.num_classes, *self.out_features)
            weight = weight.reshape((*shape, self.linear.in_features))
            bias = None if bias is None else bias.reshape(shape)
        return F.linear_cross_entropy(
            input,
            weight,
            target,
            linear_bias=bias,
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )


class CosineSimilarity(Module):
    """The cosine of vectors along ``dim``; see `plait.nn.functional.cosine_similarity`.

    Args:
        dim: The dimension of the vectors.
        eps: The least value of the product of the norms, against division by 0.

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

    See `plait.nn.functional.pairwise_distance`.

    Args:
        p: The order of the norm.
        eps: Added to each difference.
        keepdim: Whether the last dimension stays, with size 1.

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
    """The cosine loss of pairs; see `plait.nn.functional.cosine_embedding_loss`.

    Args:
        margin: The distance that is enough: what is farther gives no loss.
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.

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
    """The margin loss of triplets; see `plait.nn.functional.triplet_margin_loss`.

    Args:
        margin: How much farther the negative must be.
        p: The order of the norm.
        eps: Added to each difference.
        swap: Whether the distance of positive and negative counts if it is smaller than that of
            anchor and negative.
        size_average: Of old programs: False sums the losses. Use `reduction`.
        reduce: Of old programs: False returns each loss. Use `reduction`.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.

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

    See `plait.nn.functional.triplet_margin_with_distance_loss`.

    Args:
        distance_function: Distance of two batches of vectors; None: `PairwiseDistance`.
        margin: How much farther the negative must be.
        swap: Whether the distance of positive and negative counts if it is smaller than that of
            anchor and negative.
        reduction: "mean" divides the sum of the losses by their number, "sum" adds them, "none"
            returns each.

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
