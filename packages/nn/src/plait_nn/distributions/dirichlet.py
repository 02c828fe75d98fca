"""Dirichlet's distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import plait_core as pc
from plait_core import Tensor
from plait_nn import _operators as operators
from plait_nn.distributions import constraints
from plait_nn.distributions.exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """Dirichlet's distribution of shares that sum to 1: density ``prod(x**(a - 1)) / B(a)``.

    Samples are differentiable; the gradient is that of the marginal beta distributions.

    Args:
        concentration: the ``a``, in the last dimension.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import Dirichlet
        >>> Dirichlet(pc.tensor([1.0, 3.0])).mean
        tensor([0.2500, 0.7500])
    """

    arg_constraints: ClassVar = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ValueError(
                "Dirichlet: `concentration` must have a dimension of shares; got shape ()"
            )
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        at_corner = (self.concentration < 1).all(-1, True)
        largest = self.concentration.argmax(-1, True)
        corner = pc.zeros_like(self.concentration).scatter(-1, largest, 1.0)
        return pc.where(at_corner, corner, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        a = self.concentration
        return a * (total - a) / (total.square() * (total + 1))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        drawn: Tensor = operators.dirichlet_sample(self.concentration.expand(*shape))
        return drawn

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        a = self.concentration
        return pc.xlogy(a - 1.0, value).sum(-1) + a.sum(-1).lgamma() - a.lgamma().sum(-1)

    def entropy(self) -> Tensor:
        a, k = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        return (
            a.lgamma().sum(-1)
            - total.lgamma()
            - (k - total) * total.digamma()
            - ((a - 1.0) * a.digamma()).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()
