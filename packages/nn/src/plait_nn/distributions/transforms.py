"""Invertible maps between spaces, with the logarithms of their Jacobian determinants.

A `TransformedDistribution` is the distribution of transformed samples; `biject_to` and
`transform_to` return a transform from unconstrained numbers to a constraint.

Example:
    >>> import plait_core as pc
    >>> from plait_nn.distributions import transforms
    >>> exp = transforms.ExpTransform()
    >>> exp.inv(exp(pc.tensor(2.0)))
    tensor(2.)
    >>> exp.log_abs_det_jacobian(pc.tensor(2.0), exp(pc.tensor(2.0)))
    tensor(2.)
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn import _operators as operators, functional as F
from plait_nn.distributions import constraints
from plait_nn.distributions.constraints import Constraint
from plait_nn.distributions.utils import (
    broadcast_all,
    sum_last,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]


class Transform:
    """A differentiable map with an inverse, or at least a pseudo-inverse.

    Subclasses define ``_call``, ``_inverse``, `log_abs_det_jacobian`, `domain`, `codomain` and
    `bijective`; and `sign` if it is monotone.

    Args:
        cache_size: with 1 the last pair of input and output is kept, so that the inverse of an
            output is exactly the input that it was computed from.

    Attributes:
        domain, codomain: the constraints that inputs and outputs satisfy.
        bijective: whether ``inv(self(x))`` is x and ``self(inv(y))`` is y.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import Transform, constraints
        >>> class Cube(Transform):
        ...     domain = codomain = constraints.real
        ...     bijective, sign = True, 1
        ...
        ...     def _call(self, x):
        ...         return x**3
        ...
        ...     def _inverse(self, y):
        ...         return y.sign() * y.abs() ** (1 / 3)
        ...
        ...     def log_abs_det_jacobian(self, x, y):
        ...         return (3 * x * x).log()
        >>> Cube()(pc.tensor(2.0)), Cube().inv(pc.tensor(8.0))
        (tensor(8.), tensor(2.))
    """

    bijective: bool = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError(f"{type(self).__name__}: `cache_size` must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Any = None  # the inverse, after its first use
        # the last argument and its result; transforms of other packages read PyTorch's name
        self._cached_x_y: tuple[Tensor | None, Tensor | None] = (None, None)
        super().__init__()  # of another base class, often a module

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None}

    @property
    def event_dim(self) -> int:
        """The number of last dimensions that belong to one event."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError(
                f"{type(self).__name__}: the transform changes the number of dimensions of an event"
            )
        return self.domain.event_dim  # type: ignore[no-any-return]

    @property
    def inv(self) -> Transform:
        """The inverse, a transform itself: ``t.inv.inv is t``."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv  # type: ignore[no-any-return]

    @property
    def sign(self) -> Any:
        """1 where it is increasing, -1 where it is decreasing."""
        raise NotImplementedError(f"{type(self).__name__} has no `sign`: it is not monotone")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the transform with another ``cache_size``."""
        if self._cache_size == cache_size:
            return self
        clone = copy.copy(self)
        clone._cache_size, clone._inv, clone._cached_x_y = cache_size, None, (None, None)
        return clone

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = object.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        """Map ``x``."""
        if self._cache_size == 0:
            return self._call(x)
        before, after = self._cached_x_y
        if after is not None and before is x:
            return after
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._inverse(y)
        before, after = self._cached_x_y
        if before is not None and after is y:
            return before
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no `_call`")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no `_inverse`")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return ``log(abs(det(dy / dx)))`` of an input and its output.

        Args:
            x: The argument.
            y: The value of the transform at x.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `log_abs_det_jacobian`")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the shape of the output for the shape of an input.

        Args:
            shape: The shape of x.
        """
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the shape of the input for the shape of an output.

        Args:
            shape: The shape of y.
        """
        return shape


