"""Gumbel's distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

from plait_core import Tensor
from plait_nn.distributions._location_scale import LocationScale
from plait_nn.distributions.utils import open_uniform

__all__ = ["Gumbel"]

EULER = 0.57721566490153286


class Gumbel(LocationScale):
    """Gumbel's distribution of largest values: ``cdf(x) = exp(-exp(-(x - loc) / scale))``.

    Example:
        >>> from plait_nn.distributions import Gumbel
        >>> round(Gumbel(0.0, 1.0).mean.item(), 4)
        0.5772
    """

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def stddev(self) -> Tensor:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.square()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        u = open_uniform(self.loc, self._extended_shape(sample_shape))
        return self.icdf(u)

    def log_prob(self, value: Tensor) -> Tensor:
        z = -self._standard(value)
        return z - z.exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        return (-(-self._standard(value)).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)
