"""Densities against formulas, moments and entropies against integrals and sums, samples against
distribution functions.
"""

import math
from typing import Any

import numpy as np
import pytest

import plait_core as pc
from plait_nn import distributions as d

N = 40_000
BOUND = 1.95 / math.sqrt(N)  # exceeded by chance in one of a thousand seeds
lgamma = np.vectorize(math.lgamma)
erf = np.vectorize(math.erf)


def t(value):
    return pc.tensor(value, dtype=pc.float64)


def log_beta(a, b):
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def bessel(x):
    angle = (np.arange(2000) + 0.5) * np.pi / 2000
    return float(np.mean(np.exp(x * np.cos(angle))))


def student(x):
    scale = 1.1 * 7**0.5 * math.exp(log_beta(3.5, 0.5))
    return (1 + ((x - 0.3) / 1.1) ** 2 / 7) ** -4 / scale


def concrete(x):
    odds, power = 0.4 / 0.6, 0.7
    sides = odds * x**-power + (1 - x) ** -power
    return power * odds * (x * (1 - x)) ** (-power - 1) / sides**2


def fisher(x):
    return (4 / 11) ** 2 * x * (1 + 4 / 11 * x) ** -7.5 / math.exp(log_beta(2, 5.5))


def weibull(x):
    return 2.2 / 1.4 * (x / 1.4) ** 1.2 * np.exp(-((x / 1.4) ** 2.2))


def negative_binomial(k):
    ways = np.exp(lgamma(k + 3.5) - lgamma(k + 1) - math.lgamma(3.5))
    return ways * 0.4**k * 0.6**3.5


# a distribution, its density, and where its support begins and ends
CONTINUOUS = [
    (
        d.Normal(t(0.7), t(1.3)),
        lambda x: np.exp(-(((x - 0.7) / 1.3) ** 2) / 2) / 1.3 / 2.50662827,
        (-np.inf, np.inf),
    ),
    (
        d.LogNormal(t(0.2), t(0.6)),
        lambda x: np.exp(-(((np.log(x) - 0.2) / 0.6) ** 2) / 2) / (0.6 * x * 2.50662827),
        (0, np.inf),
    ),
    (d.HalfNormal(t(2.0)), lambda x: np.exp(-((x / 2) ** 2) / 2) / 2.50662827, (0, np.inf)),
    (d.Uniform(t(-1.0), t(2.0)), lambda x: np.full_like(x, 1 / 3), (-1, 2)),
    (d.Exponential(t(1.7)), lambda x: 1.7 * np.exp(-1.7 * x), (0, np.inf)),
    (d.Laplace(t(0.0), t(0.8)), lambda x: np.exp(-np.abs(x) / 0.8) / 1.6, (-np.inf, np.inf)),
    (
        d.Gumbel(t(0.5), t(1.2)),
        lambda x: np.exp(-(x - 0.5) / 1.2 - np.exp(-(x - 0.5) / 1.2)) / 1.2,
        (-np.inf, np.inf),
    ),
    (d.StudentT(t(7.0), t(0.3), t(1.1)), student, (-np.inf, np.inf)),
    (
        d.Gamma(t(2.5), t(1.5)),
        lambda x: 1.5**2.5 * x**1.5 * np.exp(-1.5 * x) / math.gamma(2.5),
        (0, np.inf),
    ),
    (
        d.Gamma(t(0.6), t(0.5)),
        lambda x: 0.5**0.6 * x**-0.4 * np.exp(-0.5 * x) / math.gamma(0.6),
        (0, np.inf),
    ),
    (d.InverseGamma(t(5.0), t(2.0)), lambda x: 2**5 * x**-6.0 * np.exp(-2 / x) / 24, (0, np.inf)),
    (d.Chi2(t(3.0)), lambda x: x**0.5 * np.exp(-x / 2) / (2**1.5 * math.gamma(1.5)), (0, np.inf)),
    (d.Beta(t(2.0), t(0.7)), lambda x: x * (1 - x) ** -0.3 / math.exp(log_beta(2, 0.7)), (0, 1)),
    (d.Kumaraswamy(t(2.0), t(3.0)), lambda x: 6 * x * (1 - x * x) ** 2, (0, 1)),
    (d.FisherSnedecor(t(4.0), t(11.0)), fisher, (0, np.inf)),
    (d.Weibull(t(1.4), t(2.2)), weibull, (0, np.inf)),
    (d.Pareto(t(1.5), t(6.0)), lambda x: 6 * 1.5**6 / x**7, (1.5, np.inf)),
    (
        d.GeneralizedPareto(t(1.0), t(2.0), t(-0.4)),
        lambda x: (1 - 0.2 * (x - 1)) ** 1.5 / 2,
        (1, 6),
    ),
    (d.ContinuousBernoulli(t(0.8)), lambda x: 0.8**x * 0.2 ** (1 - x) * math.log(4) / 0.6, (0, 1)),
    (d.RelaxedBernoulli(t(0.7), t(0.4)), concrete, (0, 1)),
]
CAUCHY = [
    (
        d.Cauchy(t(0.5), t(2.0)),
        lambda x: 1 / (2 * np.pi * (1 + ((x - 0.5) / 2) ** 2)),
        (-np.inf, np.inf),
    ),
    (d.HalfCauchy(t(2.0)), lambda x: 1 / (np.pi * (1 + (x / 2) ** 2)), (0, np.inf)),
    (
        d.VonMises(t(0.5), t(2.0)),
        lambda x: np.exp(2 * np.cos(x - 0.5)) / (2 * np.pi * bessel(2)),
        (-np.pi, np.pi),
    ),
]


