"""Constraints on the parameters and the support of distributions.

``constraint.check(value)`` returns a boolean tensor; the last `event_dim` dimensions of the value
count as one.

Example:
    >>> import plait_core as pc
    >>> from plait_nn.distributions import constraints
    >>> constraints.positive.check(pc.tensor([-1.0, 2.0]))
    tensor([False,  True])
    >>> constraints.simplex.check(pc.tensor([0.25, 0.75]))
    tensor(True)
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import plait_core as pc
from plait_core import Tensor
from plait_nn._all_samples import all_samples

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A region of values.

    Attributes:
        is_discrete: whether it allows whole numbers only.
        event_dim: the number of last dimensions that form one event for `check`.

    Example:
        >>> from plait_nn.distributions.constraints import Constraint
        >>> class Even(Constraint):
        ...     is_discrete = True
        ...
        ...     def check(self, value):
        ...         return value % 2 == 0
        >>> Even()
        Even()
    """

    is_discrete: bool = False
    event_dim: int = 0

    def check(self, value: Tensor) -> Tensor:
        """Return a boolean tensor: which events of ``value`` satisfy the constraint."""
        raise NotImplementedError

    def _settings(self) -> dict[str, Any]:
        return {}

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in self._settings().items())
        return f"{type(self).__name__.lstrip('_')}({settings})"


class Dependent(Constraint):
    """A constraint that depends on other variables, so that it cannot be checked.

    Args:
        is_discrete: Whether values are discrete.
        event_dim: Number of dimensions of an event.

    Example:
        >>> from plait_nn.distributions import constraints
        >>> constraints.dependent(is_discrete=True, event_dim=1).event_dim
        1
    """

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, *, is_discrete: bool = False, event_dim: int = 0) -> Dependent:
        return Dependent(is_discrete=is_discrete, event_dim=event_dim)

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("check: a constraint that depends on other variables cannot be checked")


class DependentProperty(property, Dependent):
    """A property that is `dependent` as an attribute of the class.

    Args:
        fn: The function of the property.
        is_discrete: Whether values are discrete.
        event_dim: Number of dimensions of an event.

    Example:
        >>> from plait_nn.distributions import Uniform, constraints
        >>> constraints.is_dependent(Uniform.support)
        True
    """

    def __init__(
        self, fn: Callable[..., Any] | None = None, *, is_discrete: bool = False, event_dim: int = 0
    ) -> None:
        super().__init__(fn)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[..., Any]) -> DependentProperty:  # type: ignore[override]
        return DependentProperty(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


class Independent(Constraint):
    """A constraint that holds if ``base_constraint`` holds for all elements of the last dimensions.

    Args:
        base_constraint: The constraint of the components.
        reinterpreted_batch_ndims: How many of the last dimensions become dimensions of an event.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions.constraints import independent, positive
        >>> independent(positive, 1).check(pc.tensor([[1.0, -1.0], [1.0, 2.0]]))
        tensor([False,  True])
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value)
        ndims = self.reinterpreted_batch_ndims
        if result.ndim < ndims:
            raise ValueError(
                f"check: a value of at least {self.event_dim} dimensions is required; "
                f"got shape {tuple(value.shape)}"
            )
        return result.flatten(-ndims).all(-1) if ndims else result

    def _settings(self) -> dict[str, Any]:
        return {
            "base_constraint": self.base_constraint,
            "reinterpreted_batch_ndims": self.reinterpreted_batch_ndims,
        }


class MixtureSameFamilyConstraint(Constraint):
    """The constraint on samples of a mixture, checked for all components at once.

    Args:
        base_constraint: The constraint of the components.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions.constraints import MixtureSameFamilyConstraint, positive
        >>> MixtureSameFamilyConstraint(positive).check(pc.tensor([2.0, -1.0]))
        tensor([ True, False])
    """

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint
        self.is_discrete, self.event_dim = base_constraint.is_discrete, base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return result.all(-1)

    def _settings(self) -> dict[str, Any]:
        return {"base_constraint": self.base_constraint}


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on other variables.

    Args:
        constraint: The constraint.

    Example:
        >>> from plait_nn.distributions.constraints import dependent, is_dependent, real
        >>> is_dependent(real), is_dependent(dependent)
        (False, True)
    """
    if isinstance(constraint, Independent):
        return is_dependent(constraint.base_constraint)
    return isinstance(constraint, Dependent)


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _Bounded(Constraint):
    """Between bounds that may be tensors."""

    lower_bound: Any
    upper_bound: Any

    def _settings(self) -> dict[str, Any]:
        names = [name for name in ("lower_bound", "upper_bound") if name in self.__dict__]
        return {name: getattr(self, name) for name in names}


class _IntegerInterval(_Bounded):
    """The whole numbers from ``lower_bound`` to ``upper_bound``, both included.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import constraints
        >>> constraints.integer_interval(1, 3).check(pc.tensor([0, 1, 3]))
        tensor([False,  True,  True])
    """

    is_discrete = True

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Bounded):
    is_discrete = True

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value  # false for nan


