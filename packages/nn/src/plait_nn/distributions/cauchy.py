"""Cauchy's distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plait_core as pc
from plait_core import Tensor
from plait_nn.distributions._location_scale import LocationScale

__all__ = ["Cauchy"]


class Cauchy(LocationScale):
    """Cauchy's distribution: density ``1 / (pi * scale * (1 + ((x - loc) / scale)**2))``.

    It has neither mean nor variance (nan and infinite).

    Args:
        loc: The location.
        scale: The scale; positive.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import Cauchy
        >>> Cauchy(0.0, 1.0).cdf(pc.tensor(0.0))
        tensor(0.5000)
    """

    @property
    def mean(self) -> Tensor:
        return pc.full_like(self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        return pc.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        noise = self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + noise * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return -math.log(math.pi) - self.scale.log() - z.square().log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self._standard(value).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
