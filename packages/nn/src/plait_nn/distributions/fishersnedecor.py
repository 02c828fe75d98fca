"""Fisher's and Snedecor's F distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import plait_core as pc
from plait_core import Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions.distribution import Distribution
from plait_nn.distributions.gamma import standard_gamma
from plait_nn.distributions.utils import broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The ratio of two chi-squared numbers, each divided by its degrees of freedom.

    Args:
        df1: First degrees of freedom; positive.
        df2: Second degrees of freedom; positive.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> from plait_nn.distributions import FisherSnedecor
        >>> FisherSnedecor(1.0, 4.0).mean
        tensor(2.)
    """

    arg_constraints: ClassVar = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        n = self.df2
        return pc.where(n > 2, n / (n - 2), math.nan)

    @property
    def mode(self) -> Tensor:
        result = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return pc.where(self.df1 > 2, result, math.nan)

    @property
    def variance(self) -> Tensor:
        m, n = self.df1, self.df2
        result = 2 * n.square() * (m + n - 2) / (m * (n - 2).square() * (n - 4))
        return pc.where(n > 4, result, math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        above = standard_gamma(self.df1 * 0.5, shape) / self.df1
        below = standard_gamma(self.df2 * 0.5, shape) / self.df2
        return above / below

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        normalizer = (half1 + half2).lgamma() - half1.lgamma() - half2.lgamma()
        power = half1 * ratio.log() + (half1 - 1) * value.log()
        return normalizer + power - (half1 + half2) * (ratio * value).log1p()
