"""The binomial distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import plait_core as pc
from plait_core import Tensor
from plait_nn import _operators as operators
from plait_nn._all_samples import all_samples
from plait_nn.distributions import constraints
from plait_nn.distributions.bernoulli import BinaryParameter
from plait_nn.distributions.distribution import Distribution

__all__ = ["Binomial"]


class Binomial(BinaryParameter, Distribution):
    """The number of successes in `total_count` trials.

    Args:
        total_count: the number of trials.
        probs: the probability of success, or else
        logits: ``log(probs / (1 - probs))``.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import Binomial
        >>> Binomial(2, pc.tensor(0.5)).log_prob(pc.tensor([0.0, 1.0, 2.0])).exp()
        tensor([0.2500, 0.5000, 0.2500])
    """

    arg_constraints: ClassVar = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        own, count = self._take(probs, logits, total_count)
        self.total_count = count.to(own.dtype)
        super().__init__(own.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return pc.minimum(((self.total_count + 1) * self.probs).floor(), self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        count, probs = self.total_count.detach(), self.probs.detach()
        return pc.binomial(count.expand(*shape), probs.expand(*shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        n, x = self.total_count, self.logits
        ways = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return value * x + n * operators.log_sigmoid(-x) + ways

    def _count(self) -> int:
        counts = all_samples(self.total_count)
        count = int(counts.max())
        if int(counts.min()) != count:
            raise NotImplementedError(
                f"Binomial: one `total_count` is required to list the support; got {counts}"
            )
        return count

    def entropy(self) -> Tensor:
        self._count()
        log_probs = self.log_prob(self.enumerate_support(False))
        return -(log_probs.exp() * log_probs).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        own = self.total_count
        values = pc.arange(1 + self._count(), dtype=own.dtype, device=own.device)
        return self._enumerated(values, expand)
