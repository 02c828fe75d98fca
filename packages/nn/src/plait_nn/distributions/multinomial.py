"""The multinomial distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions.binomial import Binomial
from plait_nn.distributions.one_hot_categorical import OverCategories

__all__ = ["Multinomial"]


class Multinomial(OverCategories):
    """The counts of each category in `total_count` draws.

    Args:
        total_count: the number of draws, the same for the whole batch.
        probs: weights in the last dimension, made to sum to 1, or else
        logits: logarithms of weights.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import Multinomial
        >>> counts = Multinomial(2, pc.tensor([0.5, 0.5]))
        >>> counts.log_prob(pc.tensor([1.0, 1.0])).exp()
        tensor(0.5000)
    """

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError(
                f"Multinomial: an int is required as `total_count`; "
                f"got {type(total_count).__name__}"
            )
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        drawn = self._categorical.sample((self.total_count, *sample_shape))
        drawn = drawn.movedim(0, -1)  # the draws of one event in the last dimension
        counts = pc.zeros(
            self._extended_shape(sample_shape), dtype=self.param.dtype, device=drawn.device
        )
        return counts.scatter_add_(-1, drawn, counts.new_ones(drawn.shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits = self.logits.expand(*pc.broadcast_shapes(self.logits.shape, value.shape))
        logits = logits.masked_fill((value == 0) & (logits == -pc.inf), 0.0)
        ways = (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1)
        return ways + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        n = self.param.new_tensor(float(self.total_count))
        own = Binomial(self.total_count, probs=self.probs, validate_args=False)
        support = own.enumerate_support(False)[1:]
        weighted = own.log_prob(support).exp() * (support + 1).lgamma()
        return n * self._categorical.entropy() - (n + 1).lgamma() + weighted.sum([0, -1])
