"""Pareto's distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from plait_core import Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions.exponential import Exponential
from plait_nn.distributions.transformed_distribution import TransformedDistribution
from plait_nn.distributions.transforms import AffineTransform, ExpTransform
from plait_nn.distributions.utils import broadcast_all

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """Pareto's distribution: density ``alpha * scale**alpha / x**(alpha + 1)`` from `scale` on.

    Args:
        scale: The scale; positive.
        alpha: The exponent; positive.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> from plait_nn.distributions import Pareto
        >>> Pareto(1.0, 3.0).mean
        tensor(1.5000)
    """

    arg_constraints: ClassVar = {"alpha": constraints.positive, "scale": constraints.positive}
    has_rsample = True

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        super().__init__(
            Exponential(self.alpha, validate_args=False),
            [ExpTransform(), AffineTransform(0, self.scale)],
            validate_args=validate_args,
        )

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Tensor:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        a = self.alpha.clamp(min=2)
        return self.scale.square() * a / ((a - 1).square() * (a - 2))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        shared = self.alpha.log() + self.alpha * self.scale.log()
        return shared - (self.alpha + 1) * value.log()

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        return 1 - (self.scale / value).pow(self.alpha)

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (-(-value).log1p() / self.alpha).exp()

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
