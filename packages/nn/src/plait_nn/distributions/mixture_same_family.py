"""Mixtures of distributions of one family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from plait_core import Tensor
from plait_nn.distributions import constraints
from plait_nn.distributions.categorical import Categorical
from plait_nn.distributions.constraints import MixtureSameFamilyConstraint
from plait_nn.distributions.distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture: a sample of a randomly chosen component.

    Args:
        mixture_distribution: a `Categorical` that chooses among the k components.
        component_distribution: their distributions, along the last batch dimension of size k.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import Categorical, MixtureSameFamily, Normal
        >>> parts = Normal(pc.tensor([-1.0, 3.0]), pc.ones(2))
        >>> MixtureSameFamily(Categorical(pc.ones(2)), parts).mean
        tensor(1.)
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}
    has_rsample = False

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                "MixtureSameFamily: a Categorical is required as `mixture_distribution`; "
                f"got {type(mixture_distribution).__name__}"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "MixtureSameFamily: a Distribution is required as `component_distribution`; "
                f"got {type(component_distribution).__name__}"
            )
        count = mixture_distribution.param_shape[-1]
        batch = tuple(component_distribution.batch_shape)
        choice = tuple(mixture_distribution.batch_shape)
        pairs = zip(reversed(choice), reversed(batch[:-1]), strict=False)
        if not batch or batch[-1] != count or any(i != j and i != 1 for i, j in pairs):
            raise ValueError(
                f"MixtureSameFamily: components of batch shape {(*choice, count)} are required; "
                f"got {batch}"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = count
        event = component_distribution.event_shape
        super().__init__(batch[:-1], event, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        components = self._component_distribution
        new._component_distribution = components.expand((*batch_shape, self._num_component))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        return new

    @constraints.dependent_property
    def support(self) -> Any:
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution that chooses the component."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The distributions of the components."""
        return self._component_distribution

    def _weights(self) -> Tensor:
        probs = self._mixture_distribution.probs
        return probs.reshape(*probs.shape, *[1] * len(self._event_shape))

    def _mixed(self, value: Tensor) -> Tensor:
        return (self._weights() * value).sum(-1 - len(self._event_shape))

    @property
    def mean(self) -> Tensor:
        return self._mixed(self._component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        inner = self._mixed(self._component_distribution.variance)
        means = self._component_distribution.mean
        between = means - self.mean.unsqueeze(-1 - len(self._event_shape))
        return inner + self._mixed(between.square())

    def _beside(self, value: Tensor) -> Tensor:
        """Return a value with a dimension for the components."""
        return value.unsqueeze(-1 - len(self._event_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        own = self._component_distribution.log_prob(self._beside(value))
        return (own + self._mixture_distribution.logits).logsumexp(-1)

    def cdf(self, value: Tensor) -> Tensor:
        own = self._component_distribution.cdf(self._beside(value))
        return (own * self._mixture_distribution.probs).sum(-1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        ndims = len(self._event_shape)
        component = self._mixture_distribution.expand(self._batch_shape).sample(sample_shape)
        drawn = self._component_distribution.sample(sample_shape)
        dim = drawn.ndim - 1 - ndims
        place = component.reshape(*component.shape, 1, *[1] * ndims)
        shape = (*drawn.shape[:dim], 1, *drawn.shape[dim + 1 :])
        return drawn.gather(dim, place.expand(*shape)).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily({self._mixture_distribution}, {self._component_distribution})"
