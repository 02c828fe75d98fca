"""Reparameterised samples, divergences, exponential families, and what is refused."""

import itertools
import math

import numpy as np
import pytest

import plait_core as pc
from plait_nn import distributions as d, functional as F

N = 40_000


def t(value, **options):
    return pc.tensor(value, dtype=pc.float64, **options)


# constructs the distribution from two parameters
REPARAMETERISED = {
    "Normal": (d.Normal, 0.3, 1.2),
    "LogNormal": (d.LogNormal, 0.3, 0.5),
    "Uniform": (d.Uniform, -1.0, 2.0),
    "Laplace": (d.Laplace, 0.3, 1.2),
    "Cauchy": (d.Cauchy, 0.3, 1.2),
    "Gumbel": (d.Gumbel, 0.3, 1.2),
    "Weibull": (d.Weibull, 1.3, 2.2),
    "Pareto": (d.Pareto, 1.3, 2.2),
    "Kumaraswamy": (d.Kumaraswamy, 1.3, 2.2),
    "MultivariateNormal": (
        lambda a, b: d.MultivariateNormal(a.expand(2), scale_tril=b * t([[1.0, 0], [0.5, 2]])),
        *(0.3, 1.2),
    ),
    "LowRankMultivariateNormal": (
        lambda a, b: d.LowRankMultivariateNormal(a.expand(2), b * t([[1.0], [0.5]]), t([1.0, 2])),
        *(0.3, 1.2),
    ),
    "RelaxedBernoulli": (lambda a, b: d.RelaxedBernoulli(b, logits=a), 0.3, 0.8),
    "RelaxedOneHotCategorical": (
        lambda a, b: d.RelaxedOneHotCategorical(b, logits=a * t([1.0, -1.0, 2.0])),
        *(0.3, 0.8),
    ),
}


@pytest.mark.parametrize("name", REPARAMETERISED)
def test_samples_move_with_their_parameters(name):
    """With the same random numbers, differences of the samples give their gradients."""
    make, *values = REPARAMETERISED[name]

    def drawn(a, b):
        pc.manual_seed(5)
        return make(a, b).rsample((7,))

    a, b = (t(value, requires_grad=True) for value in values)
    samples = drawn(a, b)
    weights = t(np.linspace(-1, 1, samples.numel()).reshape(tuple(samples.shape)))
    (samples * weights).sum().backward()
    for at, parameter in enumerate((a, b)):
        moved = [
            [t(value + (sign * 1e-6 if i == at else 0)) for i, value in enumerate(values)]
            for sign in (1, -1)
        ]
        up, down = (float((drawn(*each) * weights).sum()) for each in moved)
        np.testing.assert_allclose(parameter.grad.item(), (up - down) / 2e-6, rtol=1e-6, atol=1e-8)


def quantile(shape, share):
    """Return a quantile of the gamma distribution, by bisection."""
    low, high = 0.0, shape + 40 * math.sqrt(shape) + 40
    for _ in range(200):
        middle = (low + high) / 2
        below = pc.special.gammainc(t(shape), t(middle)).item() < share
        low, high = (middle, high) if below else (low, middle)
    return (low + high) / 2


@pytest.mark.parametrize("shape", [0.1, 0.7, 1.0, 4.5, 60.0])
def test_gamma_samples_move_as_quantiles_do(shape):
    a = t(shape, requires_grad=True)
    sample = d.Gamma(a, t(1.0)).rsample()
    sample.backward()
    share = pc.special.gammainc(t(shape), sample.detach()).item()
    h = shape * 1e-4
    slope = (quantile(shape + h, share) - quantile(shape - h, share)) / (2 * h)
    np.testing.assert_allclose(a.grad.item(), slope, rtol=1e-4)


def beta_below(a, b, x):
    """The regularised incomplete beta function by its power series."""
    n = np.arange(4000)
    terms = np.cumprod(np.concatenate([[1.0], (n[1:] - b) / n[1:] * x]))
    scale = math.exp(a * math.log(x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b))
    return scale * float(np.sum(terms / (a + n)))


@pytest.mark.parametrize(("a", "b"), [(0.6, 1.7), (2.0, 3.0), (8.0, 1.2)])
def test_beta_samples_move_as_quantiles_do(a, b):
    first, second = t(a, requires_grad=True), t(b, requires_grad=True)
    sample = d.Beta(first, second).rsample()
    sample.backward()
    x = sample.item()
    density = math.exp(d.Beta(t(a), t(b)).log_prob(t(x)).item())
    h = 1e-5
    by_a = -(beta_below(a + h, b, x) - beta_below(a - h, b, x)) / (2 * h) / density
    by_b = -(beta_below(a, b + h, x) - beta_below(a, b - h, x)) / (2 * h) / density
    np.testing.assert_allclose([first.grad.item(), second.grad.item()], [by_a, by_b], rtol=1e-5)


