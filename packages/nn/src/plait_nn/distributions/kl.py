"""`kl_divergence` between two distributions, and `register_kl` for further pairs."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import plait_core as pc
from plait_core import Tensor
from plait_nn import _operators as operators
from plait_nn._all_samples import all_samples
from plait_nn.distributions.bernoulli import Bernoulli
from plait_nn.distributions.beta import Beta
from plait_nn.distributions.binomial import Binomial
from plait_nn.distributions.categorical import Categorical
from plait_nn.distributions.cauchy import Cauchy
from plait_nn.distributions.continuous_bernoulli import ContinuousBernoulli
from plait_nn.distributions.dirichlet import Dirichlet
from plait_nn.distributions.distribution import Distribution
from plait_nn.distributions.exp_family import ExponentialFamily
from plait_nn.distributions.exponential import Exponential
from plait_nn.distributions.gamma import Gamma
from plait_nn.distributions.geometric import Geometric
from plait_nn.distributions.gumbel import EULER, Gumbel
from plait_nn.distributions.half_normal import HalfNormal
from plait_nn.distributions.independent import Independent
from plait_nn.distributions.laplace import Laplace
from plait_nn.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from plait_nn.distributions.multivariate_normal import MultivariateNormal
from plait_nn.distributions.normal import Normal
from plait_nn.distributions.one_hot_categorical import OneHotCategorical
from plait_nn.distributions.pareto import Pareto
from plait_nn.distributions.poisson import Poisson
from plait_nn.distributions.transformed_distribution import TransformedDistribution
from plait_nn.distributions.uniform import Uniform
from plait_nn.distributions.utils import sum_last

__all__ = ["kl_divergence", "register_kl"]

_Function = Callable[[Any, Any], Tensor]
_F = TypeVar("_F", bound=_Function)

# PyTorch's names, which libraries read
_KL_REGISTRY: dict[tuple[type, type], _Function] = {}
_KL_MEMOIZE: dict[tuple[type, type], _Function | None] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[_F], _F]:
    """Decorate the function that gives ``kl_divergence(p, q)`` for distributions of two types.

    If several functions fit, the most specific one is called, first by the type of p.

    Args:
        type_p: Class of the first distribution.
        type_q: Class of the second distribution.

    Example:
        >>> from plait_nn.distributions import Normal, kl_divergence, register_kl
        >>> class Standard(Normal):
        ...     pass
        >>> @register_kl(Standard, Standard)
        ... def _(p, q):
        ...     return p.loc * 0
        >>> kl_divergence(Standard(0.0, 1.0), Standard(0.0, 1.0))
        tensor(0.)
    """
    for each in (type_p, type_q):
        # a base class may be one that does not derive from `Distribution`
        if not (isinstance(each, type) and hasattr(each, "log_prob")):
            raise TypeError(f"register_kl: a type of distributions is required; got {each!r}")

    def decorate(function: _F) -> _F:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return decorate


def _find(type_p: type, type_q: type) -> _Function | None:
    for base_p in type_p.__mro__:
        for base_q in type_q.__mro__:
            function = _KL_REGISTRY.get((base_p, base_q))
            if function is not None:
                return function
    return None


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return Kullback's and Leibler's divergence, the mean of ``log(p(x) / q(x))`` under p.

    Shapes: the broadcast shape of the batches.

    Raises:
        NotImplementedError: for a pair of types that has no closed form here; see `register_kl`.

    Example:
        >>> import plait_core as pc
        >>> from plait_nn.distributions import Normal, kl_divergence
        >>> kl_divergence(Normal(pc.tensor([0.0, 1.0]), 1.0), Normal(0.0, 1.0))
        tensor([0.0000, 0.5000])
    """
    key = type(p), type(q)
    if key not in _KL_MEMOIZE:
        _KL_MEMOIZE[key] = _find(*key)
    function = _KL_MEMOIZE[key]
    if function is None:
        raise NotImplementedError(
            f"kl_divergence: no closed form is registered for {key[0].__name__} and "
            f"{key[1].__name__}; use register_kl, or the mean of "
            "p.log_prob(x) - q.log_prob(x) over samples of p"
        )
    return function(p, q)


