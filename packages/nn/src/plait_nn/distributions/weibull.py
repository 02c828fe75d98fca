"""Weibull's distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from plait_core import Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions.distribution import Distribution
from plait_nn.distributions.gumbel import EULER
from plait_nn.distributions.utils import broadcast_all

__all__ = ["Weibull"]


class Weibull(Distribution):
    """Weibull's distribution: ``cdf(x) = 1 - exp(-(x / scale)**concentration)`` for positive x.

    Example:
        >>> from plait_nn.distributions import Weibull
        >>> Weibull(2.0, 1.0).mean
        tensor(2.)
    """

    arg_constraints: ClassVar = {
        "scale": constraints.positive,
        "concentration": constraints.positive,
    }
    support = constraints.positive
    has_rsample = True

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        super().__init__(self.scale.shape, validate_args=validate_args)

    def _moment(self, order: int) -> Tensor:
        return (1 + order / self.concentration).lgamma().exp()

    @property
    def mean(self) -> Tensor:
        return self.scale * self._moment(1)

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k).clamp(min=0).pow(k.reciprocal())

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (self._moment(2) - self._moment(1).square())

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        waits = self.scale.new_empty(shape).exponential_()
        return self.scale * waits.pow(self.concentration.reciprocal())

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        k, z = self.concentration, value / self.scale
        return k.log() - self.scale.log() + (k - 1) * z.log() - z.pow(k)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -(-(value / self.scale).pow(self.concentration)).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (-(-value).log1p()).pow(self.concentration.reciprocal())

    def entropy(self) -> Tensor:
        inverse = self.concentration.reciprocal()
        return EULER * (1 - inverse) + (self.scale * inverse).log() + 1
