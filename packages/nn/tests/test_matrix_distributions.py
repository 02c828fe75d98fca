"""Distributions of matrices: LKJ's of correlations, Wishart's of covariances."""

import math

import pytest

import plait_core as pc
from plait_autograd import functional, grad
from plait_nn import distributions as d

V = pc.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=pc.float64)


def t(value, **options):
    return pc.tensor(value, dtype=pc.float64, **options)


# ---- correlations


@pytest.mark.parametrize("count", [1, 3, 6])
def test_correlation_factors_and_back(count):
    transform = d.CorrCholeskyTransform()
    x = pc.linspace(-1.5, 1.2, 2 * count, dtype=pc.float64).reshape(2, count)
    y = transform(x)
    size = y.shape[-1]
    assert y.shape == (2, size, size) == transform.forward_shape(x.shape)
    assert transform.inverse_shape(y.shape) == x.shape
    assert d.constraints.corr_cholesky.check(y).all()
    pc.testing.assert_close((y @ y.mT).diagonal(dim1=-2, dim2=-1), pc.ones_like(y[..., 0]))
    pc.testing.assert_close(transform.inv(y), x)


def test_the_jacobian_of_correlation_factors():
    transform = d.CorrCholeskyTransform()
    x = t([0.3, -0.7, 1.1])
    rows, columns = pc.tril_indices(3, 3, -1)
    jacobian = functional.jacobian(lambda x: transform(x)[rows, columns], x)
    expected = pc.linalg.det(jacobian).abs().log()
    pc.testing.assert_close(transform.log_abs_det_jacobian(x, transform(x)), expected)


def test_what_is_no_correlation_factor():
    constraint = d.constraints.corr_cholesky
    assert constraint.check(pc.eye(3)) and not constraint.check(2 * pc.eye(3))
    assert not constraint.check(pc.tensor([[1.0, 0.0], [0.6, -0.8]]))
    assert isinstance(d.biject_to(constraint), d.CorrCholeskyTransform)
    with pytest.raises(ValueError, match=r"n \(n - 1\) / 2"):
        d.CorrCholeskyTransform().forward_shape((4,))
    with pytest.raises(ValueError, match="square"):
        d.CorrCholeskyTransform().inverse_shape((2, 3))


def test_lower_triangles_as_vectors():
    from plait_nn.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix

    for diag, count in [(0, 6), (-1, 3), (-2, 1)]:
        vec = t(range(1, count + 1))
        size = 3
        matrix = vec_to_tril_matrix(vec, diag)
        assert matrix.shape == (size, size) and (matrix.tril(diag) == matrix).all()
        assert (tril_matrix_to_vec(matrix, diag) == vec).all()
    with pytest.raises(ValueError, match="not a lower triangle"):
        vec_to_tril_matrix(t([1, 2]))


def test_lkj_of_two_rows_is_a_beta_distribution():
    # the correlation r has a density proportional to (1 - r^2)^(eta - 1)
    eta = 2.5
    r = t([-0.9, -0.2, 0.0, 0.5])
    diagonal = (1 - r * r).sqrt()
    factors = pc.stack(
        [pc.stack([pc.ones_like(r), pc.zeros_like(r)], -1), pc.stack([r, diagonal], -1)], -2
    )
    # the factor's element is r itself, so that no Jacobian comes in
    expected = d.Beta(t(eta), t(eta)).log_prob((r + 1) / 2) - math.log(2)
    pc.testing.assert_close(d.LKJCholesky(2, t(eta)).log_prob(factors), expected)


def test_lkj_samples():
    pc.manual_seed(3)
    lkj = d.LKJCholesky(3, t([1.0, 4.0]))
    factors = lkj.sample((20_000,))
    assert factors.shape == (20_000, 2, 3, 3) and lkj.support.check(factors).all()
    assert not factors.requires_grad and lkj.log_prob(factors).shape == (20_000, 2)
    correlations = (factors @ factors.mT)[..., [1, 2, 2], [0, 0, 1]]
    # each correlation alone: (r + 1) / 2 is Beta(a, a) with a = eta + (n - 2) / 2
    a = lkj.concentration + 0.5
    expected = (1 / (2 * a + 1)).unsqueeze(-1).expand(2, 3)
    assert (correlations.mean(0).abs() < 0.02).all()
    pc.testing.assert_close(correlations.var(0), expected, rtol=0.05, atol=0)
    wide = d.LKJCholesky(3, t(2.0)).expand((4,))
    assert wide.sample((2,)).shape == (2, 4, 3, 3)
    for refused in (lambda: d.LKJCholesky(1), lambda: d.LKJCholesky(3, -1.0)):
        with pytest.raises(ValueError, match=r"dim|concentration"):
            refused()


