# ruff: noqa: N999 - a module by the name PyTorch gives it
"""Student's t distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import plait_core as pc
from plait_core import Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions.distribution import Distribution
from plait_nn.distributions.gamma import standard_gamma
from plait_nn.distributions.utils import broadcast_all, normal_noise

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t distribution: density proportional to ``(1 + z**2 / df)**(-(df + 1) / 2)``.

    Here ``z = (x - loc) / scale``.

    Args:
        df: the degrees of freedom.
        loc, scale: shift and factor of the standard form.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> from plait_nn.distributions import StudentT
        >>> StudentT(4.0).variance
        tensor(2.)
    """

    arg_constraints: ClassVar = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return pc.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.scale.square() * self.df / (self.df - 2)
        rest = pc.where(self.df > 1, pc.full_like(self.df, math.inf), math.nan)
        return pc.where(self.df > 2, finite, rest)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = normal_noise(self.loc, shape)
        squares = standard_gamma(0.5 * self.df, shape) * 2  # chi-squared numbers
        return self.loc + self.scale * (noise * (squares / self.df).rsqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        normalizer = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + (0.5 * self.df).lgamma()
            - (0.5 * (self.df + 1.0)).lgamma()
        )
        return -0.5 * (self.df + 1.0) * (z.square() / self.df).log1p() - normalizer

    def entropy(self) -> Tensor:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = half.lgamma() + math.lgamma(0.5) - more.lgamma()
        spread = more * (more.digamma() - half.digamma())
        return self.scale.log() + spread + 0.5 * self.df.log() + log_beta
