"""`biject_to` and `transform_to`: transforms from unconstrained numbers to a constraint.

`biject_to` returns bijections, for densities; `transform_to` also returns maps with redundant
inputs, such as softmax, for optimisation.

Example:
    >>> import plait_core as pc
    >>> from plait_nn.distributions import constraints, transform_to
    >>> transform_to(constraints.simplex)(pc.zeros(2))
    tensor([0.5000, 0.5000])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plait_nn.distributions import constraints, transforms
from plait_nn.distributions.constraints import Constraint
from plait_nn.distributions.transforms import Transform

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

_Factory = Callable[[Any], Transform]


class ConstraintRegistry:
    """A registry of transforms by the type of their codomain.

    A call with a constraint returns the transform; `register` adds a type of constraint.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import biject_to, constraints
        >>> biject_to(constraints.interval(2.0, 4.0))(pc.tensor(0.0))
        tensor(3.)
    """

    def __init__(self) -> None:
        self._factories: dict[type[Constraint], _Factory] = {}

    def register(self, constraint: Any, factory: _Factory | None = None) -> Any:
        """Add a function that makes the transform for constraints of a type; also a decorator.

        Args:
            constraint: a type of constraints, or a constraint of it.
            factory: called with the constraint.

        Raises:
            TypeError: for an argument that is not a constraint.
        """
        if factory is None:
            return lambda function: self.register(constraint, function)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, Constraint)):
            raise TypeError(f"register: a type of constraints is required; got {constraint!r}")
        self._factories[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        """Return the transform whose codomain is ``constraint``.

        Raises:
            NotImplementedError: if there is none.
        """
        factory = self._factories.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"no transform reaches the constraint {constraint!r}")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*kinds: Any) -> Callable[[_Factory], _Factory]:
    def add(factory: _Factory) -> _Factory:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return add


@_both(constraints.real)
def _identity(constraint: Any) -> Transform:
    return transforms.identity_transform


@_both(constraints.positive, constraints.nonnegative)
def _above(constraint: Any) -> Transform:
    exp = transforms.ExpTransform()
    bound = constraint.lower_bound
    if isinstance(bound, (int, float)) and bound == 0:
        return exp
    return transforms.ComposeTransform([exp, transforms.AffineTransform(bound, 1)])


@_both(constraints.less_than)
def _below(constraint: Any) -> Transform:
    shift = transforms.AffineTransform(constraint.upper_bound, -1)
    return transforms.ComposeTransform([transforms.ExpTransform(), shift])


@_both(constraints.interval, constraints.half_open_interval)
def _between(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    sigmoid = transforms.SigmoidTransform()
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and (low, high) == (0, 1):
        return sigmoid
    return transforms.ComposeTransform([sigmoid, transforms.AffineTransform(low, high - low)])


def _independent(registry: ConstraintRegistry) -> _Factory:
    def make(constraint: Any) -> Transform:
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    return make


def _cat(registry: ConstraintRegistry) -> _Factory:
    def make(constraint: Any) -> Transform:
        parts = [registry(each) for each in constraint.cseq]
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    return make


def _stack(registry: ConstraintRegistry) -> _Factory:
    def make(constraint: Any) -> Transform:
        return transforms.StackTransform(
            [registry(each) for each in constraint.cseq], constraint.dim
        )

    return make


for each in (biject_to, transform_to):
    each.register(constraints.independent, _independent(each))
    each.register(constraints.cat, _cat(each))
    each.register(constraints.stack, _stack(each))
    each.register(constraints.corr_cholesky, lambda _: transforms.CorrCholeskyTransform())
biject_to.register(constraints.simplex, lambda _: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda _: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda _: transforms.LowerCholeskyTransform())
for each_matrix in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(each_matrix, lambda _: transforms.PositiveDefiniteTransform())
