"""The normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plait_core as pc
from plait_core import Tensor
from plait_nn.distributions._location_scale import LocationScale
from plait_nn.distributions.exp_family import ExponentialFamily
from plait_nn.distributions.utils import normal_noise

__all__ = ["Normal"]

LOG_SQRT_2_PI = 0.5 * math.log(2 * math.pi)


class Normal(LocationScale, ExponentialFamily):
    """The normal distribution: density ``exp(-((x - loc) / scale)**2 / 2) / (scale * sqrt(2 pi))``.

    Args:
        loc: the mean.
        scale: the standard deviation.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> from plait_nn.distributions import Normal
        >>> normal = Normal(0.0, 1.0)
        >>> normal
        Normal(loc: 0.0, scale: 1.0)
        >>> round(normal.entropy().item(), 4)
        1.4189
    """

    _mean_carrier_measure = 0

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale.square()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        noise = normal_noise(self.loc, self._extended_shape(sample_shape))
        return noise.mul_(self.scale.detach()).add_(self.loc.detach())

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.loc + normal_noise(self.loc, self._extended_shape(sample_shape)) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return z.square() * -0.5 - (self.scale.log() + LOG_SQRT_2_PI)

    def cdf(self, value: Tensor) -> Tensor:
        return pc.special.ndtr(self._standard(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * pc.special.ndtri(value)

    def entropy(self) -> Tensor:
        return self.scale.log() + (0.5 + LOG_SQRT_2_PI)

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        variance = self.scale.square()
        return self.loc / variance, -0.5 * variance.reciprocal()

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return -0.25 * x.square() / y + 0.5 * (-math.pi / y).log()
