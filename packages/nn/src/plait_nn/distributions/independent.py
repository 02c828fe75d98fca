"""Distributions with batch dimensions that are made part of the event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from plait_core import Size, Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions.distribution import Distribution
from plait_nn.distributions.utils import sum_last

__all__ = ["Independent"]


class Independent(Distribution):
    """A distribution whose last batch dimensions belong to the event.

    Args:
        base_distribution: the distribution.
        reinterpreted_batch_ndims: the number of dimensions.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import Independent, Normal
        >>> diagonal = Independent(Normal(pc.zeros(5, 3), pc.ones(3)), 1)
        >>> tuple(diagonal.batch_shape), tuple(diagonal.event_shape)
        ((5,), (3,))
        >>> tuple(diagonal.log_prob(pc.zeros(5, 3)).shape)
        (5,)
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        batch = base_distribution.batch_shape
        if reinterpreted_batch_ndims > len(batch):
            raise ValueError(
                f"Independent: `reinterpreted_batch_ndims` must be at most {len(batch)} for batch "
                f"shape {tuple(batch)}; got {reinterpreted_batch_ndims}"
            )
        shape = (*batch, *base_distribution.event_shape)
        ndims = reinterpreted_batch_ndims + len(base_distribution.event_shape)
        cut = len(shape) - ndims
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        inner = self._event_shape[: self.reinterpreted_batch_ndims]
        new.base_dist = self.base_dist.expand(Size((*batch_shape, *inner)))
        return new

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        own = self.base_dist.support
        ndims = self.reinterpreted_batch_ndims
        return constraints.independent(own, ndims) if ndims else own

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_last(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_last(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError(
                "Independent: the support of several dimensions together is not enumerated"
            )
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist}, {self.reinterpreted_batch_ndims})"
