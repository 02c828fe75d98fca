"""Magnitudes of normal numbers."""

from __future__ import annotations

import math
from typing import Any

from plait_core import Tensor
from plait_nn.distributions._magnitude import Magnitude
from plait_nn.distributions.normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(Magnitude):
    """The distribution of ``abs(x)`` for normal x with mean 0.

    Args:
        scale: The scale; positive.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> from plait_nn.distributions import HalfNormal
        >>> round(HalfNormal(1.0).mean.item(), 4)
        0.7979
    """

    base_dist: Normal

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(0, scale, validate_args=False), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)
