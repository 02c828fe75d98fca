"""The generalised Pareto distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import plait_core as pc
from plait_core import Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions.distribution import Distribution
from plait_nn.distributions.utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Values above a threshold: ``cdf(x) = 1 - (1 + c * z)**(-1 / c)``.

    Here ``z = (x - loc) / scale``. For c = 0 it is ``1 - exp(-z)``. For c < 0 the support ends at
    ``loc - scale / c``.

    Args:
        loc: the lower end of the support.
        scale: the unit.
        concentration: the shape c; a larger one gives a heavier tail.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import GeneralizedPareto
        >>> GeneralizedPareto(1.0, 2.0, pc.tensor([-1.0, 0.0, 0.5])).mean
        tensor([2., 3., 5.])
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def _is_zero(self) -> Tensor:
        return self.concentration.eq(0)

    def _divisor(self) -> Tensor:
        """The concentration, replaced by 1 where it is 0, as another formula is used there."""
        return self.concentration.masked_fill(self._is_zero(), 1.0)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        end = self.loc - self.scale / self._divisor()
        return constraints.interval(self.loc, pc.where(self.concentration < 0, end, math.inf))

    @property
    def mean(self) -> Tensor:
        result = self.loc + self.scale / (1 - self.concentration)
        return pc.where(self.concentration < 1, result, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        c = self.concentration
        result = self.scale.square() / ((1 - c).square() * (1 - 2 * c))
        return pc.where(c < 0.5, result, math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(self.loc.new_empty(self._extended_shape(sample_shape)).uniform_())

    def _at(self, wait: Tensor) -> Tensor:
        """Return z for ``-log(1 - cdf)``; at c = 0 two terms of the series, for the derivative."""
        c = self._divisor()
        series = wait + self.concentration * wait.square() / 2
        z = pc.where(self._is_zero(), series, (c * wait).expm1() / c)
        return self.loc + self.scale * z

    def _wait(self, value: Tensor) -> Tensor:
        """Return ``-log(1 - cdf)`` of z."""
        c, z = self._divisor(), (value - self.loc) / self.scale
        series = z - self.concentration * z.square() / 2
        return pc.where(self._is_zero(), series, (c * z).log1p() / c)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return -(1 + self.concentration) * self._wait(value) - self.scale.log()

    def log_survival_function(self, value: Tensor) -> Tensor:
        """``log(1 - cdf(value))``."""
        self._check(value)
        return -self._wait(value)

    def log_cdf(self, value: Tensor) -> Tensor:
        """``log(cdf(value))``."""
        return self.cdf(value).log()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return -(-self._wait(value)).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        return self._at(-(-value).log1p())

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1
