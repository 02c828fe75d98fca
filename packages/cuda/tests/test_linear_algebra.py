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
    check(pc.linalg.det, a / 8, tolerance=TOLERANCE[dtype])


def test_empty() -> None:
    for shape in ((0, 3, 3), (2, 0, 0)):
        a = pc.zeros(shape)
        check(pc.linalg.cholesky, a)
        check(pc.linalg.lu_factor, a)
