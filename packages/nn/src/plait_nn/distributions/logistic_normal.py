"""The logistic-normal distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from plait_core import Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions.normal import Normal
from plait_nn.distributions.transformed_distribution import TransformedDistribution
from plait_nn.distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Shares that sum to 1, from normal numbers by `StickBreakingTransform`.

    Args:
        loc, scale: of the n - 1 normal numbers in the last dimension.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import LogisticNormal
        >>> shares = LogisticNormal(pc.zeros(3), pc.ones(3)).sample()
        >>> tuple(shares.shape), bool((shares.sum() - 1).abs() < 1e-6)
        ((4,), True)
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def _normal(self) -> Normal:
        inner = self.base_dist.base_dist  # type: ignore[attr-defined] # an Independent
        assert isinstance(inner, Normal)
        return inner

    @property
    def loc(self) -> Tensor:
        """The mean of the normal numbers."""
        return self._normal.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the normal numbers."""
        return self._normal.scale
