"""All distributions against torch's: values and gradients in float64."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import plait_core as pc
from plait_nn import distributions as ours

theirs = torch.distributions

a = np.array
FLOAT = np.float64

# name: parameters, values of log_prob (and of cdf, where there is one)
REAL = a([-2.5, -0.3, 0.4, 1.7])
POSITIVE = a([0.05, 0.4, 1.3, 6.0])
UNIT = a([0.02, 0.3, 0.55, 0.97])
COUNT = a([0.0, 1.0, 2.0, 3.0])
LOC, SCALE = a([0.3, -1.0, 2.0, 0.0]), a([0.5, 1.5, 1.0, 3.0])
SHAPE, RATE = a([0.4, 1.0, 2.5, 30.0]), a([2.0, 0.5, 1.0, 4.0])
CHANCE, LOGIT = a([0.1, 0.5, 0.75, 0.9]), a([-2.0, 0.0, 0.7, 3.0])
WEIGHTS = a([[0.2, 0.3, 0.5], [0.7, 0.1, 0.2]])
LOGITS = a([[0.2, -0.3, 1.5], [2.0, 0.1, -1.0]])
SHARES = a([[0.1, 0.3, 0.6], [0.5, 0.25, 0.25]])
ONE_HOT = a([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
VECTOR = a([[0.3, -0.2, 1.0], [1.1, 0.0, -2.0]])
FACTOR = a([[[1.0, 0, 0], [0.3, 0.8, 0], [-0.2, 0.5, 1.5]]])
COVARIANCE = FACTOR @ FACTOR.transpose(0, 2, 1)
WIDE = a([[0.5, 0.1], [-0.3, 0.2], [1.0, 0.7]])

CASES: list[tuple[str, dict[str, Any], np.ndarray[Any, Any]]] = [
    ("Normal", {"loc": LOC, "scale": SCALE}, REAL),
    ("LogNormal", {"loc": LOC, "scale": SCALE}, POSITIVE),
    ("HalfNormal", {"scale": SCALE}, POSITIVE),
    ("HalfCauchy", {"scale": SCALE}, POSITIVE),
    ("Uniform", {"low": LOC, "high": LOC + SCALE}, LOC + SCALE * UNIT),
    ("Exponential", {"rate": RATE}, POSITIVE),
    ("Laplace", {"loc": LOC, "scale": SCALE}, REAL),
    ("Cauchy", {"loc": LOC, "scale": SCALE}, REAL),
    ("Gumbel", {"loc": LOC, "scale": SCALE}, REAL),
    ("StudentT", {"df": a([0.7, 1.5, 3.0, 20.0]), "loc": LOC, "scale": SCALE}, REAL),
    ("Gamma", {"concentration": SHAPE, "rate": RATE}, POSITIVE),
    ("InverseGamma", {"concentration": SHAPE, "rate": RATE}, POSITIVE),
    ("Chi2", {"df": SHAPE}, POSITIVE),
    ("Beta", {"concentration1": SHAPE, "concentration0": RATE}, UNIT),
    ("Beta", {"concentration1": a([0.3, 0.5]), "concentration0": a([0.5, 0.2])}, UNIT[:2]),
    ("Kumaraswamy", {"concentration1": SHAPE[1:], "concentration0": RATE[1:]}, UNIT[1:]),
    ("FisherSnedecor", {"df1": SHAPE, "df2": a([1.0, 3.0, 5.0, 9.0])}, POSITIVE),
    ("Weibull", {"scale": SCALE, "concentration": SHAPE + 0.5}, POSITIVE),
    ("Pareto", {"scale": SCALE, "alpha": a([0.5, 1.5, 3.0, 4.0])}, SCALE * (1 + POSITIVE)),
    (
        "GeneralizedPareto",
        {"loc": LOC, "scale": SCALE, "concentration": a([0.3, 0.1, -0.5, 0.7])},
        LOC + 1.2 * SCALE * UNIT,
    ),
    ("LogisticNormal", {"loc": WEIGHTS, "scale": WEIGHTS + 0.5}, a([[0.1, 0.2, 0.3, 0.4]] * 2)),
    ("VonMises", {"loc": LOC, "concentration": RATE}, REAL),
    ("Dirichlet", {"concentration": WEIGHTS * 9}, SHARES),
    ("Dirichlet", {"concentration": WEIGHTS}, SHARES),
    ("Bernoulli", {"probs": CHANCE}, a([0.0, 1.0, 1.0, 0.0])),
    ("Bernoulli", {"logits": LOGIT}, a([0.0, 1.0, 1.0, 0.0])),
    ("ContinuousBernoulli", {"probs": CHANCE}, UNIT),
    ("ContinuousBernoulli", {"logits": LOGIT}, UNIT),
    ("Geometric", {"probs": CHANCE}, COUNT),
    ("Geometric", {"logits": LOGIT}, COUNT),
    ("Binomial", {"total_count": a([5.0] * 4), "probs": CHANCE}, COUNT),
    ("Binomial", {"total_count": 7, "logits": LOGIT}, COUNT),
    ("NegativeBinomial", {"total_count": a([1.0, 2.5, 7.0, 0.3]), "probs": CHANCE}, COUNT),
    ("NegativeBinomial", {"total_count": 4.0, "logits": LOGIT}, COUNT),
    ("Poisson", {"rate": RATE}, COUNT),
    ("Categorical", {"probs": WEIGHTS * 4}, a([2, 0])),
    ("Categorical", {"logits": LOGITS}, a([[2, 0], [1, 1]])),
    ("OneHotCategorical", {"probs": WEIGHTS}, ONE_HOT),
    ("OneHotCategorical", {"logits": LOGITS}, ONE_HOT),
    ("OneHotCategoricalStraightThrough", {"logits": LOGITS}, ONE_HOT),
    ("Multinomial", {"total_count": 3, "probs": WEIGHTS}, a([[1.0, 2, 0], [0, 0, 3]])),
    ("Multinomial", {"total_count": 3, "logits": LOGITS}, a([[1.0, 1, 1], [3, 0, 0]])),
    ("MultivariateNormal", {"loc": VECTOR, "covariance_matrix": COVARIANCE}, VECTOR[::-1].copy()),
    (
        "MultivariateNormal",
        {"loc": VECTOR, "precision_matrix": COVARIANCE[0]},
        VECTOR[::-1].copy(),
    ),
    ("MultivariateNormal", {"loc": VECTOR[0], "scale_tril": FACTOR}, VECTOR[::-1].copy()),
    (
        "LowRankMultivariateNormal",
        {"loc": VECTOR, "cov_factor": WIDE, "cov_diag": a([0.5, 1.0, 2.0])},
        VECTOR[::-1].copy(),
    ),
    ("RelaxedBernoulli", {"temperature": a(0.7), "probs": CHANCE}, UNIT),
    ("RelaxedBernoulli", {"temperature": a(0.7), "logits": LOGIT}, UNIT),
    ("RelaxedOneHotCategorical", {"temperature": a(0.7), "logits": LOGITS}, SHARES),
]
# where torch rounds: Bessel functions with coefficients of seven digits, a count in float32
LOOSE = {"VonMises": 1e-6, "Multinomial": 1e-7}
# torch gives nan where it is known (Kumaraswamy, Weibull), and where all corners are alike the
# first one instead of that of the largest concentration
OTHER_MODES = ("Kumaraswamy", "Weibull", "Beta", "Dirichlet")
FACTS = ("mean", "mode", "variance", "stddev", "entropy", "perplexity")


@pytest.fixture(autouse=True)
def _torch_in_float64() -> Iterator[None]:
    """Some of torch's distributions compare with constants of the default dtype."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def both(value: Any, grad: bool = False) -> tuple[Any, Any]:
    if not isinstance(value, np.ndarray):
        return value, value
    own, other = pc.tensor(value), torch.tensor(value)
    if grad and value.dtype == FLOAT:
        own.requires_grad_(True)
        other.requires_grad_(True)
    return own, other