def nodes(low, high):
    """Nodes and weights of the double exponential rule."""
    s = np.linspace(-4.0, 4.0, 1601)
    u = np.pi / 2 * np.sinh(s)
    slope = np.pi / 2 * np.cosh(s) * (s[1] - s[0])
    if low == -np.inf:  # from 0 on to both sides, for a kink there
        x, w = np.exp(u), np.exp(u) * slope
        return np.concatenate([-x, x]), np.concatenate([w, w])
    if high == np.inf:
        return low + np.exp(u), np.exp(u) * slope
    share = 1 / (1 + np.exp(-2 * u))
    return low + (high - low) * share, (high - low) * 2 * share * (1 - share) * slope


def name(value):
    return repr(value[0]).split("(")[0] if isinstance(value, tuple) else ""


@pytest.mark.parametrize("case", CONTINUOUS + CAUCHY, ids=name)
def test_density(case):
    own, density, (low, high) = case
    x = np.array([0.05, 0.31, 0.5, 0.83])
    x = x * 5 - 2 if low == -np.inf else low + x * (high - low if high < np.inf else 4)
    np.testing.assert_allclose(own.log_prob(t(x)).exp().numpy(), density(x), rtol=1e-7)


@pytest.mark.parametrize("case", CONTINUOUS, ids=name)
def test_moments_and_entropy_are_integrals(case):
    own, density, (low, high) = case
    x, w = nodes(low, high)
    inside = (low < x) & (x < high)
    with np.errstate(all="ignore"):
        f = np.where(inside, density(x), 0) * w
    f = np.where(np.isfinite(f), f, 0)
    np.testing.assert_allclose(f.sum(), 1, rtol=1e-6)
    if isinstance(own, d.RelaxedBernoulli):
        return
    mean = float((f * x).sum())
    np.testing.assert_allclose(own.mean.item(), mean, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(own.variance.item(), (f * (x - mean) ** 2).sum(), rtol=1e-5)
    np.testing.assert_allclose(own.stddev.item() ** 2, own.variance.item(), rtol=1e-9)
    if isinstance(own, d.FisherSnedecor):
        return
    logs = np.where(f > 0, np.log(np.where(f > 0, f / np.where(w > 0, w, 1), 1)), 0)
    np.testing.assert_allclose(own.entropy().item(), -(f * logs).sum(), rtol=1e-5)


@pytest.mark.parametrize("case", CONTINUOUS + CAUCHY, ids=name)
def test_samples_follow_the_distribution_function(case):
    own, density, (low, high) = case
    x = np.sort(own.sample((N,)).numpy())
    assert np.isfinite(x).all()
    assert (x >= low).all() and (x <= high).all()
    steps = np.arange(N + 1) / N
    try:
        f = own.cdf(t(x)).numpy()
    except NotImplementedError:
        points, w = nodes(low, high)
        order = np.argsort(points)
        inside = (low < points) & (points < high)
        with np.errstate(all="ignore"):
            mass = np.where(inside, density(points), 0) * w
        total = np.cumsum(np.nan_to_num(mass[order]))
        f = np.interp(x, points[order], total)
    distance = max(np.abs(f - steps[1:]).max(), np.abs(f - steps[:-1]).max())
    assert distance < BOUND + 0.002


@pytest.mark.parametrize("case", CONTINUOUS + CAUCHY, ids=name)
def test_distribution_functions_rise_as_the_density_and_invert(case):
    own, density, (low, high) = case
    x = np.array([0.2, 0.45, 0.8])
    x = x * 4 - 1.5 if low == -np.inf else low + x * (high - low if high < np.inf else 3)
    try:
        slope = (own.cdf(t(x + 1e-5)) - own.cdf(t(x - 1e-5))).numpy() / 2e-5
    except NotImplementedError:
        assert type(own).cdf is d.Distribution.cdf or isinstance(own, d.RelaxedBernoulli)
        return
    np.testing.assert_allclose(slope, density(x), rtol=1e-6)
    if type(own).icdf is not d.Distribution.icdf and not isinstance(own, d.InverseGamma):
        np.testing.assert_allclose(own.icdf(own.cdf(t(x))).numpy(), x, rtol=1e-9)


def chance(k, n, p):
    return (
        np.exp(lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0)) * p**k * (1 - p) ** (n - k)
    )