# ---- of one family


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    ones = p.probs * (operators.log_sigmoid(p.logits) - operators.log_sigmoid(q.logits))
    ones = pc.where(q.probs == 0, math.inf, ones).masked_fill(p.probs == 0, 0.0)
    zeros = (1 - p.probs) * (operators.log_sigmoid(-p.logits) - operators.log_sigmoid(-q.logits))
    zeros = pc.where(q.probs == 1, math.inf, zeros).masked_fill(p.probs == 1, 0.0)
    return ones + zeros


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Tensor:
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    first = c.lgamma() + d.lgamma() + (a + b).lgamma() - a.lgamma() - b.lgamma()
    rest = (a - c) * a.digamma() + (b - d) * b.digamma()
    return first - (c + d).lgamma() + rest + (c + d - a - b) * (a + b).digamma()


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    if bool(all_samples(p.total_count < q.total_count).any()):
        raise NotImplementedError(
            "kl_divergence: of two Binomial, the first must have at least as many trials; "
            f"got {all_samples(p.total_count)} and {all_samples(q.total_count)}"
        )
    odds = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return pc.where(p.total_count > q.total_count, math.inf, p.total_count * odds)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    each = p.probs * (p.logits - q.logits)
    each = pc.where(q.probs == 0, math.inf, each)
    each = pc.where(p.probs == 0, 0.0, each)
    return each.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p: Any, q: Any) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:
    squared = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return squared.log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Tensor:
    mean = p.mean * (p.logits - q.logits)
    ends = (-p.probs).log1p() - (-q.probs).log1p()
    return mean + p._log_constant() - q._log_constant() + ends


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    total = a.sum(-1)
    first = total.lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return first + ((a - b) * (a.digamma() - total.digamma().unsqueeze(-1))).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    a, b = p.concentration, q.concentration
    scaled = b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma()
    return scaled + (a - b) * a.digamma() + (q.rate - p.rate) * (a / p.rate)


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Tensor:
    ratio, shift = p.scale / q.scale, (q.loc - p.loc) / q.scale
    moment = (shift + (1 + ratio).lgamma()).exp()
    return ratio * EULER - ratio.log() - shift + moment - (1 + EULER)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    spread = ratio * (-distance / p.scale).exp()
    return distance / q.scale + spread - ratio.log() - 1


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).square()
    distance = ((p.loc - q.loc) / q.scale).square()
    return 0.5 * (ratio + distance - 1 - ratio.log())


def _multivariate(p: Any, q: Any) -> Tensor:
    """The divergence of distributions with `scale_tril`, `_log_determinant` and `loc`."""
    if p.event_shape != q.event_shape:
        raise ValueError(
            "kl_divergence: multivariate normal distributions of one dimension are required; "
            f"got event shapes {tuple(p.event_shape)} and {tuple(q.event_shape)}"
        )
    factor = q.scale_tril
    size = p.event_shape[0]
    batch = pc.broadcast_shapes(p.batch_shape, q.batch_shape)
    wide, own = factor.expand(*batch, size, size), p.scale_tril.expand(*batch, size, size)
    trace = pc.linalg.solve_triangular(wide, own, upper=False).square().sum((-2, -1))
    column = (q.loc - p.loc).expand(*batch, size).unsqueeze(-1)
    distance = pc.linalg.solve_triangular(wide, column, upper=False).square().sum((-2, -1))
    return q._log_determinant() - p._log_determinant() + 0.5 * (trace + distance - size)


for _first in (MultivariateNormal, LowRankMultivariateNormal):
    for _second in (MultivariateNormal, LowRankMultivariateNormal):
        register_kl(_first, _second)(_multivariate)


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Tensor:
    scales, ratio = p.scale / q.scale, q.alpha / p.alpha
    result = q.alpha * scales.log() - ratio.log() + ratio - 1
    return pc.where(p.scale < q.scale, math.inf, result)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return pc.where((q.low > p.low) | (q.high < p.high), math.inf, result)


