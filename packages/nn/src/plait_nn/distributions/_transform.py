"""`Transform`, and transforms made of others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions.utils import sum_last

__all__ = [
    "ComposeTransform",
    "IndependentTransform",
    "ReshapeTransform",
    "Transform",
    "identity_transform",
    "independent",
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
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self).__name__} has no `with_cache`")

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
        """Return ``log(abs(det(dy / dx)))`` of an input and its output."""
        raise NotImplementedError(f"{type(self).__name__} has no `log_abs_det_jacobian`")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the shape of the output for the shape of an input."""
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """Return the shape of the input for the shape of an output."""
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
        if self._cache_size == cache_size:
            return self
        ndims = self.reinterpreted_batch_ndims
        return IndependentTransform(self.base_transform, ndims, cache_size)

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
                "ReshapeTransform: shapes of as many elements are required; "
                f"got {self.in_shape} and {self.out_shape}"
            )

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size)

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

    def _other(self, shape: Sequence[int], ours: Any, others: Any) -> Sequence[int]:
        cut = len(shape) - len(ours)
        if cut < 0 or tuple(shape[cut:]) != ours:
            raise ValueError(f"ReshapeTransform: a shape that ends in {ours} is required")
        return (*shape[:cut], *others)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._other(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._other(shape, self.out_shape, self.in_shape)
