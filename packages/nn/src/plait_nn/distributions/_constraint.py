"""`Constraint`, and constraints that are made of others or depend on other values."""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_core import Tensor

__all__ = [
    "Constraint",
    "Dependent",
    "DependentProperty",
    "Independent",
    "MixtureSameFamilyConstraint",
    "is_dependent",
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

    Example:
        >>> from plait_nn.distributions import Uniform, constraints
        >>> constraints.is_dependent(Uniform.support)
        True
    """

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: bool = False,
        event_dim: int = 0,
    ) -> None:
        super().__init__(fn)
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[..., Any]) -> DependentProperty:  # type: ignore[override]
        return DependentProperty(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


class Independent(Constraint):
    """A constraint that holds if ``base_constraint`` holds for all elements of the last dimensions.

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

    Example:
        >>> from plait_nn.distributions.constraints import dependent, is_dependent, real
        >>> is_dependent(real), is_dependent(dependent)
        (False, True)
    """
    if isinstance(constraint, Independent):
        return is_dependent(constraint.base_constraint)
    return isinstance(constraint, Dependent)
