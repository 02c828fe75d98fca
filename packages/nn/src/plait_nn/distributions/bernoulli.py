"""Bernoulli's distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import plait_core as pc
from plait_core import Tensor
from plait_nn import _operators as operators
from plait_nn.distributions import constraints
from plait_nn.distributions._location_scale import ProbsOrLogits
from plait_nn.distributions.exp_family import ExponentialFamily
from plait_nn.distributions.utils import (
    broadcast_all,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)

__all__ = ["Bernoulli"]


def binary_entropy(logits: Tensor, probs: Tensor) -> Tensor:
    """Return the entropy of one trial."""
    return pc.binary_cross_entropy_with_logits(logits, probs, reduction="none")


class BinaryParameter(ProbsOrLogits):
    """A probability given as one of `probs` and `logits`; the other one follows from it."""

    arg_constraints: ClassVar[Mapping[str, Any]] = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }

    def _take(self, probs: Any, logits: Any, *others: Any) -> tuple[Tensor, ...]:
        own, *rest = broadcast_all(self._require_one(probs, logits), *others)
        self.__dict__["probs" if probs is not None else "logits"] = own
        return own, *rest

    @lazy_property
    def logits(self) -> Tensor:
        """``log(probs) - log(1 - probs)``."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """``sigmoid(logits)``."""
        return logits_to_probs(self.logits, is_binary=True)


class Bernoulli(BinaryParameter, ExponentialFamily):
    """One trial: 1 with probability `probs`, else 0.

    Args:
        probs: the probability of 1, or else
        logits: ``log(probs / (1 - probs))``.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import Bernoulli
        >>> Bernoulli(0.25).log_prob(pc.tensor([0.0, 1.0])).exp()
        tensor([0.7500, 0.2500])
    """

    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        (own,) = self._take(probs, logits)
        super().__init__(own.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        result = (self.probs >= 0.5).to(self.probs.dtype)
        return result.masked_fill(self.probs == 0.5, pc.nan)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return pc.bernoulli(self.probs.detach().expand(*self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        return -pc.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return binary_entropy(self.logits, self.probs)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        own = self.param
        return self._enumerated(pc.arange(2, dtype=own.dtype, device=own.device), expand)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return operators.softplus(x)
