"""Laplace's distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import plait_core as pc
from plait_core import Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions.distribution import Distribution
from plait_nn.distributions.utils import broadcast_all

__all__ = ["Laplace"]


class Laplace(Distribution):
    """Laplace's distribution: density ``exp(-abs(x - loc) / scale) / (2 * scale)``.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import Laplace
        >>> Laplace(0.0, 1.0).cdf(pc.tensor(0.0))
        tensor(0.5000)
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    @property
    def stddev(self) -> Tensor:
        return 2**0.5 * self.scale

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = self.loc.new_empty(shape).uniform_(pc.finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * (u.sign() * (-u.abs()).log1p())

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        shifted = value - 0.5
        return self.loc - self.scale * shifted.sign() * (-2 * shifted.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
