"""Factors of matrices and triangular systems on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from on_both import check, numbers

import plait_core as pc

DTYPES = ["float32", "float64", "complex64", "complex128"]
TOLERANCE = {"float32": 1e-4, "complex64": 1e-4, "float64": 1e-10, "complex128": 1e-10}
SIZES = [1, 2, 5, 17, 33, 70]


def well_conditioned(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    """Return matrices whose diagonal is large."""
    n = shape[-1]
    return numbers(shape, dtype, seed) + 2 * n**0.5 * pc.eye(shape[-2], n).to(getattr(pc, dtype))


def positive(shape: tuple[int, ...], dtype: str) -> Any:
    """Return Hermitian positive definite matrices."""
    a = numbers(shape, dtype)
    eye = pc.eye(shape[-1]).to(getattr(pc, dtype))
    return a @ a.transpose(-1, -2).conj() / shape[-1] + eye


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_cholesky(n: int, dtype: str) -> None:
    a = positive((2, 3, n, n), dtype)
    for upper in (False, True):
        check(lambda t, u=upper: pc.linalg.cholesky(t, upper=u), a, tolerance=TOLERANCE[dtype])
        factor = pc.linalg.cholesky(a, upper=upper)
        check(lambda t, u=upper: pc.cholesky_inverse(t, u), factor, tolerance=TOLERANCE[dtype])
    check(lambda t: pc.linalg.cholesky(t.transpose(0, 1)), a, tolerance=TOLERANCE[dtype])


def test_cholesky_of_what_is_not_positive_definite() -> None:
    a = pc.eye(4).expand(2, 3, 4, 4).clone()
    a[1, 2, 2, 2] = -1
    got = pc.linalg.cholesky_ex(a.to("cuda"))[1].cpu().tolist()
    assert got == [[0, 0, 0], [0, 0, 3]]
    with pytest.raises(RuntimeError, match=r"`A` at batch index \(1, 2\) is not positive definite"):
        pc.linalg.cholesky(a.to("cuda"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 3), (5, 2), (2, 5), (17, 17), (40, 33), (70, 70)])
def test_lu(m: int, n: int, dtype: str) -> None:
    a = numbers((2, m, n), dtype)
    check(pc.linalg.lu_factor, a, tolerance=TOLERANCE[dtype])
    factors, pivots = pc.linalg.lu_factor(a)
    check(pc.lu_unpack, factors, pivots, tolerance=TOLERANCE[dtype])
    parts = pc.lu_unpack(*pc.linalg.lu_factor(a.to("cuda")))
    np.testing.assert_allclose(
        (parts[0] @ parts[1] @ parts[2]).cpu().numpy(), a.numpy(), atol=TOLERANCE[dtype]
    )


def test_lu_of_singular_matrices() -> None:
    a = pc.tensor([[[1.0, 2.0], [2.0, 4.0]], [[0.0, 1.0], [1.0, 0.0]]])
    assert pc.linalg.lu_factor_ex(a.to("cuda"))[2].cpu().tolist() == [2, 0]
    with pytest.raises(RuntimeError, match=r"at batch index \(0,\)"):
        pc.linalg.lu_factor_ex(a.to("cuda"), check_errors=True)
    with pytest.raises(RuntimeError, match="singular"):
        pc.linalg.inv(a.to("cuda"))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("n", SIZES)
def test_triangular_systems(n: int, upper: bool, left: bool, dtype: str) -> None:
    def solve(a: Any, b: Any, unit: bool = False) -> Any:
        return pc.linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit)

    def solve_transposed(a: Any, b: Any) -> Any:
        return solve(a.transpose(1, 2), b)

    bound = TOLERANCE[dtype]
    a = well_conditioned((2, n, n), dtype)
    for k in (1, 3, 40):
        b = numbers((3, 1, n, k) if left else (3, 1, k, n), dtype)
        check(solve, a, b, tolerance=bound)
        check(solve, a / (4 * n), b, True, tolerance=bound)
        check(solve_transposed, a, b, tolerance=bound)


@pytest.mark.parametrize("dtype", DTYPES)
def test_systems(dtype: str) -> None:
    a, b = well_conditioned((2, 20, 20), dtype), numbers((2, 20, 3), dtype)
    check(pc.linalg.inv, a, tolerance=TOLERANCE[dtype])
    check(pc.linalg.solve, a, b, tolerance=TOLERANCE[dtype])


def test_empty() -> None:
    for shape in ((0, 3, 3), (2, 0, 0)):
        a = pc.zeros(shape)
        check(pc.linalg.cholesky, a)
        check(pc.linalg.lu_factor, a)


SHAPES = [(1, 1), (3, 3), (5, 2), (2, 5), (17, 17), (40, 33), (33, 40), (70, 66), (0, 3), (3, 0)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_qr(shape: tuple[int, int], dtype: str) -> None:
    a = numbers((2, *shape), dtype)
    for mode in ("reduced", "complete", "r"):
        check(lambda t, m=mode: pc.linalg.qr(t, mode=m), a, tolerance=TOLERANCE[dtype])
    check(pc.geqrf, a, tolerance=TOLERANCE[dtype])
    check(lambda t: pc.linalg.qr(t.transpose(1, 2)), a, tolerance=TOLERANCE[dtype])


def test_qr_of_zeros_and_of_large_numbers() -> None:
    check(pc.linalg.qr, pc.zeros(4, 3))
    check(pc.linalg.qr, numbers((5, 4), "float32") * 1e30)


def device_values(*results: Any) -> list[Any]:
    """Return results of the device as arrays."""
    assert all(each.device.type == "cuda" for each in results)
    return [each.cpu().numpy() for each in results]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [*SIZES, 0])
def test_eigenvalues_of_hermitian_matrices(n: int, dtype: str) -> None:
    a = numbers((2, n, n), dtype)
    for triangle in ("L", "U"):
        check(lambda t, u=triangle: pc.linalg.eigvalsh(t, u), a, tolerance=TOLERANCE[dtype])
        values, vectors = device_values(*pc.linalg.eigh(a.to("cuda"), triangle))
        kept = (np.tril if triangle == "L" else np.triu)(a.numpy(), -1 if triangle == "L" else 1)
        diagonal = np.einsum("bii->bi", a.numpy()).real
        whole = kept + kept.conj().swapaxes(1, 2) + diagonal[:, :, None] * np.eye(n)
        bound = TOLERANCE[dtype] * max(n, 1) ** 0.5
        np.testing.assert_allclose(whole @ vectors, vectors * values[:, None, :], atol=bound)
        ones = vectors.conj().swapaxes(1, 2) @ vectors
        np.testing.assert_allclose(ones, np.broadcast_to(np.eye(n), ones.shape), atol=bound)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_singular_values(shape: tuple[int, int], dtype: str) -> None:
    m, n = shape
    a = numbers((2, *shape), dtype)
    check(pc.linalg.svdvals, a, tolerance=TOLERANCE[dtype])
    for full in (False, True):
        u, s, vh = device_values(*pc.linalg.svd(a.to("cuda"), full_matrices=full))
        k = min(m, n)
        assert u.shape == (2, m, m if full else k) and vh.shape == (2, n if full else k, n)
        bound = TOLERANCE[dtype] * max(m, n) ** 0.5
        np.testing.assert_allclose((u[:, :, :k] * s[:, None, :]) @ vh[:, :k], a.numpy(), atol=bound)
        ones = u.conj().swapaxes(1, 2) @ u, vh @ vh.conj().swapaxes(1, 2)
        for each in ones:
            expected = np.broadcast_to(np.eye(each.shape[-1]), each.shape)
            np.testing.assert_allclose(each, expected, atol=bound)


def test_matrices_of_low_rank() -> None:
    a = numbers((12, 2), "float64") @ numbers((2, 9), "float64", 1)
    u, s, vh = device_values(*pc.linalg.svd(a.to("cuda")))
    assert (s[:2] > 0.1).all() and (s[2:] < 1e-12).all()
    np.testing.assert_allclose(u.T @ u, np.eye(12), atol=1e-12)
    np.testing.assert_allclose((u[:, :9] * s) @ vh, a.numpy(), atol=1e-12)
    values, _ = device_values(*pc.linalg.eigh((a @ a.t()).to("cuda")))
    np.testing.assert_allclose(values[:10], 0, atol=1e-12)
    check(pc.linalg.svdvals, pc.zeros(3, 4))


def test_what_is_not_finite_is_refused() -> None:
    a = pc.eye(3).expand(2, 3, 3).clone()
    a[1, 0, 0] = float("nan")
    for function in (pc.linalg.eigh, pc.linalg.svd):
        with pytest.raises(RuntimeError, match=r"batch index \(1,\) has .*values that did not"):
            function(a.to("cuda"))


def test_factors_that_are_none_are_reported() -> None:
    """The CPU refuses them at the call; the device at the next wait, and it goes on."""
    pivots = pc.zeros(3, dtype=pc.int32, device="cuda")
    with pytest.raises(RuntimeError, match=r"lu_unpack: `LU_pivots` must hold numbers from 1 to 3"):
        pc.lu_unpack(pc.eye(3, device="cuda"), pivots)[0].cpu()
    with pytest.raises(RuntimeError, match="cholesky_inverse: matrix 0 of the batch is singular"):
        pc.cholesky_inverse(pc.zeros(2, 2, device="cuda")).cpu()
    assert pc.cholesky_inverse(pc.eye(2, device="cuda")).cpu().tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1e-3, 0.7, 4.0, 60.0])
def test_exponentials(size: float, dtype: str) -> None:
    a = numbers((3, 5, 5), dtype)
    a = (a - a.transpose(-1, -2).conj()) * size  # so that the results have no large elements
    a[1] = 0
    check(pc.linalg.matrix_exp, a, tolerance=max(1.0, size) * TOLERANCE[dtype])


def test_exponentials_of_what_is_not_finite() -> None:
    a = pc.zeros(3, 2, 2)
    a[0, 0, 0], a[1, 1, 0] = float("inf"), float("nan")
    got = pc.linalg.matrix_exp(a.to("cuda")).cpu()
    assert got[:2].isnan().all() and got[2].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert pc.linalg.matrix_exp(pc.zeros(0, 2, 2, device="cuda")).shape == (0, 2, 2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_least_squares(dtype: str) -> None:
    for m, n in ((7, 3), (3, 7), (4, 4)):
        a, b = numbers((2, m, n), dtype), numbers((m, 2), dtype, 1)
        check(
            lambda x, y: tuple(pc.linalg.lstsq(x, y, driver="gelsd")),
            *(a, b),
            tolerance=20 * TOLERANCE[dtype],
        )
    a[0] = a[0, :1] * numbers((4, 1), dtype, 2)  # of rank 1
    got = pc.linalg.lstsq(a.to("cuda"), b.to("cuda"))
    assert got.rank.cpu().tolist() == [1, 4]
    best = pc.linalg.pinv(a[0]) @ b
    np.testing.assert_allclose(got.solution[0].cpu(), best, atol=20 * TOLERANCE[dtype])