def make(name: str, parameters: dict[str, Any], grad: bool = False) -> tuple[Any, Any, Any]:
    pairs = {key: both(value, grad) for key, value in parameters.items()}
    own = getattr(ours, name)(**{key: pair[0] for key, pair in pairs.items()})
    other = getattr(theirs, name)(**{key: pair[1] for key, pair in pairs.items()})
    return own, other, list(pairs.values())


def close(own: Any, other: Any, tolerance: float = 1e-9) -> None:
    assert tuple(own.shape) == tuple(other.shape)
    np.testing.assert_allclose(
        own.detach().numpy(), other.detach().numpy(), rtol=tolerance, atol=tolerance
    )


def finite(result: Any) -> Any:
    """Sum what is finite."""
    return result[result.isfinite()].sum() if result.ndim else result


def same_gradients(
    own_value: Any, other: Any, pairs: Any, tolerance: float = 1e-8, where: Any = None
) -> None:
    """Compare the gradients of two sums, ``where`` the summands that depend on them are finite."""
    if not other.requires_grad:
        assert not own_value.requires_grad
        return
    other.backward(retain_graph=True)
    own_value.backward(retain_graph=True)
    for left, right in pairs:
        if not isinstance(right, torch.Tensor) or not right.requires_grad:
            continue
        expected = torch.zeros_like(right) if right.grad is None else right.grad
        got = pc.zeros_like(left) if left.grad is None else left.grad
        own, target = got.numpy(), expected.numpy()
        if where is not None and where.shape == target.shape:
            own, target = own[where], target[where]
        np.testing.assert_allclose(own, target, rtol=tolerance, atol=tolerance)
        left.grad = right.grad = None