class _InverseTransform(Transform):
    """The inverse of another transform."""

    _inv: Transform

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._inv = transform

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return self._inv.domain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self._inv.bijective

    @property
    def sign(self) -> Any:
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = Transform.__hash__

    def __repr__(self) -> str:
        return f"{self._inv!r}.inv"

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def _inv_call(self, y: Tensor) -> Tensor:
        return self._inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._inv.forward_shape(shape)


def independent(constraint: Any, ndims: int) -> Any:
    """Return the constraint with a number of batch dimensions made part of the event."""
    return constraints.independent(constraint, ndims) if ndims > 0 else constraint


class ComposeTransform(Transform):
    """One transform after the other.

    Args:
        parts: The transforms, the first one first.
        cache_size: 1 keeps the last pair of values, so that the inverse of a result is exact; 0
            keeps none.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import transforms as t
        >>> chain = t.ComposeTransform([t.AffineTransform(0.0, 2.0), t.ExpTransform()])
        >>> chain.inv(chain(pc.tensor(3.0)))
        tensor(3.)
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = Transform.__hash__

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        ndims = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            own = part.domain.event_dim
            ndims = max(ndims + own - part.codomain.event_dim, own)
        first = self.parts[0].domain
        return independent(first, ndims - first.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        ndims = self.parts[0].domain.event_dim
        for part in self.parts:
            own = part.codomain.event_dim
            ndims = max(ndims + own - part.domain.event_dim, own)
        last = self.parts[-1].codomain
        return independent(last, ndims - last.event_dim)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        result: Any = 1
        for part in self.parts:
            result = result * part.sign
        return result

    @property
    def inv(self) -> Transform:
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv  # type: ignore[no-any-return]

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inv_call(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return pc.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        total: Any = 0
        event_dim = self.domain.event_dim
        for part, before, after in zip(self.parts, values[:-1], values[1:], strict=True):
            own = part.log_abs_det_jacobian(before, after)
            total = total + sum_last(own, event_dim - part.domain.event_dim)
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return total  # type: ignore[no-any-return]

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        inner = ",\n    ".join(repr(part) for part in self.parts)
        return f"ComposeTransform([\n    {inner}\n])"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last batch dimensions belong to the event: jacobians are summed there.

    Args:
        base_transform: The transform.
        reinterpreted_batch_ndims: How many of the last dimensions become dimensions of an event.
        cache_size: 1 keeps the last pair of values, so that the inverse of a result is exact; 0
            keeps none.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import ExpTransform, IndependentTransform
        >>> x = pc.tensor([[1.0, 2.0], [0.0, 1.0]])
        >>> rows = IndependentTransform(ExpTransform(), 1)
        >>> rows.log_abs_det_jacobian(x, rows(x))
        tensor([3., 1.])
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Transform:
        ndims = self.reinterpreted_batch_ndims
        same = self._cache_size == cache_size
        return self if same else IndependentTransform(self.base_transform, ndims, cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        if x.ndim < self.domain.event_dim:
            raise ValueError(
                f"IndependentTransform: an input of at least {self.domain.event_dim} dimensions "
                f"is required; got shape {tuple(x.shape)}"
            )
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        own = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_last(own, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """A transform that reshapes events.

    Args:
        in_shape: Shape of an event of the input.
        out_shape: Shape of an event of the output.
        cache_size: 1 keeps the last pair of values, so that the inverse of a result is exact; 0
            keeps none.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import ReshapeTransform
        >>> tuple(ReshapeTransform((2, 3), (6,))(pc.zeros(5, 2, 3)).shape)
        (5, 6)
    """

    bijective = True

    def __init__(
        self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError(
                "ReshapeTransform: `in_shape` and `out_shape` must have the same number of "
                "elements; "
                f"got {self.in_shape} and {self.out_shape}"
            )

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[: x.ndim - len(self.in_shape)], *self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(*y.shape[: y.ndim - len(self.out_shape)], *self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.ndim - len(self.in_shape)])

    def _other(self, shape: Sequence[int], end: Any, other_end: Any) -> Sequence[int]:
        cut = len(shape) - len(end)
        if cut < 0 or tuple(shape[cut:]) != end:
            raise ValueError(f"ReshapeTransform: a shape that ends in {end} is required")
        return (*shape[:cut], *other_end)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._other(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._other(shape, self.out_shape, self.in_shape)


class Fixed(Transform):
    """A transform without parameters, which equals all others of its class."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__ = Transform.__hash__