MEANS = {
    "Gamma": (lambda a: d.Gamma(a, t(2.0)), 1.5),
    "Beta": (lambda a: d.Beta(a, t(2.0)), 1.5),
    "StudentT": (lambda a: d.StudentT(t(9.0), a, t(1.0)), 0.4),
    "Chi2": (d.Chi2, 3.0),
    "FisherSnedecor": (lambda a: d.FisherSnedecor(t(5.0), a), 12.0),
    "InverseGamma": (lambda a: d.InverseGamma(t(6.0), a), 2.0),
    "Dirichlet": (lambda a: d.Dirichlet(a * t([1.0, 0.0, 0.0]) + t([0.0, 2.0, 0.7])), 1.5),
}


@pytest.mark.parametrize("name", MEANS)
def test_gradients_of_the_mean_of_samples(name):
    make, value = MEANS[name]
    a = t(value, requires_grad=True)
    first = (..., 0) if name == "Dirichlet" else ...
    make(a).rsample((N,))[first].mean().backward()
    expected = t(value, requires_grad=True)
    make(expected).mean[first].backward()
    np.testing.assert_allclose(a.grad.item(), expected.grad.item(), rtol=0.05)


def test_the_tail_of_generalized_pareto_differentiates_at_zero():
    """The closed form is divided by the concentration there."""
    x = t([0.3, 2.0])
    slopes = []
    for value in (0.0, 1e-6):
        c = t(value, requires_grad=True)
        d.GeneralizedPareto(t(0.0), t(1.0), c).log_prob(x).sum().backward()
        slopes.append(c.grad.item())
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-4)
    assert abs(slopes[0]) > 0.1


def test_what_a_policy_needs():
    logits = pc.zeros(4, 3, requires_grad=True)
    policy = d.Categorical(logits=logits)
    actions = policy.sample()
    assert actions.dtype == pc.int64
    (-policy.log_prob(actions) * pc.arange(1.0, 5.0)).sum().backward()
    choice = F.one_hot(actions, 3)
    expected = (policy.probs.detach() - choice) * pc.arange(1.0, 5.0)[:, None]
    np.testing.assert_allclose(logits.grad.numpy(), expected.numpy(), atol=1e-6)


def test_a_squashed_policy_keeps_its_inputs():
    mean = t([0.0, 4.0], requires_grad=True)
    tanh = d.TanhTransform(cache_size=1)
    policy = d.TransformedDistribution(d.Normal(mean, t(1.0)), [tanh])
    actions = policy.rsample()
    log_prob = policy.log_prob(actions)
    x = actions.detach().atanh()
    expected = d.Normal(mean, t(1.0)).log_prob(x) - (1 - actions**2).log()
    np.testing.assert_allclose(log_prob.detach().numpy(), expected.detach().numpy(), rtol=1e-8)
    log_prob.sum().backward()
    assert bool(mean.grad.isfinite().all())


def of_one_family():
    yield d.Bernoulli(t(0.3)), d.Bernoulli(t(0.6))
    yield d.Beta(t(2.0), t(1.5)), d.Beta(t(1.2), t(0.7))
    yield d.Binomial(5, t(0.3)), d.Binomial(5, t(0.6))
    yield d.Categorical(t([0.2, 0.3, 0.5])), d.Categorical(t([0.4, 0.4, 0.2]))
    yield d.Cauchy(t(0.0), t(1.0)), d.Cauchy(t(1.0), t(2.0))
    yield d.ContinuousBernoulli(t(0.3)), d.ContinuousBernoulli(t(0.6))
    yield d.Dirichlet(t([1.0, 2.0])), d.Dirichlet(t([2.0, 0.7]))
    yield d.Exponential(t(2.0)), d.Exponential(t(0.7))
    yield d.Gamma(t(2.0), t(1.0)), d.Gamma(t(1.2), t(2.0))
    yield d.Geometric(t(0.3)), d.Geometric(t(0.6))
    yield d.Gumbel(t(0.0), t(1.0)), d.Gumbel(t(0.5), t(1.5))
    yield d.HalfNormal(t(1.0)), d.HalfNormal(t(1.7))
    yield d.Laplace(t(0.0), t(1.0)), d.Laplace(t(1.0), t(1.7))
    yield d.LogNormal(t(0.0), t(1.0)), d.LogNormal(t(0.4), t(1.7))
    yield (
        d.MultivariateNormal(t([0.0, 1]), t(np.eye(2))),
        d.MultivariateNormal(t([0.5, 1]), t([[2.0, 0.4], [0.4, 1]])),
    )
    yield (
        d.LowRankMultivariateNormal(t([0.0, 1]), t([[1.0], [0]]), t([1.0, 1])),
        (d.MultivariateNormal(t([0.5, 1]), t([[2.0, 0.4], [0.4, 1]]))),
    )
    yield d.Normal(t(0.0), t(1.0)), d.Normal(t(0.5), t(1.7))
    yield d.OneHotCategorical(t([0.2, 0.8])), d.OneHotCategorical(t([0.6, 0.4]))
    yield d.Pareto(t(2.0), t(3.0)), d.Pareto(t(1.0), t(1.7))
    yield d.Poisson(t(2.0)), d.Poisson(t(3.0))
    yield d.Uniform(t(0.0), t(1.0)), d.Uniform(t(-0.5), t(2.0))


