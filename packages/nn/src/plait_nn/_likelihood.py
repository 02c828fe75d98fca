"""Likelihoods and divergences as modules; `plait_nn.functional` has the formulas."""

from __future__ import annotations

from collections.abc import Sequence

from plait_core import Tensor
from plait_nn import functional as F
from plait_nn._loss import _Loss

__all__ = ["CTCLoss", "GaussianNLLLoss", "KLDivLoss", "PoissonNLLLoss"]


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence, pointwise; see `plait_nn.functional.kl_div`.

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
    """The negative log-likelihood of counts; see `plait_nn.functional.poisson_nll_loss`.

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
    """The negative log-likelihood of normal values; see `plait_nn.functional.gaussian_nll_loss`.

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
    """The loss of sequences without alignment; see `plait_nn.functional.ctc_loss`.

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
