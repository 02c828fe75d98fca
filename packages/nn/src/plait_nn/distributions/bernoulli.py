"""Bernoulli's distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import plait_core as pc
from plait_core import Size, Tensor
from plait_nn.distributions import constraints
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


class BinaryParameter:
    """A probability given as one of `probs` and `logits`; the other one follows from it."""

    def _take(self, probs: Any, logits: Any, *others: Any) -> tuple[Tensor, ...]:
        name = type(self).__name__
        if (probs is None) == (logits is None):
            given = "neither" if probs is None else "both"
            raise ValueError(f"{name}: one of `probs` and `logits` is required; got {given}")
        own, *rest = broadcast_all(probs if probs is not None else logits, *others)
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

    @property
    def param(self) -> Tensor:
        """The given one of `probs` and `logits`."""
        return self.__dict__["probs" if "probs" in self.__dict__ else "logits"]  # type: ignore[no-any-return]

    @property
    def param_shape(self) -> Size:
        """The shape of `probs` and `logits`."""
        return self.param.shape


class Bernoulli(BinaryParameter, ExponentialFamily):
    """One trial: 1 with probability `probs`, else 0.

    Args:
        probs: the probability of 1, or else
        logits: ``log(probs / (1 - probs))``.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import Bernoulli
        >>> Bernoulli(0.25).log_prob(pc.tensor([0.0, 1.0])).exp()
        tensor([0.7500, 0.2500])
    """

    arg_constraints: ClassVar = {
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
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
        made = (self.probs >= 0.5).to(self.probs.dtype)
        return made.masked_fill(self.probs == 0.5, pc.nan)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return pc.bernoulli(self.probs.detach().expand(*self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
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
        return pc.softplus(x)
