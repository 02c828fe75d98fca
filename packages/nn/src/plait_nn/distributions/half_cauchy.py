"""Magnitudes of Cauchy numbers."""

from __future__ import annotations

import math
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn.distributions._magnitude import Magnitude
from plait_nn.distributions.cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(Magnitude):
    """The distribution of ``abs(x)`` for x of Cauchy's distribution around 0.

    Args:
        scale: The scale; positive.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import HalfCauchy
        >>> HalfCauchy(1.0).cdf(pc.tensor(1.0))
        tensor(0.5000)
    """

    base_dist: Cauchy

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        return pc.full_like(self.scale, math.inf)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def log_prob(self, value: Any) -> Tensor:
        return super().log_prob(
            pc.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        )