K = np.arange(200.0)
DISCRETE = [
    (d.Bernoulli(t(0.3)), K[:2], np.array([0.7, 0.3])),
    (d.Geometric(t(0.3)), K, 0.3 * 0.7**K),
    (d.Binomial(6, t(0.35)), K[:7], chance(K[:7], 6, 0.35)),
    (d.Poisson(t(2.5)), K[:60], np.exp(K[:60] * math.log(2.5) - 2.5 - lgamma(K[:60] + 1))),
    (d.NegativeBinomial(t(3.5), t(0.4)), K, negative_binomial(K)),
    (d.Categorical(t([2.0, 5.0, 3.0])), K[:3], np.array([0.2, 0.5, 0.3])),
]


@pytest.mark.parametrize("case", DISCRETE, ids=name)
def test_discrete(case):
    own, k, mass = case
    np.testing.assert_allclose(own.log_prob(t(k)).exp().numpy(), mass, rtol=1e-6)
    drawn = own.sample((N,)).numpy().astype(int)
    share = np.bincount(drawn, minlength=len(k))[: len(k)] / N
    assert np.abs(share - mass).max() < 5 * math.sqrt(mass.max() / N)
    if not isinstance(own, d.Categorical):
        mean = float((k * mass).sum())
        np.testing.assert_allclose(own.mean.item(), mean, rtol=1e-7)
        np.testing.assert_allclose(own.variance.item(), ((k - mean) ** 2 * mass).sum(), rtol=1e-7)
    assert own.mode.item() == k[mass.argmax()]
    if not isinstance(own, (d.Poisson, d.NegativeBinomial)):
        logs = np.log(np.where(mass > 0, mass, 1))
        np.testing.assert_allclose(own.entropy().item(), -(mass * logs).sum(), rtol=1e-7)
        np.testing.assert_allclose(own.perplexity().item(), math.exp(own.entropy()), rtol=1e-12)


