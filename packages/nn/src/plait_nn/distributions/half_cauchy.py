"""Magnitudes of Cauchy numbers."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import plait_core as pc
from plait_core import Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions.cauchy import Cauchy
from plait_nn.distributions.transformed_distribution import TransformedDistribution
from plait_nn.distributions.transforms import AbsTransform

__all__ = ["HalfCauchy"]


class HalfCauchy(TransformedDistribution):
    """The magnitude of a number of Cauchy's distribution around 0.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import HalfCauchy
        >>> HalfCauchy(1.0).cdf(pc.tensor(1.0))
        tensor(0.5000)
    """

    arg_constraints: ClassVar = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    base_dist: Cauchy

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = Cauchy(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of Cauchy's distribution."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return pc.full_like(self.scale, math.inf)

    @property
    def mode(self) -> Tensor:
        return pc.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def log_prob(self, value: Any) -> Tensor:
        value = pc.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        if self._validate_args:
            self._validate_sample(value)
        return pc.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)
