"""Kumaraswamy's distribution."""

from __future__ import annotations

from collections.abc import Sequence

import plait_core as pc
from plait_core import Tensor
from plait_nn.distributions.beta import _TwoConcentrations
from plait_nn.distributions.gumbel import EULER
from plait_nn.distributions.utils import open_uniform

__all__ = ["Kumaraswamy"]


class Kumaraswamy(_TwoConcentrations):
    """Kumaraswamy's distribution: ``cdf(x) = 1 - (1 - x**a)**b``; close to the beta distribution.

    Args:
        concentration1: the ``a``.
        concentration0: the ``b``.

    Example:
        >>> from plait_nn.distributions import Kumaraswamy
        >>> Kumaraswamy(1.0, 1.0).mean
        tensor(0.5000)
    """

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

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(open_uniform(self.concentration1, self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        rest = pc.special.xlog1py(b - 1, -value.pow(a))
        return a.log() + b.log() + pc.xlogy(a - 1, value) + rest

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.concentration1, self.concentration0
        return -(b * (-value.pow(a)).log1p()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return (-((-value).log1p() / b).expm1()).pow(a.reciprocal())

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = (b + 1).digamma() + EULER
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - a.log() - b.log()
