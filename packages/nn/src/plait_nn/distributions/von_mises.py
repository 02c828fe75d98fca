"""The von Mises distribution, the analogue of the normal distribution on a circle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import plait_core as pc
from plait_core import Tensor
from plait_nn._all_samples import all_samples
from plait_nn.distributions import constraints
from plait_nn.distributions._location_scale import Centered
from plait_nn.distributions.utils import broadcast_all

__all__ = ["VonMises"]


class VonMises(Centered):
    """Angles with density ``exp(concentration * cos(x - loc)) / (2 pi I0(concentration))``.

    Args:
        loc: the mean angle, in radians.
        concentration: the inverse of the spread; 0 is uniform.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import VonMises
        >>> VonMises(0.0, 1.0).log_prob(pc.tensor(0.0)).exp()
        tensor(0.3417)
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def variance(self) -> Tensor:
        """The circular variance: 1 minus the mean cosine of the difference from the mean angle."""
        k = self.concentration
        return 1 - pc.special.i1e(k) / pc.special.i0e(k)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        k = self.concentration
        near = (value - self.loc).cos() - 1  # I0 without its exponential factor, so cos - 1
        return k * near - pc.special.i0e(k).log() - math.log(2 * math.pi)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw angles from -pi to pi (Best and Fisher 1979): by rejection, in float64."""
        shape = self._extended_shape(sample_shape)
        k = self.concentration.detach().to(pc.float64).expand(*shape).reshape(-1)
        tau = 1 + (1 + 4 * k.square()).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        # For small concentrations the difference would cancel, so two terms of the series are used.
        r = pc.where(k < 1e-5, 1 / k + k, (1 + rho.square()) / (2 * rho))
        angles, left = pc.zeros_like(k), pc.ones(k.shape, dtype=pc.bool_, device=k.device)
        while bool(all_samples(left).any()):
            u = pc.rand(3, *k.shape, dtype=pc.float64, device=k.device)
            z = (math.pi * u[0]).cos()
            f = (1 + r * z) / (r + z)
            c = k * (r - f)
            accepted = (c * (2 - c) - u[1] > 0) | ((c / u[1]).log() + 1 - c >= 0)
            result = (u[2] - 0.5).sign() * f.clamp(min=-1, max=1).acos()
            angles = pc.where(accepted, result, angles)  # of any round
            left = left & ~accepted
        loc = self.loc.detach().to(pc.float64)
        whole = (angles.reshape(shape) + math.pi + loc) % (2 * math.pi) - math.pi
        return whole.to(self.loc.dtype)