# ---- distributions that are composed of others


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "kl_divergence: of two Independent, both must take as many dimensions; "
            f"got {p.reinterpreted_batch_ndims} and {q.reinterpreted_batch_ndims}"
        )
    return sum_last(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            "kl_divergence: of two transformed distributions, both must have the same transforms "
            f"and event shapes; got {p.transforms} and {q.transforms}"
        )
    return kl_divergence(p.base_dist, q.base_dist)


# ---- of two families


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    a = q.concentration
    return a.lgamma() - a * ratio.log() + ratio + a * EULER - (1 + EULER)


@register_kl(Laplace, Normal)
def _laplace_normal(p: Any, q: Any) -> Tensor:
    variance = q.scale.square()
    distance = (p.scale.square() + 0.5 * (p.loc - q.loc).square()) / variance
    return distance - 1 + 0.5 * math.log(math.pi / 2) + (q.scale / p.scale).log()


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Tensor:
    distance = p.loc - q.loc
    z = distance / p.scale
    folded = math.sqrt(2 / math.pi) * p.scale * (-0.5 * z.square()).exp()
    folded = folded + distance * (z * math.sqrt(0.5)).erf()
    return -p.entropy() + (2 * q.scale).log() + folded / q.scale


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> Tensor:
    shift, ratio = (p.loc - q.loc) / q.scale, p.scale / q.scale
    moment = (-shift + 0.5 * ratio.square()).exp()
    return shift + moment - ratio.log() - 0.5 * (1 + math.log(2 * math.pi))


@register_kl(Gumbel, Normal)
def _gumbel_normal(p: Any, q: Any) -> Tensor:
    ratio = p.scale / q.scale
    distance = (p.loc + p.scale * EULER - q.loc) / q.scale
    squared = 0.5 * ((ratio * math.pi).square() / 6 + distance.square())
    return squared - ratio.log() + 0.5 * math.log(2 * math.pi) - (1 + EULER)


@register_kl(Beta, Uniform)
def _beta_uniform(p: Any, q: Any) -> Tensor:
    result = -p.entropy() + (q.high - q.low).log()
    return pc.where((q.high < 1) | (q.low > 0), math.inf, result)


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Tensor:
    a, b, width = q.concentration1, q.concentration0, p.high - p.low
    upper = pc.xlogy(p.high, p.high) - pc.xlogy(p.low, p.low) - width
    lower = pc.xlogy(1 - p.high, 1 - p.high) - pc.xlogy(1 - p.low, 1 - p.low) + width
    normalizer = a.lgamma() + b.lgamma() - (a + b).lgamma()
    result = (1 - a) * upper / width - (1 - b) * lower / width + normalizer - width.log()
    return pc.where((p.high > 1) | (p.low < 0), math.inf, result)


# ---- of the moments of the first


def _to_normal(p: Any, q: Any) -> Tensor:
    squared = (p.variance + (p.mean - q.loc).square()) / (2 * q.scale.square())
    return -p.entropy() + q.scale.log() + 0.5 * math.log(2 * math.pi) + squared


def _to_exponential(p: Any, q: Any) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


def _to_gamma(p: Any, q: Any) -> Tensor:
    a = q.concentration
    logs = (a - 1) * _mean_log(p)
    return -p.entropy() - a * q.rate.log() + a.lgamma() - logs + q.rate * p.mean


def _to_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    return -p.entropy() - p.mean * q.logits - (-q.probs).log1p() - q._log_constant()


def _to_gumbel(p: Any, q: Any) -> Tensor:
    shift = (p.mean - q.loc) / q.scale
    return -p.entropy() + shift + q.scale.log() + (q.loc / q.scale).exp() * _mean_exp(p, q.scale)


