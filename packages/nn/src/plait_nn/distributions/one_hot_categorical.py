"""One-hot vectors of a categorical distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import plait_core as pc
from plait_core import Size, Tensor
from plait_nn import _operators as operators
from plait_nn.distributions import constraints
from plait_nn.distributions.categorical import Categorical
from plait_nn.distributions.distribution import Distribution

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OverCategories(Distribution):
    """The base of distributions over vectors of categories, with their `Categorical`."""

    arg_constraints: ClassVar = Categorical.arg_constraints

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of `probs`."""
        return self._categorical.logits

    @property
    def param(self) -> Tensor:
        """The given one of `probs` and `logits`."""
        return self._categorical.param

    @property
    def param_shape(self) -> Size:
        """The shape of `probs` and `logits`."""
        return self._categorical.param_shape

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return new

    def __repr__(self) -> str:
        name = "probs" if "probs" in self._categorical.__dict__ else "logits"
        return f"{type(self).__name__}({name}: {self.param_shape})"


class OneHotCategorical(OverCategories):
    """A vector with 1 at the index of the drawn category and 0 elsewhere.

    Args:
        probs: weights in the last dimension, made to sum to 1, or else
        logits: logarithms of weights.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import OneHotCategorical
        >>> OneHotCategorical(pc.tensor([0.0, 1.0, 0.0])).sample()
        tensor([0., 1., 0.])
    """

    support = constraints.one_hot
    has_enumerate_support = True

    @property
    def mean(self) -> Tensor:
        return self._categorical.probs

    @property
    def mode(self) -> Tensor:
        return self._one_hot(self._categorical.mode)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _one_hot(self, categories: Tensor) -> Tensor:
        return operators.one_hot(categories, self._categorical._num_events).to(self.param.dtype)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self._one_hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._event_shape[0]
        values = pc.eye(n, dtype=self.param.dtype, device=self.param.device)
        result = values.reshape(n, *[1] * len(self._batch_shape), n)
        return result.expand(n, *self._batch_shape, n) if expand else result


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot vectors whose gradient is that of the probabilities (Bengio et al. 2013).

    Args:
        probs: Probabilities along the last dimension.
        logits: Logarithms of the probabilities, up to a constant; instead of `probs`.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import OneHotCategoricalStraightThrough
        >>> probs = pc.tensor([0.0, 1.0], requires_grad=True)
        >>> OneHotCategoricalStraightThrough(probs).rsample().detach()
        tensor([0., 1.])
    """

    has_rsample = True

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        probs = self.probs
        return self.sample(sample_shape) + (probs - probs.detach())
