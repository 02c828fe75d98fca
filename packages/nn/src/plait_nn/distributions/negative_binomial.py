"""The negative binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import plait_core as pc
from plait_core import Tensor
from plait_nn import _operators as operators
from plait_nn.distributions import constraints
from plait_nn.distributions.bernoulli import BinaryParameter
from plait_nn.distributions.distribution import Distribution
from plait_nn.distributions.gamma import standard_gamma

__all__ = ["NegativeBinomial"]


class NegativeBinomial(BinaryParameter, Distribution):
    """The number of successes before `total_count` failures.

    Args:
        total_count: the number of failures; need not be whole.
        probs: the probability of success, below 1, or else
        logits: ``log(probs / (1 - probs))``.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import NegativeBinomial
        >>> NegativeBinomial(2.0, pc.tensor(0.5)).mean
        tensor(2.)
    """

    arg_constraints: ClassVar = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        own, count = self._take(probs, logits, total_count)
        self.total_count = count.to(own.dtype)
        super().__init__(own.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        rates = standard_gamma(self.total_count.detach(), shape) * self.logits.detach().exp()
        return pc.poisson(rates)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n = self.total_count
        chances = n * operators.log_sigmoid(-self.logits) + value * operators.log_sigmoid(
            self.logits
        )
        ways = (n + value).lgamma() - (1.0 + value).lgamma() - n.lgamma()
        return chances + ways.masked_fill(n + value == 0.0, 0.0)