def of_two_families():
    yield d.Exponential(t(2.0)), d.Gamma(t(1.5), t(1.2))
    yield d.Gamma(t(2.0), t(1.2)), d.Exponential(t(0.7))
    yield d.Exponential(t(2.0)), d.Normal(t(0.5), t(1.2))
    yield d.Laplace(t(0.0), t(1.0)), d.Normal(t(0.5), t(1.2))
    yield d.Normal(t(0.4), t(1.0)), d.Laplace(t(1.0), t(1.7))
    yield d.Normal(t(0.4), t(0.7)), d.Gumbel(t(1.0), t(1.7))
    yield d.Gumbel(t(0.4), t(0.7)), d.Normal(t(1.0), t(1.7))
    yield d.Uniform(t(0.1), t(0.8)), d.Normal(t(1.0), t(1.7))
    yield d.Uniform(t(0.1), t(0.8)), d.Exponential(t(1.7))
    yield d.Uniform(t(0.1), t(0.8)), d.Beta(t(1.7), t(0.8))
    yield d.Beta(t(1.7), t(0.8)), d.Uniform(t(0.0), t(1.5))
    yield d.Bernoulli(t(0.3)), d.Poisson(t(0.8))
    yield d.Beta(t(1.7), t(0.8)), d.ContinuousBernoulli(t(0.3))
    yield d.Beta(t(1.7), t(0.8)), d.Exponential(t(0.7))
    yield d.Beta(t(1.7), t(0.8)), d.Gamma(t(1.2), t(2.0))
    yield d.Beta(t(1.7), t(0.8)), d.Normal(t(0.2), t(1.3))
    yield d.ContinuousBernoulli(t(0.3)), d.Exponential(t(0.7))
    yield d.ContinuousBernoulli(t(0.3)), d.Normal(t(0.2), t(1.3))
    yield d.ContinuousBernoulli(t(0.3)), d.Uniform(t(-0.5), t(1.5))
    yield d.Exponential(t(2.0)), d.Gumbel(t(0.3), t(1.7))
    yield d.Gamma(t(2.0), t(1.2)), d.Gumbel(t(0.3), t(1.7))
    yield d.Gamma(t(2.0), t(1.2)), d.Normal(t(0.2), t(1.3))
    yield d.Pareto(t(0.5), t(5.0)), d.Exponential(t(0.7))
    yield d.Pareto(t(0.5), t(5.0)), d.Gamma(t(1.2), t(2.0))
    yield d.Pareto(t(0.5), t(9.0)), d.Normal(t(0.2), t(1.3))
    yield d.Uniform(t(0.1), t(0.8)), d.ContinuousBernoulli(t(0.3))
    yield d.Uniform(t(0.1), t(0.8)), d.Gamma(t(1.2), t(2.0))
    yield d.Uniform(t(0.1), t(0.8)), d.Gumbel(t(0.3), t(1.7))
    yield d.Uniform(t(0.6), t(0.8)), d.Pareto(t(0.5), t(3.0))


@pytest.mark.parametrize(
    ("p", "q"),
    [*of_one_family(), *of_two_families()],
    ids=lambda each: type(each).__name__,
)
def test_divergences_are_means_over_samples(p, q):
    x = p.sample((N,))
    each = (p.log_prob(x) - q.log_prob(x)).numpy()
    expected = d.kl_divergence(p, q).item()
    assert abs(each.mean() - expected) < 5 * each.std() / math.sqrt(N) + 1e-12
    assert expected > 0


