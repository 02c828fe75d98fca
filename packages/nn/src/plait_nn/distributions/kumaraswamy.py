"""Kumaraswamy's distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn.distributions.beta import _TwoConcentrations
from plait_nn.distributions.distribution import Distribution
from plait_nn.distributions.gumbel import EULER
from plait_nn.distributions.transformed_distribution import TransformedDistribution
from plait_nn.distributions.transforms import AffineTransform, PowerTransform
from plait_nn.distributions.uniform import Uniform
from plait_nn.distributions.utils import broadcast_all, open_uniform

__all__ = ["Kumaraswamy"]


class Kumaraswamy(_TwoConcentrations, TransformedDistribution):
    """Kumaraswamy's distribution: ``cdf(x) = 1 - (1 - x**a)**b``; close to the beta distribution.

    Args:
        concentration1: the ``a``.
        concentration0: the ``b``.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> from plait_nn.distributions import Kumaraswamy
        >>> Kumaraswamy(1.0, 1.0).mean
        tensor(0.5000)
    """

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        a, b = broadcast_all(concentration1, concentration0)
        self.concentration1, self.concentration0 = a, b
        TransformedDistribution.__init__(
            self,
            Uniform(pc.zeros_like(b), pc.ones_like(b), validate_args=False),
            [
                PowerTransform(exponent=b.reciprocal()),
                AffineTransform(1, -1),
                PowerTransform(exponent=a.reciprocal()),
            ],
            validate_args=validate_args,
        )

    def _moment(self, order: int) -> Tensor:
        a, b = self.concentration1, self.concentration0
        first = 1 + order / a
        return (first.lgamma() + b.lgamma() - (first + b).lgamma() + b.log()).exp()

    @property
    def mean(self) -> Tensor:
        return self._moment(1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        result = ((a - 1) / (a * b - 1)).pow(a.reciprocal())
        return result.masked_fill((a < 1) | (b < 1), pc.nan)

    @property
    def variance(self) -> Tensor:
        return self._moment(2) - self._moment(1).square()

    sample = Distribution.sample  # of `rsample`, which avoids numbers of which the logarithm is inf

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        survival = open_uniform(self.concentration1, self._extended_shape(sample_shape))
        return self._at(survival.log())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        a, b = self.concentration1, self.concentration0
        rest = pc.special.xlog1py(b - 1, -value.pow(a))
        return a.log() + b.log() + pc.xlogy(a - 1, value) + rest

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        a, b = self.concentration1, self.concentration0
        return -(b * (-value.pow(a)).log1p()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self._at((-value).log1p())

    def _at(self, log_survival: Tensor) -> Tensor:
        """Return the number above which a share ``exp(log_survival)`` lies."""
        a, b = self.concentration1, self.concentration0
        return (-(log_survival / b).expm1()).pow(a.reciprocal())

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + EULER
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
