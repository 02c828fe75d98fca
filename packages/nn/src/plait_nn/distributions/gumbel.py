"""Gumbel's distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn.distributions._location_scale import LocationScale
from plait_nn.distributions.distribution import Distribution
from plait_nn.distributions.transformed_distribution import TransformedDistribution
from plait_nn.distributions.transforms import AffineTransform, ExpTransform
from plait_nn.distributions.uniform import Uniform
from plait_nn.distributions.utils import broadcast_all, open_uniform

__all__ = ["Gumbel"]

EULER = 0.57721566490153286


class Gumbel(LocationScale, TransformedDistribution):
    """Gumbel's distribution of largest values: ``cdf(x) = exp(-exp(-(x - loc) / scale))``.

    Args:
        loc: The location.
        scale: The scale; positive.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> from plait_nn.distributions import Gumbel
        >>> round(Gumbel(0.0, 1.0).mean.item(), 4)
        0.5772
    """

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = pc.finfo(self.loc.dtype)
        low, high = (pc.full_like(self.loc, x) for x in (limits.tiny, 1 - limits.eps))
        log, minus = ExpTransform().inv, AffineTransform(0, -pc.ones_like(self.scale))
        TransformedDistribution.__init__(
            self,
            Uniform(low, high, validate_args=False),
            [log, minus, log, AffineTransform(self.loc, -self.scale)],
            validate_args=validate_args,
        )

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def stddev(self) -> Tensor:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.square()

    sample = Distribution.sample  # of `rsample`, which avoids numbers of which the logarithm is inf

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
