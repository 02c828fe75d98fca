"""Bernoulli's distribution, relaxed to numbers between 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import plait_core as pc
from plait_core import Tensor
from plait_nn import _operators as operators
from plait_nn.distributions import constraints
from plait_nn.distributions.bernoulli import BinaryParameter
from plait_nn.distributions.distribution import Distribution
from plait_nn.distributions.transformed_distribution import TransformedDistribution
from plait_nn.distributions.transforms import SigmoidTransform
from plait_nn.distributions.utils import clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(BinaryParameter, Distribution):
    """The logits of `RelaxedBernoulli`, a logistic distribution.

    Args:
        temperature: a tensor.
        probs: the probability of 1, or else
        logits: ``log(probs / (1 - probs))``.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
        >>> LogitRelaxedBernoulli(pc.tensor(1.0), 0.5).log_prob(pc.tensor(0.0)).exp()
        tensor(0.2500)
    """

    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        (own,) = self._take(probs, logits)
        super().__init__(own.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        probs = clamp_probs(self.probs)
        noise = clamp_probs(probs.new_empty(self._extended_shape(sample_shape)).uniform_())
        shifted = noise.log() - (-noise).log1p() + probs.log() - (-probs).log1p()
        return shifted / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        difference = self.logits - value * self.temperature
        return (
            pc.as_tensor(self.temperature).log() + difference - 2 * operators.softplus(difference)
        )


class Relaxed(TransformedDistribution):
    """The base of relaxed distributions: those of their logarithms or logits, transformed."""

    has_rsample = True

    @property
    def temperature(self) -> Tensor:
        """The temperature."""
        return self.base_dist.temperature  # type: ignore[no-any-return, attr-defined]

    @property
    def logits(self) -> Tensor:
        """The logits, or logarithms, of `probs`."""
        return self.base_dist.logits  # type: ignore[no-any-return, attr-defined]

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs  # type: ignore[no-any-return, attr-defined]


class RelaxedBernoulli(Relaxed):
    """Numbers between 0 and 1 that are close to 0 or 1 at low temperatures, with gradients.

    Maddison, Mnih and Teh 2017, "The concrete distribution"; Jang, Gu and Poole 2017, "Categorical
    reparameterization with Gumbel-softmax".

    Args:
        temperature: a tensor; towards 0 it becomes `Bernoulli`.
        probs: the probability of 1, or else
        logits: ``log(probs / (1 - probs))``.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import RelaxedBernoulli
        >>> soft = RelaxedBernoulli(pc.tensor(0.5), pc.tensor([0.1, 0.9])).rsample()
        >>> bool(((0 < soft) & (soft < 1)).all())
        True
    """

    arg_constraints: ClassVar = BinaryParameter.arg_constraints
    support = constraints.unit_interval

    def __init__(
        self,
        temperature: Tensor,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)