def ids(case: Any) -> str:
    return f"{case[0]}-{'-'.join(case[1])}"


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_facts(case: Any) -> None:
    name, parameters, _ = case
    tolerance = LOOSE.get(name, 1e-9)
    own, other, pairs = make(name, parameters, grad=True)
    assert tuple(own.batch_shape) == tuple(other.batch_shape)
    assert tuple(own.event_shape) == tuple(other.event_shape)
    assert own.has_rsample == other.has_rsample
    assert own.has_enumerate_support == other.has_enumerate_support
    known = 0
    for fact in FACTS:
        if fact == "mode" and name in OTHER_MODES:
            continue
        try:
            expected = getattr(other, fact)
            expected = expected() if callable(expected) else expected
        except NotImplementedError:
            continue
        got = getattr(own, fact)
        got = got() if callable(got) else got
        close(got, expected, tolerance)
        known += 1
        if fact != "mode":
            where = expected.isfinite().detach().numpy()
            sums = finite(got), finite(expected)
            same_gradients(*sums, pairs, max(tolerance, 1e-8), where)
    assert known or name.startswith("Relaxed") or name == "LogisticNormal"


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_log_prob(case: Any) -> None:
    name, parameters, values = case
    tolerance = LOOSE.get(name, 1e-9)
    own, other, pairs = make(name, parameters, grad=True)
    x, y = both(values, grad=not other.support.is_discrete)
    close(own.log_prob(x), other.log_prob(y), tolerance)
    pairs = [*pairs, (x, y)]
    same_gradients(own.log_prob(x).sum(), other.log_prob(y).sum(), pairs, max(tolerance, 1e-8))


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_cdf_and_icdf(case: Any) -> None:
    name, parameters, values = case
    own, other, pairs = make(name, parameters, grad=True)
    for method, value in (("cdf", values), ("icdf", UNIT[: len(values)])):
        x, y = both(value)
        try:
            expected = getattr(other, method)(y)
        except NotImplementedError:
            continue
        got = getattr(own, method)(x)
        close(got, expected)
        try:
            expected.sum().backward(retain_graph=True)
        except (NotImplementedError, RuntimeError):
            continue  # gammainc has no derivative for the shape in torch
        for _, right in pairs:
            right.grad = None
        same_gradients(got.sum(), expected.sum(), pairs)


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_expand_and_enumerate(case: Any) -> None:
    name, parameters, values = case
    tolerance = LOOSE.get(name, 1e-9)
    own, other, _ = make(name, parameters)
    shape = (2, *own.batch_shape)
    wide, wider = own.expand(shape), other.expand(shape)
    assert tuple(wide.batch_shape) == shape
    assert type(wide) is type(own)
    x, y = both(values)
    close(wide.log_prob(x), wider.log_prob(y), tolerance)
    assert tuple(wide.sample((3,)).shape) == tuple(wider.sample((3,)).shape)
    if other.has_enumerate_support:
        for flag in (True, False):
            close(wide.enumerate_support(flag), wider.enumerate_support(flag))
            close(own.enumerate_support(flag), other.enumerate_support(flag))


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_samples_have_shape_dtype_and_support(case: Any) -> None:
    name, parameters, _ = case
    own, other, _ = make(name, parameters, grad=True)
    for shape in ((), (4,), (2, 0, 3)):
        if 0 in shape and ("Categorical" in name or name == "Multinomial"):
            assert tuple(own.sample(shape).shape) == (*shape, *own.batch_shape, *own.event_shape)
            continue  # torch refuses
        drawn, expected = own.sample(shape), other.sample(shape)
        assert tuple(drawn.shape) == tuple(expected.shape)
        assert str(drawn.dtype).split(".")[1] == str(expected.dtype).split(".")[1]
        assert not drawn.requires_grad
        assert bool(own.support.check(drawn).all())
    if other.has_rsample:
        assert own.rsample((4,)).requires_grad
    else:
        with pytest.raises(NotImplementedError, match=name):
            own.rsample()


