"""Transforms of single numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn import _operators as operators, functional as F
from plait_nn.distributions import constraints
from plait_nn.distributions._transform import Transform, independent
from plait_nn.distributions.constraints import Constraint
from plait_nn.distributions.utils import broadcast_all, sum_last

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "Fixed",
    "PowerTransform",
    "SigmoidTransform",
    "SoftplusTransform",
    "TanhTransform",
]


class Fixed(Transform):
    """A transform without parameters, which equals all others of its class."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__ = Transform.__hash__


class ExpTransform(Fixed):
    """``y = exp(x)``.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import ExpTransform
        >>> ExpTransform()(pc.tensor([0.0, 1.0]))
        tensor([1.0000, 2.7183])
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """``y = x ** exponent`` of positive numbers.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import PowerTransform
        >>> PowerTransform(2.0)(pc.tensor([1.0, 3.0]))
        tensor([1., 9.])
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return PowerTransform(self.exponent, cache_size)

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool((self.exponent == other.exponent).all())

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return pc.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


class SigmoidTransform(Fixed):
    """``y = 1 / (1 + exp(-x))``, kept between the numbers next to 0 and 1.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import SigmoidTransform
        >>> SigmoidTransform()(pc.tensor([0.0]))
        tensor([0.5000])
    """

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        information = pc.finfo(x.dtype)
        return x.sigmoid().clamp(min=information.tiny, max=1.0 - information.eps)

    def _inverse(self, y: Tensor) -> Tensor:
        information = pc.finfo(y.dtype)
        kept = y.clamp(min=information.tiny, max=1.0 - information.eps)
        return kept.log() - (-kept).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(Fixed):
    """``y = log(1 + exp(x))``.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import SoftplusTransform
        >>> SoftplusTransform()(pc.tensor([0.0]))
        tensor([0.6931])
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return operators.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -operators.softplus(-x)


class TanhTransform(Fixed):
    """``y = tanh(x)``; the logarithm of its slope is exact also far from 0.

    Near -1 and 1 the inverse loses digits: ``cache_size=1`` avoids it, as for a squashed normal
    policy.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import Normal, TransformedDistribution
        >>> from plait_nn.distributions.transforms import TanhTransform
        >>> policy = TransformedDistribution(Normal(0.0, 1.0), [TanhTransform(cache_size=1)])
        >>> action = policy.rsample()
        >>> bool(policy.log_prob(action).isfinite())
        True
    """

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2.0 * (math.log(2.0) - x - operators.softplus(-2.0 * x))


class AbsTransform(Fixed):
    """``y = abs(x)``; its inverse returns the positive one of two solutions.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import AbsTransform
        >>> AbsTransform()(pc.tensor([-2.0]))
        tensor([2.])
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """``y = loc + scale * x``.

    Args:
        loc, scale: numbers or tensors.
        event_dim: the number of last dimensions that belong to one event.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import AffineTransform
        >>> AffineTransform(1.0, 2.0)(pc.tensor([3.0]))
        tensor([7.])
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale = loc, scale
        self._event_dim = event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return independent(constraints.real, self._event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return independent(constraints.real, self._event_dim)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self._event_dim, cache_size)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        pairs = ((self.loc, other.loc), (self.scale, other.scale))
        return all(bool(pc.as_tensor(a == b).all()) for a, b in pairs)

    __hash__ = Transform.__hash__

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return 1 if self.scale > 0 else -1 if self.scale < 0 else 0

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x  # type: ignore[no-any-return]

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            own = self.scale.abs().log()
            shape = pc.broadcast_shapes(x.shape, own.shape)
            return sum_last(own.expand(*shape), self._event_dim)
        return sum_last(pc.full_like(x, math.log(abs(self.scale))), self._event_dim)

    def _shape(self, shape: Sequence[int]) -> Sequence[int]:
        given = [getattr(each, "shape", ()) for each in (self.loc, self.scale)]
        return pc.broadcast_shapes(shape, *given)

    forward_shape = _shape
    inverse_shape = _shape


class CumulativeDistributionTransform(Transform):
    """``y = distribution.cdf(x)``, which makes uniform numbers of a distribution's samples.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import CumulativeDistributionTransform, Normal
        >>> CumulativeDistributionTransform(Normal(0.0, 1.0))(pc.tensor([0.0]))
        tensor([0.5000])
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Constraint:
        return self.distribution.support  # type: ignore[no-any-return]

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)  # type: ignore[no-any-return]

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)  # type: ignore[no-any-return]
