"""The uniform distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import plait_core as pc
from plait_core import Tensor
from plait_nn._all_samples import all_samples
from plait_nn.distributions import constraints
from plait_nn.distributions.distribution import Distribution
from plait_nn.distributions.utils import broadcast_all

__all__ = ["Uniform"]


class Uniform(Distribution):
    """The uniform distribution on ``[low, high)``.

    Args:
        low: Lower end of the interval.
        high: Upper end of the interval.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Raises:
        ValueError: unless ``low < high``.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import Uniform
        >>> Uniform(0.0, 2.0).log_prob(pc.tensor(1.0)).exp()
        tensor(0.5000)
    """

    has_rsample = True
    arg_constraints: ClassVar = {
        "low": constraints.dependent(is_discrete=False, event_dim=0),
        "high": constraints.dependent(is_discrete=False, event_dim=0),
    }

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)
        checks = self._validate_args and self._reads(self.low, self.high)
        if checks and not bool(all_samples(self.low < self.high).all()):
            raise ValueError(
                f"Uniform: `low` must be below `high`; got {all_samples(self.low.detach())} "
                f"and {all_samples(self.high.detach())}"
            )

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        return self.high * pc.nan

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).square() / 12

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        noise = self.low.new_empty(self._extended_shape(sample_shape)).uniform_()
        return self.low + noise * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        inside = ((self.low <= value) & (value < self.high)).to(self.low.dtype)
        return inside.log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()