# whose cumulative probability has derivatives in torch
IMPLICIT = (
    *("Normal", "LogNormal", "HalfNormal", "HalfCauchy", "Uniform", "Exponential", "Laplace"),
    *("Cauchy", "Gumbel", "Kumaraswamy", "Weibull", "Pareto", "ContinuousBernoulli"),
)


@pytest.mark.parametrize("case", [case for case in CASES if case[0] in IMPLICIT], ids=ids)
def test_implicit_gradients_of_samples(case: Any) -> None:
    """A sample moves as its cumulative probability says: -(dF / dparameter) / density."""
    name, parameters, _ = case
    own, other, pairs = make(name, parameters, grad=True)
    pc.manual_seed(3)
    drawn = own.rsample()
    drawn.sum().backward()
    x = torch.tensor(drawn.detach().numpy())
    cumulative = other.cdf(x)
    slopes = torch.autograd.grad(
        cumulative, [right for _, right in pairs], (-other.log_prob(x)).exp().detach()
    )
    for (left, _), slope in zip(pairs, slopes, strict=True):
        np.testing.assert_allclose(left.grad.numpy(), -slope.numpy(), rtol=1e-6, atol=1e-9)


def test_gamma_and_dirichlet_samples_move_as_in_torch() -> None:
    shapes = a([0.05, 0.4, 1.0, 3.0, 40.0, 2000.0])
    alpha = pc.tensor(shapes, requires_grad=True)
    drawn = ours.Gamma(alpha, pc.ones_like(alpha)).rsample()
    drawn.sum().backward()
    expected = torch._standard_gamma_grad(
        torch.tensor(shapes), torch.tensor(drawn.detach().numpy())
    )
    np.testing.assert_allclose(alpha.grad.numpy(), expected.numpy(), rtol=1e-4)

    alpha = pc.tensor(WEIGHTS * 7, requires_grad=True)
    drawn = ours.Dirichlet(alpha).rsample()
    weights = a([1.0, -2.0, 0.5])
    (drawn * pc.tensor(weights)).sum().backward()
    x, w = torch.tensor(drawn.detach().numpy()), torch.tensor(weights)
    argument = torch.tensor(WEIGHTS * 7)
    total = argument.sum(-1, keepdim=True).expand_as(argument)
    moved = torch._dirichlet_grad(x, argument, total)
    expected = moved * (w - (x * w).sum(-1, keepdim=True))
    np.testing.assert_allclose(alpha.grad.numpy(), expected.numpy(), rtol=1e-3, atol=1e-6)


def test_divergences() -> None:
    compared = 0
    for first, second in itertools.product(CASES, CASES):
        if len({"Relaxed", "OneHotCategoricalStraightThrough"} & {first[0], second[0]}):
            continue
        if (first[0], second[0]) == ("ContinuousBernoulli", "Uniform"):
            continue  # PyTorch's is infinite where both have the support [0, 1]; it is not
        mine_p, p, pairs_p = make(first[0], first[1], grad=True)
        changed = {
            key: value * 1.1 + 0.01 if key in ("scale", "rate", "alpha", "df") else value
            for key, value in second[1].items()
        }
        mine_q, q, pairs_q = make(second[0], changed, grad=True)
        if p.batch_shape != q.batch_shape:
            continue
        try:
            expected = theirs.kl_divergence(p, q)
        except (NotImplementedError, RuntimeError, ValueError, AttributeError):
            continue
        try:
            got = ours.kl_divergence(mine_p, mine_q)
        except NotImplementedError:
            assert first[0] != second[0], (first, second)
            continue
        close(got, expected)
        same_gradients(finite(got), finite(expected), [*pairs_p, *pairs_q])
        compared += 1
    assert compared > 60


