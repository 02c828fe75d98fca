"""Transforms: inverses, log-determinants, chains, caches, constraints."""

import pickle

import numpy as np
import pytest

import plait_core as pc
from plait_nn import distributions as d
from plait_nn.distributions import constraints

X = np.array([[0.3, -1.2, 0.8], [1.7, 0.1, -0.4]])


def t(value):
    return pc.tensor(value, dtype=pc.float64)


SCALARS = [
    d.ExpTransform(),
    d.SigmoidTransform(),
    d.SoftplusTransform(),
    d.TanhTransform(),
    d.AffineTransform(1.0, -2.0),
    d.AffineTransform(t([1.0, 0.0, 2.0]), t([-2.0, 0.5, 3.0])),
    d.CumulativeDistributionTransform(d.Normal(t(0.2), t(1.5))),
    d.ComposeTransform([d.AffineTransform(0.5, 2.0), d.TanhTransform()]),
    d.ComposeTransform([d.ExpTransform(), d.PowerTransform(t(-0.5))]),
    d.ComposeTransform([d.ExpTransform(), d.ExpTransform().inv, d.SigmoidTransform()]),
]


def name(value):
    return type(value).__name__


@pytest.mark.parametrize("transform", SCALARS, ids=name)
def test_of_numbers(transform):
    x = t(X)
    y = transform(x)
    np.testing.assert_allclose(transform.inv(y).numpy(), X, rtol=1e-9, atol=1e-12)
    slope = (transform(x + 1e-6) - transform(x - 1e-6)).numpy() / 2e-6
    own = transform.log_abs_det_jacobian(x, y).numpy()
    np.testing.assert_allclose(own, np.log(np.abs(slope)), rtol=1e-6, atol=1e-7)
    back = transform.inv.log_abs_det_jacobian(y, x).numpy()
    np.testing.assert_allclose(back, -own, rtol=1e-12)
    sign = np.broadcast_to(np.asarray(transform.sign), X.shape)
    assert (np.sign(slope) == sign).all()
    assert transform.bijective
    assert bool(transform.codomain.check(y).all())


def jacobian(transform, x, count):
    h = 1e-6
    rows = []
    for i in range(len(x)):
        step = np.zeros(len(x))
        step[i] = h
        rows.append((transform(t(x + step)) - transform(t(x - step))).numpy()[:count] / (2 * h))
    return np.linalg.slogdet(np.array(rows))[1]


def test_breaking_sticks():
    sticks = d.StickBreakingTransform()
    x = t(X)
    y = sticks(x)
    np.testing.assert_allclose(y.sum(-1).numpy(), 1, rtol=1e-12)
    np.testing.assert_allclose(sticks.inv(y).numpy(), X, rtol=1e-9)
    own = sticks.log_abs_det_jacobian(x, y).numpy()
    np.testing.assert_allclose(own, [jacobian(sticks, row, 3) for row in X], rtol=1e-6)
    assert tuple(sticks.forward_shape((2, 3))) == (2, 4)
    assert tuple(sticks.inverse_shape((2, 4))) == (2, 3)


def test_matrices():
    x = t(np.arange(9.0).reshape(3, 3) / 4 - 1)
    lower = d.LowerCholeskyTransform()
    assert bool(constraints.lower_cholesky.check(lower(x)))
    np.testing.assert_allclose(lower.inv(lower(x)).numpy(), np.tril(x.numpy()), rtol=1e-12)
    definite = d.PositiveDefiniteTransform()
    assert bool(constraints.positive_definite.check(definite(x)))
    np.testing.assert_allclose(definite.inv(definite(x)).numpy(), np.tril(x.numpy()), rtol=1e-9)


def test_parts():
    parts = [d.ExpTransform(), d.AffineTransform(0.0, 2.0), d.TanhTransform()]
    stacked = d.StackTransform(parts, dim=1)
    joined = d.CatTransform(parts, dim=1)
    expected = np.stack([np.exp(X[:, 0]), 2 * X[:, 1], np.tanh(X[:, 2])], 1)
    for each in (stacked, joined):
        y = each(t(X))
        np.testing.assert_allclose(y.numpy(), expected, rtol=1e-12)
        np.testing.assert_allclose(each.inv(y).numpy(), X, rtol=1e-9)
        own = each.log_abs_det_jacobian(t(X), y).numpy()
        logs = [X[:, 0], np.full(2, np.log(2)), np.log(1 - np.tanh(X[:, 2]) ** 2)]
        np.testing.assert_allclose(own, np.stack(logs, 1), rtol=1e-9)
    with pytest.raises(ValueError, match="size 3 in dimension 1"):
        stacked(t(X[:, :2]))
    with pytest.raises(ValueError, match="length"):
        d.CatTransform(parts, lengths=[1, 2])


def test_shapes_of_events():
    flat = d.ReshapeTransform((2, 3), (6,))
    assert tuple(flat(t(X)).shape) == (6,)
    assert tuple(flat.log_abs_det_jacobian(t(X), flat(t(X))).shape) == ()
    rows = d.IndependentTransform(d.ExpTransform(), 1)
    assert (rows.domain.event_dim, rows.codomain.event_dim) == (1, 1)
    np.testing.assert_allclose(rows.log_abs_det_jacobian(t(X), rows(t(X))).numpy(), X.sum(-1))
    chain = d.ComposeTransform([d.AffineTransform(0.0, 2.0), d.StickBreakingTransform()])
    y = chain(t(X))
    assert chain.domain.event_dim == 1
    own = chain.log_abs_det_jacobian(t(X), y).numpy()
    inner = d.StickBreakingTransform().log_abs_det_jacobian(t(2 * X), y).numpy()
    np.testing.assert_allclose(own, inner + 3 * np.log(2), rtol=1e-9)
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(5,\)"):
        d.ReshapeTransform((2, 3), (5,))


