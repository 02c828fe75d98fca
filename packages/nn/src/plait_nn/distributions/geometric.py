"""The geometric distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn._all_samples import all_samples
from plait_nn.distributions import constraints
from plait_nn.distributions.bernoulli import BinaryParameter, binary_entropy
from plait_nn.distributions.distribution import Distribution
from plait_nn.distributions.utils import broadcast_all, open_uniform

__all__ = ["Geometric"]


class Geometric(BinaryParameter, Distribution):
    """The number of failures before the first success: k with probability ``(1 - probs)**k *
    probs``.

    Args:
        probs: the probability of success, above 0, or else
        logits: ``log(probs / (1 - probs))``.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> from plait_nn.distributions import Geometric
        >>> Geometric(0.25).mean
        tensor(3.)
    """

    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        (own,) = self._take(probs, logits)
        super().__init__(own.shape, validate_args=validate_args)
        checks = self._validate_args and probs is not None and self._reads(own)
        if checks and not bool(all_samples(own > 0).all()):
            raise ValueError(f"Geometric: `probs` must be above 0; got {all_samples(own.detach())}")

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return pc.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        probs = self.probs.detach()
        u = open_uniform(probs, self._extended_shape(sample_shape))
        return (u.log() / (-probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        safe = probs.masked_fill((probs == 1) & (value == 0), 0.0)  # 0 times infinity is 0 here
        return value * (-safe).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return binary_entropy(self.logits, self.probs) / self.probs
