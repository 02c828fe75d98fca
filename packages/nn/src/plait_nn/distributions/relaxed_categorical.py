"""One-hot vectors, relaxed to shares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import plait_core as pc
from plait_core import Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions.categorical import Categorical
from plait_nn.distributions.one_hot_categorical import OverCategories
from plait_nn.distributions.relaxed_bernoulli import Relaxed
from plait_nn.distributions.transforms import ExpTransform
from plait_nn.distributions.utils import clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(OverCategories):
    """The logarithms of samples of `RelaxedOneHotCategorical`.

    Args:
        temperature: a tensor.
        probs: weights in the last dimension, or else
        logits: logarithms of weights.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions.relaxed_categorical import ExpRelaxedCategorical
        >>> drawn = ExpRelaxedCategorical(pc.tensor(1.0), logits=pc.zeros(3)).sample()
        >>> bool(drawn.exp().sum().isclose(pc.tensor(1.0)))
        True
    """

    support = constraints.real_vector  # in fact only vectors whose exponentials sum to 1
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        uniform = clamp_probs(self.logits.new_empty(shape).uniform_())
        scores = (self.logits - (-uniform.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        k = self._categorical._num_events
        temperature = pc.as_tensor(self.temperature, dtype=value.dtype, device=value.device)
        score = self.logits - value * temperature
        score = (score - score.logsumexp(-1, True)).sum(-1)
        return score + temperature.log() * (k - 1) + math.lgamma(k)


class RelaxedOneHotCategorical(Relaxed):
    """Shares that are close to a one-hot vector at low temperatures, with gradients.

    Maddison, Mnih and Teh 2017, "The concrete distribution"; Jang, Gu and Poole 2017, "Categorical
    reparameterization with Gumbel-softmax".

    Args:
        temperature: a tensor; towards 0 it becomes `OneHotCategorical`.
        probs: weights in the last dimension, or else
        logits: logarithms of weights.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import RelaxedOneHotCategorical
        >>> soft = RelaxedOneHotCategorical(pc.tensor(0.5), logits=pc.zeros(3)).rsample()
        >>> bool((soft.sum() - 1).abs() < 1e-5)
        True
    """

    arg_constraints: ClassVar = Categorical.arg_constraints
    support = constraints.simplex

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
