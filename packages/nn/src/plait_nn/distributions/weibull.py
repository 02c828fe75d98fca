"""Weibull's distribution."""

from __future__ import annotations

from typing import Any, ClassVar

import plait_core as pc
from plait_core import Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions.exponential import Exponential
from plait_nn.distributions.gumbel import EULER
from plait_nn.distributions.transformed_distribution import TransformedDistribution
from plait_nn.distributions.transforms import AffineTransform, PowerTransform
from plait_nn.distributions.utils import broadcast_all

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """Weibull's distribution: ``cdf(x) = 1 - exp(-(x / scale)**concentration)`` for positive x.

    Args:
        scale: The scale; positive.
        concentration: The shape parameter; positive.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

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
        self.concentration_reciprocal = self.concentration.reciprocal()
        super().__init__(
            Exponential(pc.ones_like(self.scale), validate_args=False),
            [
                PowerTransform(exponent=self.concentration_reciprocal),
                AffineTransform(0, self.scale),
            ],
            validate_args=validate_args,
        )

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

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        k, z = self.concentration, value / self.scale
        return k.log() - self.scale.log() + (k - 1) * z.log() - z.pow(k)

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return -(-(value / self.scale).pow(self.concentration)).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (-(-value).log1p()).pow(self.concentration.reciprocal())

    def entropy(self) -> Tensor:
        inverse = self.concentration.reciprocal()
        return EULER * (1 - inverse) + (self.scale * inverse).log() + 1
