"""The gamma distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import plait_core as pc
from plait_core import Tensor
from plait_nn import _operators as operators
from plait_nn.distributions import constraints
from plait_nn.distributions.exp_family import ExponentialFamily
from plait_nn.distributions.utils import broadcast_all

__all__ = ["Gamma"]


def standard_gamma(concentration: Tensor, shape: Sequence[int]) -> Tensor:
    """Draw differentiable positive samples of the gamma distribution with rate 1."""
    drawn: Tensor = operators.standard_gamma(concentration.expand(*shape))
    return drawn.clamp(min=pc.finfo(drawn.dtype).tiny)


class Gamma(ExponentialFamily):
    """The gamma distribution: density ``rate**a * x**(a - 1) * exp(-rate * x) / gamma(a)``.

    Samples are differentiable for both parameters, for the shape by implicit differentiation
    (Figurnov, Mohamed and Mnih 2018, "Implicit reparameterization gradients").

    Args:
        concentration: the shape ``a``.
        rate: the inverse of the scale.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> from plait_nn.distributions import Gamma
        >>> gamma = Gamma(3.0, 2.0)
        >>> gamma.mean, gamma.mode
        (tensor(1.5000), tensor(1.))
    """

    arg_constraints: ClassVar = {
        "concentration": constraints.positive,
        "rate": constraints.positive,
    }
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return standard_gamma(self.concentration, self._extended_shape(sample_shape)) / self.rate

    def log_prob(self, value: Any) -> Tensor:
        value = pc.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check(value)
        return (  # type: ignore[no-any-return]
            pc.xlogy(self.concentration, self.rate)
            + pc.xlogy(self.concentration - 1, value)
            - self.rate * value
            - self.concentration.lgamma()
        )

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return pc.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + a.lgamma() + (1.0 - a) * a.digamma()

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return (x + 1).lgamma() - (x + 1) * (-y).log()