def test_divergences_of_supports_that_do_not_hold_the_other():
    assert d.kl_divergence(d.Normal(0.0, 1.0), d.Exponential(1.0)).item() == math.inf
    assert d.kl_divergence(d.Uniform(0.0, 2.0), d.Uniform(0.0, 1.0)).item() == math.inf
    for p, q in (
        (d.Pareto(1.0, 1.0), d.Exponential(1.0)),  # without a mean
        (d.Pareto(1.0, 2.0), d.Normal(0.0, 1.0)),  # without a variance
        (d.Uniform(0.5, 1.5), d.ContinuousBernoulli(0.3)),
        (d.Uniform(-0.5, 1.0), d.Gamma(1.0, 1.0)),
        (d.Uniform(0.5, 1.0), d.Pareto(0.6, 1.0)),
        (d.ContinuousBernoulli(0.3), d.Uniform(0.1, 1.0)),
        (d.ContinuousBernoulli(0.3), d.Pareto(0.1, 1.0)),
        (d.Gamma(1.0, 1.0), d.ContinuousBernoulli(0.3)),
    ):
        assert d.kl_divergence(p, q).item() == math.inf
    zero = d.Categorical(pc.tensor([0.5, 0.5])), d.Categorical(pc.tensor([1.0, 0.0]))
    assert d.kl_divergence(*zero).item() == math.inf
    assert math.isfinite(d.kl_divergence(*zero[::-1]).item())


def test_divergences_by_the_most_specific_pair():
    class Mine(d.Normal):
        pass

    assert d.kl_divergence(Mine(0.0, 1.0), d.Normal(1.0, 1.0)).item() == 0.5

    @d.register_kl(Mine, d.Normal)
    def _(p, q):
        return p.loc + 7

    assert d.kl_divergence(Mine(0.0, 1.0), d.Normal(1.0, 1.0)).item() == 7
    assert d.kl_divergence(d.Normal(0.0, 1.0), Mine(1.0, 1.0)).item() == 0.5
    with pytest.raises(NotImplementedError, match="Cauchy and Normal"):
        d.kl_divergence(d.Cauchy(0.0, 1.0), d.Normal(1.0, 1.0))
    with pytest.raises(TypeError, match="register_kl"):
        d.register_kl(int, d.Normal)


def test_divergences_of_others_exponential_families():
    class Rate(d.ExponentialFamily):
        """The exponential distribution, by its natural parameter alone."""

        def __init__(self, rate):
            self.rate = rate
            super().__init__(rate.shape, validate_args=False)

        @property
        def _natural_params(self):
            return (-self.rate,)

        def _log_normalizer(self, x):
            return -(-x).log()

    p, q = pc.tensor([2.0, 0.5]), pc.tensor([0.7, 0.5])
    result = d.kl_divergence(Rate(p), Rate(q))
    expected = d.kl_divergence(d.Exponential(p), d.Exponential(q))
    np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-6, atol=1e-7)
    with pytest.raises(NotImplementedError, match="Rate and Exponential"):
        d.kl_divergence(Rate(p), d.Exponential(q))


def test_others_distributions_expand_as_pytorchs_do():
    class Shifted(d.Normal):
        def expand(self, batch_shape, _instance=None):
            new = self._get_checked_instance(Shifted, _instance)
            new.note = "expanded"
            return super().expand(batch_shape, _instance=new)

    class Custom(Shifted):
        def __init__(self):
            super().__init__(0.0, 1.0)

    result = Shifted(pc.zeros(3), 1.0).expand((2, 3))
    assert (
        result.note == "expanded"
        and result.batch_shape == (2, 3)
        and result.sample().shape == (2, 3)
    )
    with pytest.raises(NotImplementedError, match=r"Custom\.expand: a subclass of Shifted"):
        Custom().expand((2,))


def test_batches_of_divergences_broadcast():
    p = d.MultivariateNormal(pc.zeros(4, 1, 2), pc.eye(2))
    q = d.MultivariateNormal(pc.ones(3, 2), 2 * pc.eye(2))
    expected = 0.5 * (1 + 1 - 2 + math.log(4))
    np.testing.assert_allclose(d.kl_divergence(p, q).numpy(), np.full((4, 3), expected), rtol=1e-6)


@pytest.mark.parametrize(
    "own",
    [
        d.Normal(t([0.3, 1.0]), t([0.5, 2.0])),
        d.Gamma(t([0.5, 3.0]), t([0.5, 2.0])),
        d.Exponential(t([0.5, 2.0])),
        d.Bernoulli(t([0.3, 0.5])),
    ],
    ids=lambda each: type(each).__name__,
)
def test_entropy_from_the_log_normalizer(own):
    general = d.ExponentialFamily.entropy(own)
    np.testing.assert_allclose(general.numpy(), own.entropy().numpy(), rtol=1e-9)


