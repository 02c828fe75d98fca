"""Laplace's distribution."""

from __future__ import annotations

from collections.abc import Sequence

import plait_core as pc
from plait_core import Tensor
from plait_nn.distributions._location_scale import LocationScale

__all__ = ["Laplace"]


class Laplace(LocationScale):
    """Laplace's distribution: density ``exp(-abs(x - loc) / scale) / (2 * scale)``.

    Args:
        loc: The location.
        scale: The scale; positive.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import Laplace
        >>> Laplace(0.0, 1.0).cdf(pc.tensor(0.0))
        tensor(0.5000)
    """

    @property
    def mean(self) -> Tensor:
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
        return -(2 * self.scale).log() - self._standard(value).abs()

    def cdf(self, value: Tensor) -> Tensor:
        z = self._standard(value)
        return 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        shifted = value - 0.5
        return self.loc - self.scale * shifted.sign() * (-2 * shifted.abs()).log1p()

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()
