"""Linear algebra: properties of factors, batches, layouts, errors; specs' tests have the values."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import plait_core as pc

DTYPES = ["float32", "float64", "complex64", "complex128"]
la = pc.linalg


def draw(*shape: int, dtype: str = "float64", seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        x = x + 1j * rng.standard_normal(shape)
    return pc.from_numpy(x.astype(dtype))


def array(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(x.numpy())


def adjoint(x: Any) -> np.ndarray[Any, Any]:
    return np.conj(np.swapaxes(array(x), -1, -2))


def close(a: Any, b: Any, dtype: str) -> None:
    bound = 1e-4 if dtype in ("float32", "complex64") else 1e-10
    np.testing.assert_allclose(a, b, rtol=bound, atol=bound)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 5, 3), (3, 2, 6), (1, 1)])
def test_svd(dtype: str, shape: tuple[int, ...]) -> None:
    a = draw(*shape, dtype=dtype)
    for full in (False, True):
        u, s, vh = la.svd(a, full)
        k = min(shape[-2:])
        close(array(u)[..., :k] * array(s)[..., None, :] @ array(vh)[..., :k, :], array(a), dtype)
        for q in (array(u), adjoint(vh)):
            product = np.swapaxes(q.conj(), -1, -2) @ q
            close(product, np.broadcast_to(np.eye(q.shape[-1]), product.shape), dtype)
        assert s.dtype == (pc.float32 if dtype in ("float32", "complex64") else pc.float64)
        assert (np.diff(array(s)) <= 0).all()
    close(array(la.svdvals(a)), array(s), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvalues(dtype: str) -> None:
    a = draw(2, 5, 5, dtype=dtype)
    w, v = la.eig(a)
    close(array(a) @ array(v), array(v) * array(w)[..., None, :], dtype)
    close(np.sort_complex(array(la.eigvals(a))), np.sort_complex(array(w)), dtype)
    h = pc.from_numpy(array(a) + adjoint(a))
    w, v = la.eigh(h)
    close(array(h) @ array(v), array(v) * array(w)[..., None, :], dtype)
    close(array(la.eigvalsh(h, "U")), array(w), dtype)
    assert not w.dtype.is_complex


def test_a_symmetric_matrix_is_read_from_one_triangle() -> None:
    a = draw(4, 4)
    low, high = np.tril(array(a)), np.triu(array(a))
    for name, triangle in (("L", low + np.tril(low, -1).T), ("U", high + np.triu(high, 1).T)):
        close(array(la.eigvalsh(a, name)), np.linalg.eigvalsh(triangle), "float64")
    definite = array(a) @ array(a).T + np.eye(4)
    spoiled = definite.copy()
    spoiled[np.triu_indices(4, 1)] = np.nan
    close(array(la.cholesky(pc.from_numpy(spoiled))), np.linalg.cholesky(definite), "float64")


@pytest.mark.parametrize("dtype", DTYPES)
def test_factors_multiply_to_the_matrix(dtype: str) -> None:
    a = draw(2, 4, 3, dtype=dtype)
    p, low, up = la.lu(a)
    close(array(p) @ array(low) @ array(up), array(a), dtype)
    for mode in ("reduced", "complete"):
        q, r = la.qr(a, mode)
        close(array(q) @ array(r), array(a), dtype)
    close(array(la.householder_product(*pc.geqrf(a))), array(la.qr(a).Q), dtype)
    square = pc.from_numpy(array(a) @ adjoint(a) + 2 * np.eye(4, dtype=dtype))
    low = la.cholesky(square)
    close(array(low) @ adjoint(low), array(square), dtype)
    upper = la.cholesky(square, upper=True)
    close(adjoint(upper) @ array(upper), array(square), dtype)
    close(array(pc.cholesky_inverse(low)) @ array(square), [np.eye(4)] * 2, dtype)
    close(array(pc.cholesky_solve(a, low)), np.linalg.solve(array(square), array(a)), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_solutions(dtype: str) -> None:
    a = draw(3, 1, 4, 4, dtype=dtype)
    b = draw(2, 4, 2, dtype=dtype, seed=1)
    x = la.solve(a, b)
    close(array(a) @ array(x), np.broadcast_to(array(b), x.shape), dtype)
    x = la.solve(a, b.transpose(1, 2), left=False)
    close(array(x) @ array(a), np.broadcast_to(np.swapaxes(array(b), 1, 2), x.shape), dtype)
    close(array(la.inv(a)) @ array(a), np.broadcast_to(np.eye(4), a.shape), dtype)
    lu, pivots = la.lu_factor(a)
    for left in (True, False):
        for adjointly in (True, False):
            right = b if left else b.transpose(1, 2)
            matrix = adjoint(a) if adjointly else array(a)
            x = array(la.lu_solve(lu, pivots, right, left=left, adjoint=adjointly))
            result = matrix @ x if left else x @ matrix
            close(result, np.broadcast_to(array(right), result.shape), dtype)
    sign, size = la.slogdet(a)
    close(array(sign) * np.exp(array(size)), array(la.det(a)), dtype)
    close(array(la.det(a)), np.linalg.det(array(a)), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_least_squares_and_pseudo_inverses(dtype: str) -> None:
    a, b = draw(2, 5, 3, dtype=dtype), draw(5, 2, dtype=dtype, seed=1)
    x, left, rank, values = la.lstsq(a, b, driver="gelsd")
    p = array(la.pinv(a))
    close(array(x), p @ array(b), dtype)
    close(array(left), (abs(array(a) @ array(x) - array(b)) ** 2).sum(-2), dtype)
    assert rank.tolist() == [3, 3]
    close(array(values), array(la.svdvals(a)), dtype)
    close(array(a) @ p @ array(a), array(a), dtype)
    assert la.lstsq(a, b).singular_values.numel() == 0


@pytest.mark.parametrize(
    ("a", "b"), [((4, 3), (5, 4, 2)), ((4, 3), (2, 5, 4, 2)), ((1, 4, 3), (2, 5, 4, 2))]
)
def test_ranks_are_those_of_the_matrices(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    result = la.lstsq(draw(*a), draw(*b, seed=1), driver="gelsd")
    assert result.rank.shape == a[:-2] and result.singular_values.shape == (*a[:-2], 3)
    assert set(result.rank.flatten().tolist()) == {3}


def test_a_large_batch_runs_in_parallel_and_gives_the_same(by_threads: Any) -> None:
    a = draw(200, 8, 8)
    result = by_threads(lambda: array(la.inv(a)), (1, 2, 3))
    np.testing.assert_array_equal(result[0], result[1])
    np.testing.assert_array_equal(result[0], result[2])


@pytest.mark.parametrize("norm", [1e-8, 1e-2, 1.0, 50.0])
def test_exponentials(norm: float) -> None:
    a = array(draw(3, 3)) * norm
    w, v = np.linalg.eig(a)
    want = (v * np.exp(w)) @ np.linalg.inv(v)
    scale = abs(want).max()
    np.testing.assert_allclose(
        array(la.matrix_exp(pc.from_numpy(a))) / scale, want.real / scale, atol=1e-9
    )
    assert np.isnan(array(la.matrix_exp(pc.full((2, 2), float("nan"))))).all()


def test_the_first_matrix_that_fails_is_named() -> None:
    a = np.tile(np.eye(3), (4, 5, 1, 1))
    a[2, 1] = a[3, 0] = 0
    with pytest.raises(
        la.LinAlgError, match=r"linalg_inv: `A` at batch index \(2, 1\) is singular"
    ):
        la.inv(pc.from_numpy(a))
    info = la.inv_ex(pc.from_numpy(a)).info
    assert (info.numpy() != 0).sum() == 2
    a[1, 3] = -1
    with pytest.raises(RuntimeError, match=r"batch index \(1, 3\) is not positive definite"):
        la.cholesky(pc.from_numpy(a))
    with pytest.raises(RuntimeError, match=r"`A` is singular"):
        la.solve(pc.zeros(2, 2), pc.ones(2))


def test_halves_are_computed_in_single_precision() -> None:
    a = pc.from_numpy(np.array([[2.0, 1.0], [0.0, 4.0]], "float16"))
    result = la.inv(a)
    assert result.dtype == pc.float16
    assert result.tolist() == [[0.5, -0.125], [0.0, 0.25]]


def test_results_have_names() -> None:
    result = la.svd(pc.eye(2))
    assert (result.U.tolist(), result.S.tolist()) == (result[0].tolist(), [1.0, 1.0])
    assert type(result).__name__ == "linalg_svd"
    assert la.lu_factor_ex(pc.eye(2)).pivots.tolist() == [1, 2]


def test_out() -> None:
    a = draw(3, 3)
    q, r = pc.empty(3, 3, dtype=pc.float64), pc.empty(3, 3, dtype=pc.float64)
    assert la.qr(a, out=(q, r))[0] is q
    close(array(q) @ array(r), array(a), "float64")
    wide = pc.zeros(6, 6, dtype=pc.float64)
    la.inv(a, out=wide[::2, ::2])
    close(array(wide)[::2, ::2], np.linalg.inv(array(a)), "float64")
    assert array(wide)[1::2].sum() == 0


def test_chains() -> None:
    sizes = [3, 7, 2, 5, 4]
    chain = [draw(a, b, seed=a) for a, b in itertools.pairwise(sizes)]
    want = np.linalg.multi_dot([array(x) for x in chain])
    close(array(la.multi_dot(chain)), want, "float64")
    close(array(pc.chain_matmul(*chain)), want, "float64")
    ends = [chain[0][0], *chain[1:-1], chain[-1][:, 1]]
    close(array(la.multi_dot(ends)), want[0, 1], "float64")
    with pytest.raises(pc.ShapeError, match=r"`tensors\[1\]` of shape \(2, 5\) does not follow"):
        la.multi_dot([chain[0], chain[2]])
    with pytest.raises(ValueError, match="at least 2"):
        la.multi_dot(chain[:1])
    with pytest.raises(pc.ShapeError, match=r"`tensors\[1\]` must have 2 dimensions"):
        la.multi_dot([chain[0], pc.ones(7), chain[1]])


def test_block_diag_and_tensordot() -> None:
    result = pc.block_diag(pc.tensor([[1, 2]]), pc.tensor(3), pc.tensor([4, 5]))
    assert result.tolist() == [[1, 2, 0, 0, 0], [0, 0, 3, 0, 0], [0, 0, 0, 4, 5]]
    a, b = draw(2, 3, 4), draw(4, 3, 5, seed=1)
    want = np.tensordot(array(a), array(b), ([1, 2], [1, 0]))
    close(array(pc.tensordot(a, b, ([1, 2], [1, 0]))), want, "float64")
    close(array(pc.tensordot(a, b, pc.tensor([[1, 2], [1, 0]]))), want, "float64")
    close(array(pc.tensordot(a, b.transpose(0, 1), 2)), want, "float64")
    with pytest.raises(ValueError, match="`dims`"):
        pc.tensordot(a, b, ([1], [1], [2]))
    with pytest.raises(ValueError, match=r"block_diag: `tensors\[1\]`"):
        pc.block_diag(a[0], a)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_factors_of_small_matrices_are_those_of_lapack(dtype: str) -> None:
    rng = np.random.default_rng(5)
    for m in range(1, 19):
        for n in (1, 2, 3, 7, 8, 9, 16, 17):
            a = rng.standard_normal((2, m, n)).astype(dtype)
            a[1, :, n // 2] = 0
            for scale in (1.0, 1e-30, 1e30) if dtype == "float32" else (1.0, 1e-200, 1e200):
                for mode in ("reduced", "complete"):
                    want = np.linalg.qr(a * a.dtype.type(scale), mode)
                    got = pc.linalg.qr(pc.tensor(a * a.dtype.type(scale)), mode)
                    size = 64 * np.finfo(dtype).eps
                    # behind a column of zeros the vectors of Q are any that are orthonormal
                    np.testing.assert_allclose(got[0].numpy()[0], want[0][0], atol=size * 16)
                    q, r = (x.numpy().astype("float64") for x in got)
                    np.testing.assert_allclose(
                        q @ r / scale, a.astype("float64"), atol=size, rtol=size
                    )
                    np.testing.assert_allclose(
                        q.swapaxes(-1, -2) @ q,
                        np.broadcast_to(np.eye(q.shape[-1]), (2, *[q.shape[-1]] * 2)),
                        atol=size,
                    )
                    assert (r == np.triu(r)).all()
