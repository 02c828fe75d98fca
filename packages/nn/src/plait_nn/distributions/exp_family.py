"""Exponential families: entropy from the derivative of the log normalizer."""

from __future__ import annotations

from typing import Any

from plait_core import Tensor
from plait_nn.distributions.distribution import Distribution
from plait_nn.distributions.utils import sum_last

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Densities of the form ``exp(<t(x), theta> - F(theta) + k(x))``.

    A subclass defines ``_natural_params`` (theta, a tuple), ``_log_normalizer(*theta)``
    (F) and ``_mean_carrier_measure`` (the mean of k), and gets its entropy from them:
    ``F - <theta, dF / dtheta> - E[k]``. It is computed by the autograd engine and has no gradient.

    Args:
        batch_shape: Shape of independent distributions.
        event_shape: Shape of one sample.
        validate_args: Whether parameters and values are checked; None: as
            `set_default_validate_args` says.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import Bernoulli, ExponentialFamily
        >>> coin = Bernoulli(pc.tensor(0.5))
        >>> ExponentialFamily.entropy(coin), coin.entropy()
        (tensor(0.6931), tensor(0.6931))
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError(f"{type(self).__name__} has no `_natural_params`")

    def _log_normalizer(self, *natural_params: Any) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no `_log_normalizer`")

    @property
    def _mean_carrier_measure(self) -> float | Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no `_mean_carrier_measure`")

    def entropy(self) -> Tensor:
        natural = [each.detach().clone().requires_grad_() for each in self._natural_params]
        normalizer = self._log_normalizer(*natural)
        normalizer.sum().backward()
        result = normalizer.detach() - self._mean_carrier_measure
        for each in natural:
            assert each.grad is not None
            product = each.detach() * each.grad
            result = result - sum_last(product, product.ndim - len(self._batch_shape))
        return result