class ExpTransform(Fixed):
    """``y = exp(x)``.

    Args:
        cache_size: 1 keeps the last pair of values, so that the inverse of a result is exact; 0
            keeps none.

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

    Args:
        exponent: The exponent.
        cache_size: 1 keeps the last pair of values, so that the inverse of a result is exact; 0
            keeps none.

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

    Args:
        cache_size: 1 keeps the last pair of values, so that the inverse of a result is exact; 0
            keeps none.

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
        inner = y.clamp(min=information.tiny, max=1.0 - information.eps)
        return inner.log() - (-inner).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(Fixed):
    """``y = log(1 + exp(x))``.

    Args:
        cache_size: 1 keeps the last pair of values, so that the inverse of a result is exact; 0
            keeps none.

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

    Args:
        cache_size: 1 keeps the last pair of values, so that the inverse of a result is exact; 0
            keeps none.

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
        cache_size: 1 keeps the last pair of values, so that the inverse of a result is exact; 0
            keeps none.

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
        shapes = [getattr(each, "shape", ()) for each in (self.loc, self.scale)]
        return pc.broadcast_shapes(shape, *shapes)

    forward_shape = _shape
    inverse_shape = _shape


class CumulativeDistributionTransform(Transform):
    """``y = distribution.cdf(x)``, which makes uniform numbers of a distribution's samples.

    Args:
        distribution: The distribution whose function is taken.
        cache_size: 1 keeps the last pair of values, so that the inverse of a result is exact; 0
            keeps none.

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

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)  # type: ignore[no-any-return]

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)  # type: ignore[no-any-return]


class SoftmaxTransform(Fixed):
    """``y = softmax(x)`` over the last dimension; its inverse returns ``log(y)``, one of many
    solutions.

    Args:
        cache_size: 1 keeps the last pair of values, so that the inverse of a result is exact; 0
            keeps none.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import SoftmaxTransform
        >>> SoftmaxTransform()(pc.tensor([1.0, 1.0]))
        tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        _at_least(self, shape, 1)
        return shape

    inverse_shape = forward_shape


def _at_least(transform: Transform, shape: Sequence[int], ndim: int) -> None:
    if len(shape) < ndim:
        raise ValueError(
            f"{type(transform).__name__}: a shape of at least {ndim} dimensions is required; "
            f"got {tuple(shape)}"
        )


