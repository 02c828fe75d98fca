"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions.bernoulli import BinaryParameter
from plait_nn.distributions.exp_family import ExponentialFamily
from plait_nn.distributions.utils import broadcast_all, clamp_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(BinaryParameter, ExponentialFamily):
    """Numbers from 0 to 1 with density proportional to ``p**x * (1 - p)**(1 - x)``.

    Loaiza-Ganem and Cunningham 2019, "The continuous Bernoulli": the likelihood for grey pixels.

    Args:
        probs: p in (0, 1), or else
        logits: ``log(p / (1 - p))``.
        lims: between these bounds the normalizer is computed by its series around 1/2.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import ContinuousBernoulli
        >>> ContinuousBernoulli(0.5).cdf(pc.tensor(0.25))
        tensor(0.2500)
    """

    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        (own,) = self._take(probs, logits)
        self._lims = lims
        super().__init__(own.shape, validate_args=validate_args)
        if probs is not None:
            self.probs = clamp_probs(own)

    _mean_carrier_measure = 0

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        near = x.abs() < 0.1  # where the closed form is 0 / 0, the series at 0
        half = x.masked_fill(near, 1.0) / 2
        far = half.abs() + (-(-2 * half.abs()).expm1() / (2 * half.abs())).log()
        series = x.square() / 24 - x.square().square() / 2880
        return x / 2 + pc.where(near, series, far)

    def _outside(self) -> Tensor:
        """Return where the closed forms are accurate."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut(self) -> Tensor:
        """Return the probabilities, with those near 1/2 replaced, to avoid divisions by 0."""
        return pc.where(self._outside(), self.probs, self._lims[0])

    def _select(self, closed: Tensor, series: Tensor) -> Tensor:
        return pc.where(self._outside(), closed, series)

    def _log_constant(self) -> Tensor:
        p = self._cut()
        odds = ((-p).log1p() - p.log()).abs().log()
        closed = odds - (1 - 2 * p).abs().log()
        x = self.probs - 0.5
        return self._select(closed, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x**2) * x**2)

    @property
    def mean(self) -> Tensor:
        p = self._cut()
        closed = p / (2.0 * p - 1.0) + 1.0 / ((-p).log1p() - p.log())
        x = self.probs - 0.5
        return self._select(closed, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x**2) * x)

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    @property
    def variance(self) -> Tensor:
        p = self._cut()
        closed = p * (p - 1.0) / (1.0 - 2.0 * p) ** 2 + 1.0 / ((-p).log1p() - p.log()) ** 2
        x = (self.probs - 0.5) ** 2
        return self._select(closed, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.icdf(self.probs.new_empty(self._extended_shape(sample_shape)).uniform_())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        own = pc.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return self._log_constant() - own

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        p = self._cut()
        closed = (p.pow(value) * (1.0 - p).pow(1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        result = self._select(closed, value)
        return pc.where(value <= 0.0, 0.0, pc.where(value >= 1.0, 1.0, result))

    def icdf(self, value: Tensor) -> Tensor:
        p = self._cut()
        result = (-p + value * (2.0 * p - 1.0)).log1p() - (-p).log1p()
        return self._select(result / (p.log() - (-p).log1p()), value)

    def entropy(self) -> Tensor:
        low, high = (-self.probs).log1p(), self.probs.log()
        return self.mean * (low - high) - self._log_constant() - low
