"""Distributions of transformed samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from plait_core import Size, Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions.distribution import Distribution
from plait_nn.distributions.independent import Independent
from plait_nn.distributions.transforms import ComposeTransform, Transform
from plait_nn.distributions.utils import sum_last

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of ``transform(x)`` where x is drawn from a base distribution.

    ``log_prob(y)`` is the base distribution's at ``x = transform.inv(y)`` minus ``log(abs(det(dy /
    dx)))``.

    Args:
        base_distribution: the distribution of x.
        transforms: a transform, or several, the first one first.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import Normal, TransformedDistribution
        >>> from plait_nn.distributions.transforms import ExpTransform
        >>> skewed = TransformedDistribution(Normal(0.0, 1.0), ExpTransform())
        >>> skewed.log_prob(pc.tensor(1.0))
        tensor(-0.9189)
    """

    arg_constraints: ClassVar[Mapping[str, Any]] = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        steps = [transforms] if isinstance(transforms, Transform) else list(transforms)
        if not all(isinstance(each, Transform) for each in steps):
            raise ValueError(
                f"{type(self).__name__}: a Transform or a list of them is required as "
                f"`transforms`; got {transforms!r}"
            )
        self.transforms = steps
        chain = ComposeTransform(steps)
        base_shape = (*base_distribution.batch_shape, *base_distribution.event_shape)
        base_ndims = len(base_distribution.event_shape)
        if len(base_shape) < chain.domain.event_dim:
            raise ValueError(
                f"{type(self).__name__}: `base_distribution` must have at least "
                f"{chain.domain.event_dim} dimensions; got shape {base_shape}"
            )
        shape = tuple(chain.forward_shape(base_shape))
        whole = tuple(chain.inverse_shape(shape))
        if whole != base_shape:  # the transform's parameters have a larger batch shape
            base_distribution = base_distribution.expand(whole[: len(whole) - base_ndims])
        extra_dims = chain.domain.event_dim - base_ndims
        if extra_dims > 0:
            base_distribution = Independent(base_distribution, extra_dims)
        self.base_dist = base_distribution
        event_dim = max(chain.codomain.event_dim, chain.codomain.event_dim + max(0, -extra_dims))
        cut = len(shape) - event_dim
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        shape = ComposeTransform(self.transforms).inverse_shape((*batch_shape, *self._event_shape))
        inner = len(shape) - len(self.base_dist.event_shape)
        new.base_dist = self.base_dist.expand(Size(shape[:inner]))
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        own = self.transforms[-1].codomain
        ndims = len(self._event_shape) - own.event_dim
        return constraints.independent(own, ndims) if ndims > 0 else own

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        x = self.base_dist.sample(sample_shape)
        for each in self.transforms:
            x = each(x)
        return x.detach() if x.requires_grad else x

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        x = self.base_dist.rsample(sample_shape)
        for each in self.transforms:
            x = each(x)
        return x

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        event_dim = len(self._event_shape)
        total: Any = 0.0
        y = value
        for each in reversed(self.transforms):
            x = each.inv(y)
            event_dim += each.domain.event_dim - each.codomain.event_dim
            own = each.log_abs_det_jacobian(x, y)
            total = total - sum_last(own, event_dim - each.domain.event_dim)
            y = x
        own = self.base_dist.log_prob(y)
        return sum_last(own, event_dim - len(self.base_dist.event_shape)) + total  # type: ignore[no-any-return]

    def _monotonic(self, value: Tensor) -> Tensor:
        """Replace p by 1 - p where the composition of the transforms is decreasing."""
        sign: Any = 1
        for each in self.transforms:
            sign = sign * each.sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5  # type: ignore[no-any-return]

    def cdf(self, value: Tensor) -> Tensor:
        for each in reversed(self.transforms):
            value = each.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonic(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        value = self.base_dist.icdf(self._monotonic(value))
        for each in self.transforms:
            value = each(value)
        return value

    def __repr__(self) -> str:
        if self.arg_constraints:
            return super().__repr__()
        names = ", ".join(map(repr, self.transforms))
        return f"{type(self).__name__}({self.base_dist}, [{names}])"