class StickBreakingTransform(Fixed):
    """A map from n - 1 numbers to n positive shares that sum to 1, by stick breaking.

    Args:
        cache_size: 1 keeps the last pair of values, so that the inverse of a result is exact; 0
            keeps none.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions.transforms import StickBreakingTransform
        >>> StickBreakingTransform()(pc.zeros(2))
        tensor([0.3333, 0.3333, 0.3333])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _pieces(self, x: Tensor) -> Tensor:
        n = x.shape[-1]
        left = pc.arange(n, 0, -1, dtype=x.dtype, device=x.device)
        return x - left.log()

    def _call(self, x: Tensor) -> Tensor:
        shares = self._pieces(x).sigmoid()
        rest = (1 - shares).cumprod(-1)
        ones = x.new_ones((*x.shape[:-1], 1))
        return pc.cat([shares, ones], -1) * pc.cat([ones, rest], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        short = y.narrow(-1, 0, y.shape[-1] - 1)
        n = short.shape[-1]
        left = pc.arange(n, 0, -1, dtype=y.dtype, device=y.device)
        rest = (1 - short.cumsum(-1)).clamp(min=pc.finfo(y.dtype).tiny)
        return short.log() - rest.log() + left.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pieces = self._pieces(x)
        shares = y.narrow(-1, 0, y.shape[-1] - 1)
        return (-pieces + F.logsigmoid(pieces) + shares.log()).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        _at_least(self, shape, 1)
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        _at_least(self, shape, 1)
        return (*shape[:-1], shape[-1] - 1)


def _with_diagonal(matrix: Tensor, diagonal: Tensor) -> Tensor:
    return matrix.tril(-1) + diagonal.diag_embed()


class LowerCholeskyTransform(Fixed):
    """A map to lower triangular matrices with a positive diagonal: exp of the diagonal, 0 above it.

    Args:
        cache_size: 1 keeps the last pair of values, so that the inverse of a result is exact; 0
            keeps none.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import LowerCholeskyTransform
        >>> LowerCholeskyTransform()(pc.tensor([[0.0, 5.0], [2.0, 0.0]]))
        tensor([[1., 0.],
                [2., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return _with_diagonal(x, x.diagonal(dim1=-2, dim2=-1).exp())

    def _inverse(self, y: Tensor) -> Tensor:
        return _with_diagonal(y, y.diagonal(dim1=-2, dim2=-1).log())


class PositiveDefiniteTransform(Fixed):
    """A map to positive definite matrices: ``L @ L.T`` with L of `LowerCholeskyTransform`.

    Args:
        cache_size: 1 keeps the last pair of values, so that the inverse of a result is exact; 0
            keeps none.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import PositiveDefiniteTransform
        >>> PositiveDefiniteTransform()(pc.tensor([[0.0, 5.0], [2.0, 0.0]]))
        tensor([[1., 2.],
                [2., 5.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(pc.linalg.cholesky(y))


class _Several(Transform):
    """A transform for each part of a tensor along ``dim``."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms = [each.with_cache(cache_size) if cache_size else each for each in tseq]
        self.dim = dim

    def with_cache(self, cache_size: int = 1) -> Transform:
        clone: Any = super().with_cache(cache_size)
        if clone is not self:
            clone.transforms = [each.with_cache(cache_size) for each in self.transforms]
        return clone  # type: ignore[no-any-return]

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(each.bijective for each in self.transforms)

    def _split(self, x: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError

    def _join(self, parts: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _call(self, x: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._split(x), strict=True)
        return self._join([each(part) for each, part in pairs])

    def _inverse(self, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._split(y), strict=True)
        return self._join([each.inv(part) for each, part in pairs])


class CatTransform(_Several):
    """Transforms of consecutive slices along ``dim``, of the given lengths.

    Args:
        tseq: The transforms.
        dim: The dimension of the parts.
        lengths: Length of each part; None: 1 each.
        cache_size: 1 keeps the last pair of values, so that the inverse of a result is exact; 0
            keeps none.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import transforms as t
        >>> both = t.CatTransform([t.ExpTransform(), t.AbsTransform()], lengths=[1, 2])
        >>> both(pc.tensor([0.0, -1.0, -2.0]))
        tensor([1., 1., 2.])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ValueError(
                f"CatTransform: a length for each transform is required; "
                f"got {len(self.lengths)} for {len(self.transforms)}"
            )

    @property
    def event_dim(self) -> int:
        return max(each.event_dim for each in self.transforms)

    @property
    def length(self) -> int:
        """The size along ``dim``."""
        return sum(self.lengths)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([each.domain for each in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([each.codomain for each in self.transforms], self.dim, self.lengths)

    def _split(self, x: Tensor) -> Sequence[Tensor]:
        if x.shape[self.dim] != self.length:
            raise ValueError(
                f"CatTransform: size {self.length} in dimension {self.dim} is required; "
                f"got shape {tuple(x.shape)}"
            )
        return x.split(self.lengths, self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        return pc.cat(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        result = []
        parts = zip(self.transforms, self._split(x), self._split(y), strict=True)
        for each, before, after in parts:
            own = each.log_abs_det_jacobian(before, after)
            gap = self.event_dim - each.event_dim
            result.append(own.sum(tuple(range(-gap, 0))) if gap else own)
        dim = self.dim - x.ndim if self.dim >= 0 else self.dim
        dim += self.event_dim
        return pc.cat(result, dim) if dim < 0 else sum(result[1:], result[0])


class StackTransform(_Several):
    """A transform for each index along ``dim``.

    Args:
        tseq: The transforms.
        dim: The dimension of the parts.
        cache_size: 1 keeps the last pair of values, so that the inverse of a result is exact; 0
            keeps none.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import AbsTransform, ExpTransform, StackTransform
        >>> StackTransform([ExpTransform(), AbsTransform()])(pc.tensor([0.0, -3.0]))
        tensor([1., 3.])
    """

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([each.domain for each in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([each.codomain for each in self.transforms], self.dim)

    def _split(self, x: Tensor) -> Sequence[Tensor]:
        if x.shape[self.dim] != len(self.transforms):
            raise ValueError(
                f"StackTransform: size {len(self.transforms)} in dimension {self.dim} is "
                f"required; got shape {tuple(x.shape)}"
            )
        return x.unbind(self.dim)

    def _join(self, parts: list[Tensor]) -> Tensor:
        return pc.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._split(x), self._split(y), strict=True)
        result = [each.log_abs_det_jacobian(before, after) for each, before, after in parts]
        return pc.stack(result, self.dim)


class CorrCholeskyTransform(Fixed):
    r"""From n (n - 1) / 2 numbers to the Cholesky factor of an n x n correlation matrix.

    With :math:`r = \tanh x`, row by row below the diagonal, and 1 on it:
    :math:`y_{ij} = r_{ij} \prod_{k < j} \sqrt{1 - r_{ik}^2}`. The rows have length 1.

    Args:
        cache_size: 1 keeps the last pair of values, so that the inverse of a result is exact; 0
            keeps none.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import CorrCholeskyTransform
        >>> CorrCholeskyTransform()(pc.tensor([0.0]))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = pc.finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.tanh().clamp(-1 + eps, 1 - eps), diag=-1)
        left = (1 - r * r).sqrt().cumprod(-1)
        r = r + pc.eye(r.shape[-1], dtype=r.dtype, device=r.device)
        first = pc.ones_like(left[..., :1])
        return r * pc.cat([first, left[..., :-1]], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        first = pc.ones_like(y[..., :1])
        left = pc.cat([first, (1 - (y * y).cumsum(-1))[..., :-1]], -1)
        return (tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(left, -1).sqrt()).atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = 1 - (y * y).cumsum(-1)
        # the last element of a row makes its length 1
        sticks = 0.5 * tril_matrix_to_vec(left, -2).log().sum(-1) if y.shape[-1] > 2 else 0.0
        softplus = (-2 * x).logaddexp(pc.zeros_like(x))
        return sticks - 2 * (x + softplus - math.log(2.0)).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        count = shape[-1] if len(shape) else 0
        size = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if not len(shape) or size * (size - 1) // 2 != count:
            raise ValueError(
                "CorrCholeskyTransform: n (n - 1) / 2 elements in the last dimension are "
                f"required; got shape {tuple(shape)}"
            )
        return (*shape[:-1], size, size)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        if len(shape) < 2 or shape[-1] != shape[-2]:
            raise ValueError(
                f"CorrCholeskyTransform: square matrices are required; got shape {tuple(shape)}"
            )
        size = shape[-1]
        return (*shape[:-2], size * (size - 1) // 2)