def test_entropy_of_poisson_names_the_missing_method():
    with pytest.raises(NotImplementedError, match="mean_carrier_measure"):
        d.Poisson(2.0).entropy()


def test_vectors():
    shares = d.Dirichlet(t([2.0, 3.0, 0.5]))
    drawn = shares.sample((N,)).numpy()
    np.testing.assert_allclose(drawn.sum(-1), 1, rtol=1e-12)
    deviation = np.sqrt(shares.variance.numpy() / N)
    assert (np.abs(drawn.mean(0) - shares.mean.numpy()) < 4 * deviation).all()
    np.testing.assert_allclose(drawn.var(0), shares.variance.numpy(), rtol=0.05)

    counts = d.Multinomial(8, t([1.0, 3.0, 4.0]))
    drawn = counts.sample((N,)).numpy()
    assert (drawn.sum(-1) == 8).all()
    deviation = np.sqrt(counts.variance.numpy() / N)
    assert (np.abs(drawn.mean(0) - counts.mean.numpy()) < 4 * deviation).all()
    x = np.array([2.0, 1.0, 5.0])
    ways = math.factorial(8) / (2 * 120)
    expected = ways * np.prod(np.array([1, 3, 4.0]) ** x) / 8**8
    np.testing.assert_allclose(counts.log_prob(t(x)).exp().item(), expected, rtol=1e-9)

    hot = d.OneHotCategorical(t([1.0, 3.0])).sample((N,)).numpy()
    assert (hot.sum(-1) == 1).all() and abs(hot[:, 1].mean() - 0.75) < 0.01


COVARIANCE = np.array([[2.0, 0.6, -0.3], [0.6, 1.0, 0.1], [-0.3, 0.1, 0.7]])