def _mean_log(p: Any) -> Tensor:
    """The mean of ``log(x)``."""
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    ends = pc.xlogy(p.high, p.high) - pc.xlogy(p.low, p.low)
    return ends / (p.high - p.low) - 1


def _mean_exp(p: Any, scale: Any) -> Tensor:
    """The mean of ``exp(-x / scale)``."""
    if isinstance(p, Uniform):
        low, high = p.low / scale, p.high / scale
        return ((-low).exp() - (-high).exp()) / (high - low)
    shape = p.concentration if isinstance(p, Gamma) else 1.0
    return (p.rate * scale / (1 + p.rate * scale)) ** shape


def _of_pareto(function: Any, moments: int) -> Any:
    """The divergence from a Pareto distribution, infinite (with gradient 0) where one of the first
    moments is, that is, where alpha is at most their number.
    """

    def divergence(p: Any, q: Any) -> Tensor:
        infinite = p.alpha <= moments
        other = Pareto(p.scale, pc.where(infinite, moments + 1.0, p.alpha), validate_args=False)
        return pc.where(infinite, math.inf, function(other, q))

    return divergence


register_kl(Pareto, Normal)(_of_pareto(_to_normal, 2))
register_kl(Pareto, Exponential)(_of_pareto(_to_exponential, 1))
register_kl(Pareto, Gamma)(_of_pareto(_to_gamma, 1))
_BY_MOMENTS: tuple[tuple[tuple[type, ...], type, Any], ...] = (
    ((Beta, ContinuousBernoulli, Exponential, Gamma, Uniform), Normal, _to_normal),
    ((Beta, ContinuousBernoulli, Gamma), Exponential, _to_exponential),
    ((Beta,), Gamma, _to_gamma),
    ((Exponential, Gamma, Uniform), Gumbel, _to_gumbel),
)
for _kinds, _other, _function in _BY_MOMENTS:
    for _kind in _kinds:
        register_kl(_kind, _other)(_function)
register_kl(Beta, ContinuousBernoulli)(_to_continuous_bernoulli)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    return pc.where((p.high > 1) | (p.low < 0), math.inf, _to_continuous_bernoulli(p, q))


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Tensor:
    return pc.where(p.low < 0, math.inf, _to_exponential(p, q))


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Tensor:
    return pc.where(p.low < 0, math.inf, _to_gamma(p, q))


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Tensor:
    density = q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _mean_log(p)
    return pc.where(p.low < q.scale, math.inf, -p.entropy() - density)


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: Any, q: Any) -> Tensor:
    result = -p.entropy() + (q.high - q.low).log()
    return pc.where((q.high < 1) | (q.low > 0), math.inf, result)


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p: Any, q: Any) -> Tensor:
    """Bregman's divergence of the log normalizer; it has no gradient, like the entropy."""
    if type(p) is not type(q):
        raise NotImplementedError(
            f"kl_divergence: no closed form is registered for {type(p).__name__} and "
            f"{type(q).__name__}; use register_kl"
        )
    natural = [each.detach().clone().requires_grad_() for each in p._natural_params]
    others = [each.detach() for each in q._natural_params]
    normalizer = p._log_normalizer(*natural)
    normalizer.sum().backward()
    result = q._log_normalizer(*others) - normalizer.detach()
    for own, other in zip(natural, others, strict=True):
        assert own.grad is not None
        product = (other - own.detach()) * own.grad
        result = result - sum_last(product, product.ndim - result.ndim)
    return result


# ---- samples of the first may fall where the second has no density


def _infinite(p: Any, q: Any) -> Tensor:
    shape = pc.broadcast_shapes(p.batch_shape, q.batch_shape)
    return pc.full(shape, math.inf, dtype=p.mean.dtype, device=p.mean.device)


_OF_REALS = (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_OUTSIDE: dict[type, tuple[type, ...]] = {
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: _OF_REALS,
    Laplace: _OF_REALS,
    Normal: _OF_REALS,
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
}
for _p, _others in _OUTSIDE.items():
    for _q in _others:
        register_kl(_p, _q)(_infinite)