# ---- covariances


def test_wishart_of_one_row_is_a_gamma_distribution():
    df, v = 3.5, 0.7
    x = t([0.2, 1.0, 5.0])
    wishart = d.Wishart(t(df), t([[v]]))
    gamma = d.Gamma(t(df / 2), t(1 / (2 * v)))
    pc.testing.assert_close(wishart.log_prob(x[:, None, None]), gamma.log_prob(x))
    pc.testing.assert_close(wishart.entropy(), gamma.entropy())
    pc.testing.assert_close(wishart.variance[0, 0], gamma.variance)


def test_wishart_by_any_of_its_matrices():
    X = V + t([[1.0, 0.2], [0.2, 0.5]])
    distribution = d.Wishart(t([3.0, 4.5]), V)
    for name, matrix in [
        ("precision_matrix", pc.linalg.inv(V)),
        ("scale_tril", pc.linalg.cholesky(V)),
    ]:
        other = d.Wishart(t([3.0, 4.5]), **{name: matrix})
        pc.testing.assert_close(other.log_prob(X), distribution.log_prob(X))
        pc.testing.assert_close(other.covariance_matrix, V.expand(2, 2, 2))
        pc.testing.assert_close(other.precision_matrix, pc.linalg.inv(V).expand(2, 2, 2))
    assert distribution.mode[0].isnan().all()
    pc.testing.assert_close(distribution.mode[1], 1.5 * V)
    pc.testing.assert_close(
        d.Wishart(t(3.0), V).expand((2,)).log_prob(X)[1], distribution.log_prob(X)[0]
    )


def test_wishart_samples():
    pc.manual_seed(4)
    df = t(4.0, requires_grad=True)
    wishart = d.Wishart(df, V)
    samples = wishart.rsample((40_000,))
    assert samples.shape == (40_000, 2, 2) and wishart.support.check(samples).all()
    pc.testing.assert_close(samples.mean(0), wishart.mean, rtol=0.03, atol=0.03)
    pc.testing.assert_close(samples.var(0), wishart.variance, rtol=0.06, atol=0)
    pc.testing.assert_close(-wishart.log_prob(samples).mean(), wishart.entropy(), rtol=0.02, atol=0)
    # the mean is df * V, and samples follow it
    (slope,) = grad(samples.diagonal(dim1=-2, dim2=-1).sum(-1).mean(), df)
    assert float(slope) == pytest.approx(3.0, rel=0.03)


def test_what_wishart_refuses():
    with pytest.raises(ValueError, match="more than 1"):
        d.Wishart(t(1.0), V)
    with pytest.raises(ValueError, match="is required; got none"):
        d.Wishart(t(3.0))
    with pytest.raises(ValueError, match="two dimensions"):
        d.Wishart(t(3.0), t([1.0]))


@pytest.mark.parametrize("size", [1, 3])
def test_wishart_draws_the_numbers_below_the_diagonal(size: int) -> None:
    factor = (pc.eye(size) + 0.3 * pc.ones(size, size).tril(-1)).double()
    distribution = d.Wishart(t([5.0, 6.0]), scale_tril=factor)
    pc.manual_seed(3)
    sample = distribution._bartlett_sampling((4,))
    pc.manual_seed(3)
    squares = d.Chi2(t([[5.0], [6.0]]) - pc.arange(size)).sample((4,))
    root = pc.diag_embed(squares.sqrt())
    rows, columns = pc.tril_indices(size, size, -1)
    root[..., rows, columns] = pc.randn(4, 2, len(rows), dtype=pc.float64)
    root = factor @ root
    pc.testing.assert_close(sample, root @ root.mT)