class _GreaterThan(_Bounded):
    """Numbers above ``lower_bound``.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import constraints
        >>> constraints.greater_than(1.0).check(pc.tensor([1.0, 2.0]))
        tensor([False,  True])
    """

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class _GreaterThanEq(_Bounded):
    """Numbers from ``lower_bound`` on.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import constraints
        >>> constraints.greater_than_eq(1.0).check(pc.tensor([1.0, 0.5]))
        tensor([ True, False])
    """

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class _LessThan(_Bounded):
    """Numbers below ``upper_bound``.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import constraints
        >>> constraints.less_than(1.0).check(pc.tensor([1.0, 0.5]))
        tensor([False,  True])
    """

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Bounded):
    """Numbers from ``lower_bound`` to ``upper_bound``, both included.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import constraints
        >>> constraints.interval(0.0, 1.0).check(pc.tensor([1.0, 1.5]))
        tensor([ True, False])
    """

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Bounded):
    """Numbers from ``lower_bound`` to below ``upper_bound``.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import constraints
        >>> constraints.half_open_interval(0.0, 1.0).check(pc.tensor([0.0, 1.0]))
        tensor([ True, False])
    """

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        half = pc.is_floating_point(value) and pc.finfo(value.dtype).eps > 1e-4
        tolerance = 4 * pc.finfo(value.dtype).eps if half else 1e-6
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < tolerance)


class _Multinomial(Constraint):
    """Counts in the last dimension whose sum is at most ``upper_bound``.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import constraints
        >>> constraints.multinomial(3).check(pc.tensor([[1, 2], [2, 2]]))
        tensor([ True, False])
    """

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)

    def _settings(self) -> dict[str, Any]:
        return {"upper_bound": self.upper_bound}


def _whole(truths: Tensor) -> Tensor:
    """Return whether all elements of each matrix are true."""
    return truths.flatten(-2).all(-1)


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return _whole(value.tril() == value)


class _LowerCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return _whole(value.tril() == value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        near = 10 * value.shape[-1] * pc.finfo(value.dtype).eps  # tolerance for rounding errors
        lengths = pc.linalg.vector_norm(value.detach(), dim=-1)
        return lower_cholesky.check(value) & ((lengths - 1).abs() <= near).all(-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        result = value.shape[-2] == value.shape[-1]
        return pc.full(value.shape[:-2], result, dtype=pc.bool_, device=value.device)


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return _whole(pc.isclose(value, value.mT, atol=1e-6))


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not bool(all_samples(symmetric).all()):
            return symmetric
        return (pc.linalg.eigvalsh(value) >= 0).all(-1)


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if not bool(all_samples(symmetric).all()):
            return symmetric
        return pc.linalg.cholesky_ex(value.detach())[1] == 0


class _Several(Constraint):
    """A constraint for each part of a value along ``dim``."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        if not all(isinstance(each, Constraint) for each in cseq):
            raise TypeError(f"{type(self).__name__.lstrip('_')}: constraints are required")
        self.cseq, self.dim = list(cseq), dim
        self.is_discrete = any(each.is_discrete for each in self.cseq)
        self.event_dim = max(each.event_dim for each in self.cseq)

    def _settings(self) -> dict[str, Any]:
        return {"cseq": self.cseq, "dim": self.dim}


class _Cat(_Several):
    """A constraint for each of the slices along ``dim``, of the given lengths.

    Args:
        cseq: The constraints of the parts.
        lengths: Length of each part; None: 1 each.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions.constraints import cat, positive, real
        >>> cat([positive, real], lengths=[1, 2]).check(pc.tensor([-1.0, -1.0, 0.0]))
        tensor([False,  True,  True])
    """

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise ValueError(
                f"cat: a length for each constraint is required; got {len(self.lengths)} "
                f"for {len(self.cseq)}"
            )

    def check(self, value: Tensor) -> Tensor:
        parts = value.split(self.lengths, self.dim)
        result = [each.check(part) for each, part in zip(self.cseq, parts, strict=True)]
        return pc.cat(result, self.dim)


class _Stack(_Several):
    """A constraint for each index along ``dim``.

    Args:
        cseq: The constraints of the parts.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions.constraints import positive, real, stack
        >>> stack([positive, real]).check(pc.tensor([-1.0, -1.0]))
        tensor([False,  True])
    """

    def check(self, value: Tensor) -> Tensor:
        parts = value.unbind(self.dim)
        if len(parts) != len(self.cseq):
            raise ValueError(
                f"stack: size {len(self.cseq)} in dimension {self.dim} is required; "
                f"got shape {tuple(value.shape)}"
            )
        result = [each.check(part) for each, part in zip(self.cseq, parts, strict=True)]
        return pc.stack(result, self.dim)


dependent = Dependent()
dependent_property = DependentProperty
independent = Independent
boolean = _Boolean()
one_hot = _OneHot()
integer_interval = _IntegerInterval
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
real = _Real()
real_vector = Independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
multinomial = _Multinomial
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
