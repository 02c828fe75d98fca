"""The categorical distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import plait_core as pc
from plait_core import Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions._location_scale import ProbsOrLogits
from plait_nn.distributions.distribution import Distribution
from plait_nn.distributions.utils import lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits, Distribution):
    """One of the whole numbers from 0 to n - 1, with the probabilities in the last dimension.

    Args:
        probs: weights, which are normalised, or else
        logits: logarithms of weights.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import Categorical
        >>> choice = Categorical(pc.tensor([1.0, 3.0]))
        >>> choice.probs, choice.log_prob(pc.tensor(0)).exp()
        (tensor([0.2500, 0.7500]), tensor(0.2500))
    """

    arg_constraints: ClassVar = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        parameter: Tensor = self._require_one(probs, logits)
        if parameter.ndim < 1:
            raise ValueError(
                f"{type(self).__name__}: `{'logits' if probs is None else 'probs'}` must have "
                "a dimension of categories; got shape ()"
            )
        if probs is not None:
            self.probs = probs / probs.sum(-1, True)
        else:
            self.logits = parameter.log_softmax(-1)
        self._num_events = parameter.shape[-1]
        super().__init__(parameter.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        """Logarithms of `probs`."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits)

    @property
    def mean(self) -> Tensor:
        return pc.full(self._batch_shape, math.nan, dtype=self.param.dtype)

    @property
    def mode(self) -> Tensor:
        return self.param.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return pc.full(self._batch_shape, math.nan, dtype=self.param.dtype)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        rows = self.probs.detach().reshape(-1, self._num_events)
        shape = self._extended_shape(sample_shape)
        count = math.prod(sample_shape)
        if math.prod(shape) == 0:
            return pc.zeros(shape, dtype=pc.int64, device=rows.device)
        drawn = pc.multinomial(rows, count, True)
        return drawn.T.reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        index = value.to(pc.int64).unsqueeze(-1)
        shape = pc.broadcast_shapes(index.shape[:-1], self._batch_shape)
        logits = self.logits.expand(*shape, self._num_events)
        return logits.gather(-1, index.expand(*shape, 1)).squeeze(-1)

    def entropy(self) -> Tensor:
        # a probability of 0 has the logarithm -infinity and contributes 0
        logits = self.logits.clamp(min=pc.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = pc.arange(self._num_events, dtype=pc.int64, device=self.param.device)
        return self._enumerated(values, expand)