def test_caches_give_the_input_back():
    x = t([20.0])
    plain, cached = d.TanhTransform(), d.TanhTransform(cache_size=1)
    assert not bool(plain.inv(plain(x)).isfinite())
    y = cached(x)
    assert cached.inv(y) is x
    assert cached(x) is y
    with pytest.raises(ValueError, match="cache_size"):
        d.TanhTransform(cache_size=2)


def test_equality_and_texts():
    assert d.ExpTransform() == d.ExpTransform()
    assert d.ExpTransform() != d.SigmoidTransform()
    assert d.AffineTransform(0.0, 1.0) == d.AffineTransform(0.0, 1.0)
    assert d.AffineTransform(0.0, 1.0) != d.AffineTransform(0.0, 2.0)
    assert d.ExpTransform().inv == d.ExpTransform().inv
    assert repr(d.ExpTransform().inv) == "ExpTransform().inv"
    assert len({d.ExpTransform(), d.ExpTransform()}) == 2  # hashed by identity, as in PyTorch


REACHED = [
    constraints.real,
    constraints.positive,
    constraints.nonnegative,
    constraints.greater_than(2.0),
    constraints.greater_than_eq(-1.0),
    constraints.less_than(-1.0),
    constraints.unit_interval,
    constraints.interval(-2.0, 5.0),
    constraints.half_open_interval(0.0, 3.0),
    constraints.real_vector,
    constraints.independent(constraints.positive, 1),
    constraints.simplex,
    constraints.cat([constraints.positive, constraints.real], 1, [1, 2]),
    constraints.stack([constraints.positive, constraints.real, constraints.unit_interval], 1),
]


@pytest.mark.parametrize("expected", REACHED, ids=repr)
@pytest.mark.parametrize("registry", [d.biject_to, d.transform_to], ids=["biject", "transform"])
def test_constraints_are_reached(registry, expected):
    transform = registry(expected)
    y = transform(t(X))
    assert bool(expected.check(y).all())
    assert transform.bijective or registry is d.transform_to


def test_registries_take_constraints_of_others():
    class Even(constraints.Constraint):
        def check(self, value):
            return value % 2 == 0

    with pytest.raises(NotImplementedError, match="Even"):
        d.biject_to(Even())
    d.biject_to.register(Even)(lambda constraint: d.AffineTransform(0, 2))
    assert d.biject_to(Even())(t(3.0)).item() == 6
    with pytest.raises(TypeError, match="register"):
        d.biject_to.register(3, lambda constraint: None)


CHECKED = [
    (constraints.boolean, [0.0, 1.0, 0.5], [True, True, False]),
    (constraints.nonnegative_integer, [0.0, 2.0, -1.0, 0.5], [True, True, False, False]),
    (constraints.positive_integer, [0.0, 2.0], [False, True]),
    (constraints.integer_interval(1, 3), [0.0, 1.0, 3.0, 4.0], [False, True, True, False]),
    (constraints.real, [0.0, np.inf, np.nan], [True, True, False]),
    (constraints.one_hot, [[0.0, 1.0], [1.0, 1.0]], [True, False]),
    (constraints.simplex, [[0.25, 0.75], [0.5, 0.6], [-0.5, 1.5]], [True, False, False]),
    (constraints.multinomial(3), [[1.0, 2.0], [3.0, 1.0]], [True, False]),
    (
        constraints.lower_triangular,
        [[[1.0, 0.0], [2.0, 3.0]], [[1.0, 1.0], [0.0, 1.0]]],
        [True, False],
    ),
    (constraints.symmetric, [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 1.0], [0.0, 1.0]]], [True, False]),
    (
        constraints.positive_definite,
        [[[1.0, 0.5], [0.5, 1.0]], [[1.0, 2.0], [2.0, 1.0]]],
        [True, False],
    ),
    (
        constraints.positive_semidefinite,
        [[[1.0, 1.0], [1.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]]],
        [True, False],
    ),
    (constraints.square, [[[1.0, 1.0]]], [False]),
]


@pytest.mark.parametrize("case", CHECKED, ids=lambda case: repr(case[0]))
def test_checks(case):
    constraint, values, expected = case
    assert constraint.check(t(values)).tolist() == expected


def test_what_depends_is_not_checked():
    assert constraints.is_dependent(d.Uniform.support)
    assert constraints.is_dependent(constraints.independent(constraints.dependent, 1))
    with pytest.raises(ValueError, match="depends"):
        constraints.dependent.check(t(0.0))
    assert repr(d.Uniform(0.0, 1.0).support).startswith("Interval(lower_bound=")


def test_an_inverse_is_kept():
    plain = d.ExpTransform()
    assert plain._inv is None and plain.inv is plain.inv and plain.inv.inv is plain
    chain = d.ComposeTransform([d.AffineTransform(0.0, 2.0), d.ExpTransform()])
    assert chain.inv.inv is chain and chain.inv is chain.inv
    again = pickle.loads(pickle.dumps(plain.inv))
    assert again == plain.inv or type(again) is type(plain.inv)
    assert pickle.loads(pickle.dumps(plain))._inv is None  # it is made again when it is asked for


def test_the_factor_has_pytorchs_name():
    class Own(d.MultivariateNormal):
        factor = pc.eye(2) * 2

        @property
        def _unbroadcasted_scale_tril(self):
            return self.factor

        @_unbroadcasted_scale_tril.setter
        def _unbroadcasted_scale_tril(self, value):
            pass

    result = Own(pc.zeros(2), covariance_matrix=pc.eye(2))
    assert result.variance.tolist() == [4, 4]
