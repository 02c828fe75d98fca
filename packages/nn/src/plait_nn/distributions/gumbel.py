"""Gumbel's distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from plait_core import Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions.distribution import Distribution
from plait_nn.distributions.utils import broadcast_all, open_uniform

__all__ = ["Gumbel"]

EULER = 0.57721566490153286


class Gumbel(Distribution):
    """Gumbel's distribution of largest values: ``cdf(x) = exp(-exp(-(x - loc) / scale))``.

    Example:
        >>> from plait_nn.distributions import Gumbel
        >>> round(Gumbel(0.0, 1.0).mean.item(), 4)
        0.5772
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Tensor:
        return self.loc

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
        if self._validate_args:
            self._validate_sample(value)
        z = (self.loc - value) / self.scale
        return z - z.exp() - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return (-((self.loc - value) / self.scale).exp()).exp()

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * (-value.log()).log()

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + EULER)
