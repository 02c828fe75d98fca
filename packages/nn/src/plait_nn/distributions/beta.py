"""The beta distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import plait_core as pc
from plait_core import Tensor
from plait_nn import _operators as operators
from plait_nn.distributions import constraints
from plait_nn.distributions.distribution import Distribution
from plait_nn.distributions.exp_family import ExponentialFamily
from plait_nn.distributions.utils import broadcast_all

__all__ = ["Beta"]


class _TwoConcentrations(Distribution):
    """A distribution on [0, 1] with a concentration parameter for each end."""

    arg_constraints: ClassVar[Mapping[str, Any]] = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)


class Beta(_TwoConcentrations, ExponentialFamily):
    """The beta distribution: density ``x**(a - 1) * (1 - x)**(b - 1) / B(a, b)`` on [0, 1].

    Samples are differentiable for both parameters.

    Args:
        concentration1: the ``a``.
        concentration0: the ``b``.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> from plait_nn.distributions import Beta
        >>> Beta(1.0, 3.0).mean
        tensor(0.2500)
    """

    @property
    def _total(self) -> Tensor:
        return self.concentration1 + self.concentration0

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / self._total

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        up, down = (a - 1).clamp(min=0.0), (b - 1).clamp(min=0.0)
        return pc.where((a < 1) & (b < 1), (a >= b).to(a.dtype), up / (up + down))

    @property
    def variance(self) -> Tensor:
        total = self._total
        return self.concentration1 * self.concentration0 / (total.square() * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        both = pc.stack([self.concentration1, self.concentration0], -1)
        shape = self._extended_shape(sample_shape)
        drawn: Tensor = operators.dirichlet_sample(both.expand(*shape, 2))
        return drawn.select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        a, b = self.concentration1, self.concentration0
        powers = pc.xlogy(a - 1, value) + pc.special.xlog1py(b - 1, -value)
        return powers + (a + b).lgamma() - a.lgamma() - b.lgamma()

    def entropy(self) -> Tensor:
        a, b, total = self.concentration1, self.concentration0, self._total
        normalizer = a.lgamma() + b.lgamma() - total.lgamma()
        steps = (a - 1) * a.digamma() + (b - 1) * b.digamma()
        return normalizer - steps + (total - 2) * total.digamma()

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return x.lgamma() + y.lgamma() - (x + y).lgamma()