@pytest.mark.parametrize(
    "parameter", ["covariance_matrix", "precision_matrix", "scale_tril", "low"]
)
def test_multivariate_normal(parameter):
    mean = np.array([0.5, -1.0, 2.0])
    covariance = COVARIANCE
    matrices = {
        "covariance_matrix": COVARIANCE,
        "precision_matrix": np.linalg.inv(COVARIANCE),
        "scale_tril": np.linalg.cholesky(COVARIANCE),
    }
    if parameter == "low":
        factor = np.array([[1.0, 0.2], [0.3, -0.5], [0.0, 0.4]])
        own = d.LowRankMultivariateNormal(t(mean), t(factor), t([0.5, 1.0, 0.3]))
        covariance = factor @ factor.T + np.diag([0.5, 1.0, 0.3])
    else:
        own = d.MultivariateNormal(t(mean), **{parameter: t(matrices[parameter])})
    x = np.array([[0.0, 0.0, 0.0], [1.0, -2.0, 2.5]])
    offset = x - mean
    quadratic = np.einsum("ni,ij,nj->n", offset, np.linalg.inv(covariance), offset)
    log_determinant = math.log(np.linalg.det(covariance))
    expected = -0.5 * (quadratic + log_determinant + 3 * math.log(2 * math.pi))
    np.testing.assert_allclose(own.log_prob(t(x)).numpy(), expected, rtol=1e-10)
    entropy = 0.5 * (log_determinant + 3 * (1 + math.log(2 * math.pi)))
    np.testing.assert_allclose(own.entropy().item(), entropy, rtol=1e-10)
    np.testing.assert_allclose(own.covariance_matrix.numpy(), covariance, rtol=1e-9, atol=1e-12)
    inverse = np.linalg.inv(covariance)
    np.testing.assert_allclose(own.precision_matrix.numpy(), inverse, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(own.variance.numpy(), np.diag(covariance), rtol=1e-10)
    drawn = own.sample((N,)).numpy()
    assert np.abs(drawn.mean(0) - mean).max() < 0.04
    assert np.abs(np.cov(drawn.T) - covariance).max() < 0.06


def test_mixtures_choose_their_parts():
    parts = d.Normal(t([-2.0, 3.0]), t([0.5, 1.0]))
    mixture = d.MixtureSameFamily(d.Categorical(t([0.3, 0.7])), parts)
    drawn = np.sort(mixture.sample((N,)).numpy())
    f = mixture.cdf(t(drawn)).numpy()
    assert np.abs(f - np.arange(1, N + 1) / N).max() < BOUND + 1 / N
    np.testing.assert_allclose(drawn.mean(), mixture.mean.item(), atol=0.06)
    np.testing.assert_allclose(drawn.var(), mixture.variance.item(), rtol=0.03)


def test_independent_sums_over_its_dimensions():
    base = d.Normal(t(np.zeros((2, 3))), t(1.0))
    rows = d.Independent(base, 1)
    x = t(np.arange(6.0).reshape(2, 3))
    assert tuple(rows.batch_shape) == (2,) and tuple(rows.event_shape) == (3,)
    np.testing.assert_allclose(rows.log_prob(x).numpy(), base.log_prob(x).numpy().sum(-1))
    np.testing.assert_allclose(rows.entropy().numpy(), base.entropy().numpy().sum(-1))
    assert tuple(rows.expand((4, 2)).rsample((5,)).shape) == (5, 4, 2, 3)
    with pytest.raises(ValueError, match="reinterpreted_batch_ndims"):
        d.Independent(base, 3)


@pytest.mark.parametrize("name", ["Gumbel", "Pareto", "Weibull", "Kumaraswamy"])
def test_subclasses_of_transformed_distributions_diverge_and_expand(name: str) -> None:
    base = getattr(d, name)

    class Own(base):  # type: ignore[misc, valid-type]
        pass

    one, two = pc.tensor([1.5, 2.0]), pc.tensor([2.5, 3.0])
    p, q = Own(one, two), base(one, two)
    assert isinstance(p, d.TransformedDistribution)
    assert pc.allclose(d.kl_divergence(p, q), pc.zeros(2), atol=1e-6)
    wide = p.expand((3, 2))
    value = p.sample()
    assert type(wide) is Own and wide.sample().shape == (3, 2)
    assert pc.allclose(wide.log_prob(value), p.log_prob(value).expand(3, 2))
    # the parts give what the closed forms give
    by_parts = d.TransformedDistribution(p.base_dist, p.transforms)
    assert pc.allclose(by_parts.log_prob(value), p.log_prob(value), rtol=1e-3, atol=1e-3)


def test_constraints_of_a_subclass_may_be_a_property() -> None:
    class Above(d.Distribution):
        @property
        def arg_constraints(self) -> Any:
            return {"high": d.constraints.greater_than(self.low)}

        def __init__(self, low: Any, high: Any) -> None:
            self.low, self.high = low, high
            super().__init__(low.shape)

    assert Above(pc.zeros(2), pc.ones(2)).high.shape == (2,)
    with pytest.raises(ValueError, match="high"):
        Above(pc.ones(2), pc.zeros(2))


NAMES = [
    name
    for name in d.__all__
    if isinstance(getattr(d, name), type) and issubclass(getattr(d, name), d.Distribution)
]


@pytest.mark.parametrize("name", NAMES)
def test_a_subclass_with_its_own_init_needs_its_own_expand(name: str) -> None:
    base = getattr(d, name)

    class Own(base):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            self._batch_shape = self._event_shape = pc.Size()

    with pytest.raises(NotImplementedError, match=r"Own\.expand: .* its own `__init__`"):
        Own().expand((2,))


def test_an_own_expand_may_fill_an_instance_by_that_of_the_base() -> None:
    class Own(d.Normal):
        def __init__(self, loc: Any) -> None:
            super().__init__(loc, 1.0)

        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            return super().expand(batch_shape, self.__new__(type(self)))

    assert Own(pc.zeros(2)).expand((3, 2)).scale.shape == (3, 2)