def test_classes_are_those_of_torch() -> None:
    """Every distribution has torch's bases, flags and members; some have more bases."""
    names = [
        name
        for name, each in vars(theirs).items()
        if isinstance(each, type) and issubclass(each, theirs.Distribution)
    ]
    assert len(names) > 40
    for name in names:
        own, other = getattr(ours, name), getattr(theirs, name)
        bases = {x.__name__ for x in other.__mro__ if issubclass(x, theirs.Distribution)}
        assert bases <= {each.__name__ for each in own.__mro__}, name
        for flag in ("has_rsample", "has_enumerate_support"):
            if isinstance(getattr(other, flag), bool):
                assert getattr(own, flag) == getattr(other, flag), name
    for name, parameters, _ in CASES:
        pairs = {key: both(value) for key, value in parameters.items()}
        own = getattr(ours, name)(**{key: pair[0] for key, pair in pairs.items()})
        other = getattr(theirs, name)(**{key: pair[1] for key, pair in pairs.items()})
        members = {each for each in {*dir(other), *vars(other)} if not each.startswith("_")}
        assert not {each for each in members if not hasattr(type(own), each)} - set(dir(own)), name
        assert own.has_rsample == other.has_rsample, name
        assert own.support.event_dim == other.support.event_dim, name
        assert set(own.arg_constraints) == set(other.arg_constraints), name
        if isinstance(other, theirs.TransformedDistribution):
            assert type(own.base_dist).__name__ == type(other.base_dist).__name__, name
            steps = [type(each).__name__.strip("_") for each in own.transforms]
            assert steps == [type(each).__name__.strip("_") for each in other.transforms], name


@pytest.mark.parametrize("name", ["ContinuousBernoulli", "Wishart"])
def test_entropy_of_exponential_families(name: str) -> None:
    parameters = {
        "ContinuousBernoulli": {"probs": pc.tensor([0.02, 0.3, 0.48, 0.5, 0.9])},
        "Wishart": {"df": pc.tensor([3.0, 4.5]), "covariance_matrix": pc.eye(2) * 2 + 0.5},
    }[name]
    d = getattr(ours, name)(**parameters)
    got = ours.ExponentialFamily.entropy(d)
    np.testing.assert_allclose(got.numpy(), d.entropy().numpy(), rtol=1e-4, atol=1e-4)


def test_validation_is_that_of_torch() -> None:
    wrong = {
        "Normal": {"loc": a([0.0]), "scale": a([-1.0])},
        "Categorical": {"probs": a([-0.5, 1.5])},
        "Bernoulli": {"probs": a([1.5])},
        "Dirichlet": {"concentration": a([0.0, 1.0])},
        "Gamma": {"concentration": a([1.0]), "rate": a([np.nan])},
        "Uniform": {"low": a([1.0]), "high": a([1.0])},
        "MultivariateNormal": {"loc": a([0.0]), "scale_tril": a([[-1.0]])},
        "Geometric": {"probs": a([0.0])},
    }
    for name, parameters in wrong.items():
        own = {key: both(value)[0] for key, value in parameters.items()}
        other = {key: both(value)[1] for key, value in parameters.items()}
        with pytest.raises(ValueError):  # noqa: PT011 - whatever torch says
            getattr(theirs, name)(**other)
        with pytest.raises(ValueError, match=name):
            getattr(ours, name)(**own)
        getattr(ours, name)(**own, validate_args=False)


TRANSFORMS: list[tuple[str, tuple[Any, ...], np.ndarray[Any, Any]]] = [
    ("ExpTransform", (), REAL),
    ("AbsTransform", (), REAL),
    ("SigmoidTransform", (), REAL),
    ("SoftplusTransform", (), REAL),
    ("TanhTransform", (), REAL),
    ("AffineTransform", (a(1.0), a([-2.0, 3.0, 0.5, 1.0])), REAL),
    ("AffineTransform", (1.0, -2.0), REAL),
    ("AffineTransform", (1.0, -2.0, 1), REAL),
    ("PowerTransform", (a(2.5),), POSITIVE),
    ("PowerTransform", (a(-1.0),), POSITIVE),
    ("SoftmaxTransform", (), LOGITS),
    ("StickBreakingTransform", (), LOGITS),
    ("LowerCholeskyTransform", (), FACTOR),
    ("PositiveDefiniteTransform", (), FACTOR),
    ("ReshapeTransform", ((3,), (3, 1)), LOGITS),
]


