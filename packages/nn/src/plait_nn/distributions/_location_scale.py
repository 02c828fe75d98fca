"""The bases of distributions with a location, and with a location and a scale."""

from __future__ import annotations

from typing import Any, ClassVar

from plait_core import Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions.distribution import Distribution
from plait_nn.distributions.utils import broadcast_all

__all__ = ["Centered", "LocationScale"]


class Centered(Distribution):
    """A distribution whose location is its mean and its mode."""

    loc: Tensor

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc


class LocationScale(Distribution):
    """The distribution of ``loc + scale * z``, where z has a fixed distribution with mode 0."""

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mode(self) -> Tensor:
        return self.loc

    def _standard(self, value: Tensor) -> Tensor:
        """Return the z of a value, and check it."""
        if self._validate_args:
            self._validate_sample(value)
        return (value - self.loc) / self.scale
