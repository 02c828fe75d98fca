"""`Distribution`, the base of all distributions."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from plait_abi.arguments import name_constructor
from plait_abi.frames import warn
from plait_core import Size, Tensor
from plait_nn._all_samples import all_samples
from plait_nn.distributions import constraints
from plait_nn.distributions.utils import lazy_property

__all__ = ["Distribution"]

_Self = TypeVar("_Self", bound="Distribution")


class Distribution:
    """A batch of probability distributions over events.

    A sample has the shape ``sample_shape + batch_shape + event_shape``: ``sample_shape`` is an
    argument, each element of the batch has its own parameters, and the elements of one event depend
    on each other. `log_prob` of a sample has the shape ``sample_shape + batch_shape``.

    Args:
        batch_shape, event_shape: the shapes of the batch and of an event.
        validate_args: whether parameters and values are checked against `arg_constraints` and
            `support`; None: the value of `set_default_validate_args` (True by default, unless
            Python runs with ``-O``), for tensors on the CPU alone: to read the elements of another
            device, the host would have to wait for it.

    Attributes:
        arg_constraints: the constraint on each parameter.
        has_rsample: whether samples have gradients for the parameters.
        has_enumerate_support: whether `enumerate_support` lists the support.

    Raises:
        ValueError: for parameters outside their constraints.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import Normal
        >>> normal = Normal(pc.zeros(3), pc.ones(3))
        >>> tuple(normal.batch_shape), tuple(normal.sample((5,)).shape)
        ((3,), (5, 3))
        >>> normal.log_prob(pc.zeros(3))
        tensor([-0.9189, -0.9189, -0.9189])
    """

    has_rsample: bool = False
    has_enumerate_support: bool = False
    arg_constraints: ClassVar[Mapping[str, Any]] = {}
    _validate_args: bool = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions check their arguments if `validate_args` is None."""
        if not isinstance(value, bool):
            raise ValueError(f"set_default_validate_args: a bool is required; got {value!r}")
        Distribution._validate_args = value

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in cls.__dict__ and cls.__module__.startswith("plait_nn."):
            cls.__init__ = name_constructor(cls, cls.__init__)  # type: ignore[method-assign]

    def __init__(
        self,
        batch_shape: Sequence[int] = (),
        event_shape: Sequence[int] = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self) -> None:
        for name, constraint in self.arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(
                getattr(type(self), name, None), lazy_property
            ):
                continue  # it is computed from a parameter that was given
            value = getattr(self, name)
            if self._reads(value) and not bool(all_samples(constraint.check(value)).all()):
                raise ValueError(
                    f"{type(self).__name__}: `{name}` must satisfy {constraint}; "
                    f"got shape {tuple(value.shape)}: {all_samples(value.detach())}"
                )

    def _reads(self, *values: Any) -> bool:
        """Return whether elements are checked: off the CPU only where ``validate_args=True`` was
        given.
        """
        explicit = self.__dict__.get("_validate_args", False)
        return explicit or all(getattr(value, "is_cpu", True) for value in values)

    @property
    def batch_shape(self) -> Size:
        """The shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample without batching."""
        return self._event_shape

    @property
    def support(self) -> Any:
        """The constraint that samples satisfy."""
        raise NotImplementedError(f"{type(self).__name__} has no `support`")

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError(f"{type(self).__name__} has no `mean`")

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        raise NotImplementedError(f"{type(self).__name__} has no `mode`")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError(f"{type(self).__name__} has no `variance`")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation: the root of `variance`."""
        return self.variance.sqrt()

    def expand(self: _Self, batch_shape: Sequence[int], _instance: Any = None) -> _Self:
        """Return the distribution with its parameters expanded to ``batch_shape``, not copied.

        Raises:
            NotImplementedError: for a class derived from one of these with its own `__init__`,
                which may set what is expanded in another way; it must define `expand`.

        Example:
            >>> import plait_core as pc
            >>> from plait_nn.distributions import Normal
            >>> tuple(Normal(pc.zeros(3), 1.0).expand((2, 3)).loc.shape)
            (2, 3)
        """
        if _instance is None:
            self._refuse_unknown_attributes()
        new = self.__new__(type(self)) if _instance is None else _instance
        new.__dict__.update(self.__dict__)
        for name, constraint in self._all_constraints().items():
            value = self.__dict__.get(name)
            if isinstance(value, Tensor):
                event = value.shape[value.ndim - constraint.event_dim :]
                new.__dict__[name] = value.expand(*batch_shape, *event)
        new._batch_shape = Size(batch_shape)
        return new

    def _refuse_unknown_attributes(self) -> None:
        """Raise NotImplementedError if an `__init__` outside of this package has set attributes."""
        init = inspect.unwrap(type(self).__init__)
        if init.__globals__["__name__"].partition(".")[0] != __name__.partition(".")[0]:
            raise NotImplementedError(
                f"{type(self).__name__}.expand: a subclass with its own `__init__` must define its "
                "own `expand`"
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """Return the instance that an `expand` fills, a new one without attributes by default.

        It is a name of PyTorch that `expand` of others' distributions calls with its own class.
        """
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"{type(self).__name__}.expand: a subclass of {cls.__name__} with its own "
                "`__init__` must define its own `expand`"
            )
        return self.__new__(type(self))

    def _all_constraints(self) -> dict[str, Any]:
        """Return the constraints of the class and its base classes, whose parameters an instance
        may have.
        """
        result: dict[str, Any] = {}
        for cls in reversed(type(self).__mro__):
            own = cls.__dict__.get("arg_constraints", {})
            result.update(own.__get__(self) if isinstance(own, property) else own)
        return result

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw samples of ``sample_shape + batch_shape + event_shape`` without gradients."""
        return self.rsample(sample_shape).detach()

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw samples that have gradients for the parameters (reparameterised).

        Args:
            sample_shape: The shape of the samples; it precedes that of the distribution.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `rsample`")

    def sample_n(self, n: int) -> Tensor:
        """Draw ``sample((n,))``; an old name, deprecated in PyTorch."""
        warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning)
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the density, or probability, of each event of ``value``."""
        raise NotImplementedError(f"{type(self).__name__} has no `log_prob`")

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of at most ``value``."""
        raise NotImplementedError(f"{type(self).__name__} has no `cdf`")

    def icdf(self, value: Tensor) -> Tensor:
        """Return the number whose `cdf` is ``value``."""
        raise NotImplementedError(f"{type(self).__name__} has no `icdf`")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """List the support along a new first dimension; ``expand``: for each batch element."""
        raise NotImplementedError(f"{type(self).__name__} has no `enumerate_support`")

    def entropy(self) -> Tensor:
        """Return the entropy, of the batch's shape, in nats."""
        raise NotImplementedError(f"{type(self).__name__} has no `entropy`")

    def perplexity(self) -> Tensor:
        """Return ``exp(entropy)``."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> tuple[int, ...]:
        return (*sample_shape, *self._batch_shape, *self._event_shape)

    def _enumerated(self, values: Tensor, expand: bool) -> Tensor:
        """Return ``values`` along a new first dimension before the batch."""
        reshaped = values.reshape(-1, *[1] * len(self._batch_shape))
        return reshaped.expand(-1, *self._batch_shape) if expand else reshaped

    def _check(self, value: Any) -> None:
        """Raise for a value that no sample can be, if values are checked."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Any) -> None:
        name = type(self).__name__
        if not isinstance(value, Tensor):
            raise ValueError(f"{name}: a Tensor is required as `value`; got {type(value).__name__}")
        shape, expected = tuple(value.shape), (*self._batch_shape, *self._event_shape)
        ends = len(shape) - len(self._event_shape)
        if ends < 0 or shape[ends:] != tuple(self._event_shape):
            raise ValueError(
                f"{name}: `value` must end in the event's shape {tuple(self._event_shape)}; "
                f"got shape {shape}"
            )
        for i, j in zip(reversed(shape), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"{name}: `value` must broadcast with batch and event shape {expected}; "
                    f"got shape {shape}"
                )
        try:
            support = self.support
        except NotImplementedError:
            return
        if constraints.is_dependent(support) or not self._reads(value):
            return
        if not bool(all_samples(support.check(value)).all()):
            raise ValueError(
                f"{name}: `value` must lie within the support {support}; "
                f"got {all_samples(value.detach())}"
            )

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        parts = []
        for name in names:
            value = self.__dict__[name]
            scalar = not isinstance(value, Tensor) or value.ndim == 0
            parts.append(f"{name}: {float(value) if scalar else value.shape}")
        return f"{type(self).__name__}({', '.join(parts)})"