@pytest.mark.parametrize("case", TRANSFORMS, ids=lambda case: case[0])
def test_transforms(case: Any) -> None:
    name, settings, values = case
    pairs = [both(each, grad=True) for each in settings]
    own = getattr(ours.transforms, name)(*[pair[0] for pair in pairs])
    other = getattr(theirs.transforms, name)(*[pair[1] for pair in pairs])
    x, u = both(values, grad=True)
    y, v = own(x), other(u)
    close(y, v)
    close(own.inv(y), other.inv(v))
    assert own.bijective == other.bijective
    assert tuple(own.forward_shape(x.shape)) == tuple(other.forward_shape(u.shape))
    assert tuple(own.inverse_shape(y.shape)) == tuple(other.inverse_shape(v.shape))
    assert own.domain.event_dim == other.domain.event_dim
    assert own.codomain.event_dim == other.codomain.event_dim
    assert own == own.inv.inv and own != own.inv
    same_gradients((y * y).sum(), (v * v).sum(), [*pairs, (x, u)])
    try:
        expected = other.log_abs_det_jacobian(u, v)
    except NotImplementedError:
        return
    close(own.log_abs_det_jacobian(x, y), expected)
    close(own.inv.log_abs_det_jacobian(y, x), other.inv.log_abs_det_jacobian(v, u))


def chain(module: Any, tensor: Any) -> Any:
    t = module.transforms
    base = module.Normal(tensor(0.2 * LOC), tensor(0.1 * SCALE))
    scale = tensor(a([[1.0], [2.0]]))
    parts = [t.AffineTransform(0.5, scale), t.ExpTransform(), t.StickBreakingTransform()]
    return module.TransformedDistribution(base, parts)


def test_chains_of_transforms() -> None:
    torch.manual_seed(0)
    own, other = chain(ours, pc.tensor), chain(theirs, torch.tensor)
    assert tuple(own.batch_shape) == tuple(other.batch_shape) == (2,)
    assert tuple(own.event_shape) == tuple(other.event_shape) == (5,)
    drawn = other.sample((3,))
    close(own.log_prob(pc.tensor(drawn.numpy())), other.log_prob(drawn), 1e-7)
    close(
        own.expand((4, 2)).log_prob(pc.tensor(drawn[:1].numpy())),
        other.expand((4, 2)).log_prob(drawn[:1]),
        1e-7,
    )


def mixture(module: Any, tensor: Any) -> Any:
    parts = module.Normal(tensor(VECTOR), tensor(np.abs(VECTOR) + 0.5))
    return module.MixtureSameFamily(module.Categorical(logits=tensor(LOGITS)), parts)


def vectors(module: Any, tensor: Any) -> Any:
    rows = module.Independent(module.Laplace(tensor(VECTOR), tensor(np.ones(3))), 1)
    return module.MixtureSameFamily(module.Categorical(tensor(a([0.25, 0.75]))), rows)


@pytest.mark.parametrize("build", [mixture, vectors])
def test_mixtures(build: Any) -> None:
    own, other = build(ours, pc.tensor), build(theirs, torch.tensor)
    drawn = other.sample((5,))
    close(own.log_prob(pc.tensor(drawn.numpy())), other.log_prob(drawn))
    close(own.mean, other.mean)
    close(own.variance, other.variance)
    assert tuple(own.sample((5, 2)).shape) == tuple(other.sample((5, 2)).shape)
    shape = (3, *own.batch_shape)
    close(
        own.expand(shape).log_prob(pc.tensor(drawn[0].numpy())),
        other.expand(shape).log_prob(drawn[0]),
    )


CONSTRAINTS = ("real", "positive", "nonnegative", "unit_interval", "simplex", "lower_cholesky")


@pytest.mark.parametrize("name", [*CONSTRAINTS, "positive_definite", "real_vector"])
@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
def test_reaching_constraints(registry: str, name: str) -> None:
    matrix = name in ("lower_cholesky", "positive_definite")
    values = FACTOR if matrix else LOGITS
    expected = getattr(ours.constraints, name)
    if matrix and registry == "biject_to":
        with pytest.raises(NotImplementedError, match="constraint"):
            ours.biject_to(expected)
        return
    own = getattr(ours, registry)(expected)
    other = getattr(theirs, registry)(getattr(theirs.constraints, name))
    result = own(pc.tensor(values))
    close(result, other(torch.tensor(values)))
    assert bool(expected.check(result).all())


def test_texts() -> None:
    for name, parameters, _ in CASES[:7]:
        own, other, _ = make(name, {key: value[:1] for key, value in parameters.items()})
        single = {key: value[0] for key, value in parameters.items()}
        own, other, _ = make(name, {key: np.asarray(value) for key, value in single.items()})
        assert repr(own) == repr(other)