REFUSED = [
    (lambda: d.Normal(pc.zeros(2), -pc.ones(2)), ["Normal", "scale", "lower_bound=0.0"]),
    (lambda: d.Normal("a", 1.0), ["numbers", "str"]),
    (lambda: d.Categorical(), ["Categorical", "probs", "logits", "neither"]),
    (lambda: d.Bernoulli(0.1, 0.2), ["Bernoulli", "both"]),
    (lambda: d.Categorical(pc.tensor(1.0)), ["Categorical", "probs", "()"]),
    (lambda: d.Multinomial(pc.tensor(2), pc.ones(2)), ["Multinomial", "total_count", "Tensor"]),
    (lambda: d.MultivariateNormal(pc.zeros(2)), ["MultivariateNormal", "scale_tril", "none"]),
    (lambda: d.MultivariateNormal(pc.zeros(2), -pc.eye(2)), ["covariance_matrix", "PositiveDef"]),
    (lambda: d.Normal(pc.zeros(2), 1.0).log_prob(pc.zeros(3)), ["Normal", "value", "(2,)", "(3,)"]),
    (lambda: d.Normal(0.0, 1.0).log_prob(0.0), ["Normal", "Tensor", "float"]),
    (lambda: d.Exponential(1.0).log_prob(pc.tensor(-1.0)), ["Exponential", "support", "-1"]),
    (lambda: d.Dirichlet(pc.ones(3)).log_prob(pc.ones(3)), ["Dirichlet", "Simplex"]),
    (lambda: d.Dirichlet(pc.ones(3)).log_prob(pc.ones(2)), ["Dirichlet", "(3,)", "(2,)"]),
    (lambda: d.Poisson(1.0).rsample(), ["Poisson", "rsample"]),
    (lambda: d.StudentT(1.0).cdf(pc.tensor(0.0)), ["StudentT", "cdf"]),
    (lambda: d.TransformedDistribution(d.Normal(0.0, 1.0), [3]), ["Transform", "3"]),
    (lambda: d.MixtureSameFamily(d.Categorical(pc.ones(2)), d.Normal(pc.zeros(3), 1.0)), ["(3,)"]),
    (lambda: d.Distribution.set_default_validate_args(1), ["bool", "1"]),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: "-".join(case[1]))
def test_errors_name_the_argument_they_got(case):
    call, words = case
    with pytest.raises((ValueError, TypeError, NotImplementedError)) as info:
        call()
    for word in words:
        assert word in str(info.value)


def test_checks_can_be_left_out():
    d.Distribution.set_default_validate_args(False)
    try:
        own = d.Normal(0.0, -1.0)
        assert own.log_prob(pc.tensor(0.0)).isnan().item()
    finally:
        d.Distribution.set_default_validate_args(True)
    assert d.Normal(0.0, -1.0, validate_args=False).scale.item() == -1


def test_expanding_keeps_parameters_and_their_kind():
    for own in (
        d.Chi2(t([2.0])),
        d.LogNormal(t([0.0]), t([1.0])),
        d.Bernoulli(logits=t([0.3])),
        d.OneHotCategorical(t([[0.3, 0.7]])),
        d.RelaxedOneHotCategorical(t(0.5), t([[0.3, 0.7]])),
        d.Independent(d.Normal(t([[0.0, 1.0]]), t(1.0)), 1),
    ):
        wide = own.expand((3, 1))
        assert type(wide) is type(own)
        assert tuple(wide.batch_shape) == (3, 1)
        assert wide.event_shape == own.event_shape
        x = own.sample()
        first, second = wide.log_prob(x), own.log_prob(x)
        np.testing.assert_allclose(first.numpy(), np.broadcast_to(second.numpy(), (3, 1)))


def test_the_old_name_for_several_samples():
    with pytest.warns(FutureWarning, match="sample_n"):
        assert tuple(d.Normal(pc.zeros(2), 1.0).sample_n(3).shape) == (3, 2)


def test_streams_follow_the_seed():
    for own, other in itertools.pairwise([d.Gamma(1.5, 1.0), d.Normal(0.0, 1.0), d.Beta(1.0, 2.0)]):
        for each in (own, other):
            pc.manual_seed(3)
            first = each.sample((3,))
            pc.manual_seed(3)
            assert pc.equal(first, each.sample((3,)))
