"""Derivatives by matrices of which one triangle is read: torch's symmetric convention.

Both libraries get the same matrices: symmetric (Hermitian) ones, and ones whose other triangle
holds other numbers; real and complex, the lower and the upper triangle read.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import plait

Array = np.ndarray[Any, Any]
SIZE = 3


def sizes(x: Any) -> Any:
    """Squares of sizes: phases and signs of eigenvectors are arbitrary."""
    return (x * x.conj()).real if x.is_complex() else x * x


SYMMETRIC: dict[str, Callable[[Any, Any, bool], list[Any]]] = {
    "eigh": lambda lib, a, upper: [
        (pair := lib.linalg.eigh(a, "U" if upper else "L"))[0],
        sizes(pair[1]),
    ],
    "eigvalsh": lambda lib, a, upper: [lib.linalg.eigvalsh(a, "U" if upper else "L")],
    "linalg.cholesky": lambda lib, a, upper: [lib.linalg.cholesky(a, upper=upper)],
    "cholesky_ex": lambda lib, a, upper: [lib.linalg.cholesky_ex(a, upper=upper)[0]],
    "cholesky": lambda lib, a, upper: [lib.cholesky(a, upper)],
}
TRIANGULAR: dict[str, Callable[[Any, Any, bool], list[Any]]] = {
    "solve_triangular": lambda lib, a, upper: [
        lib.linalg.solve_triangular(a, lib.ones(SIZE, 2, dtype=a.dtype), upper=upper)
    ],
    "unitriangular": lambda lib, a, upper: [
        lib.linalg.solve_triangular(
            a, lib.ones(SIZE, 2, dtype=a.dtype), upper=upper, unitriangular=True
        )
    ],
    "triangular_solve": lambda lib, a, upper: [
        lib.triangular_solve(lib.ones(SIZE, 2, dtype=a.dtype), a, upper)[0]
    ],
}
FACTORS: dict[str, Callable[[Any, Any, bool], list[Any]]] = {
    "cholesky_inverse": lambda lib, a, upper: [lib.cholesky_inverse(a, upper)],
    "cholesky_solve": lambda lib, a, upper: [
        lib.cholesky_solve(lib.ones(SIZE, 2, dtype=a.dtype), a, upper)
    ],
}
ALL = {**SYMMETRIC, **TRIANGULAR, **FACTORS}
COMPLEX = pytest.mark.parametrize("complex_", [False, True], ids=["real", "complex"])
UPPER = pytest.mark.parametrize("upper", [False, True], ids=["lower", "upper"])


def matrix(complex_: bool, seed: int = 0) -> Array:
    """A definite matrix."""
    rng = np.random.default_rng(seed)
    drawn = rng.standard_normal((SIZE, SIZE))
    if complex_:
        drawn = drawn + 1j * rng.standard_normal((SIZE, SIZE))
    return np.asarray(drawn @ drawn.conj().T / 2 + np.eye(SIZE))


def seeds(lib: Any, results: list[Any], seed: int) -> list[Any]:
    rng, result = np.random.default_rng(seed), []
    for y in results:
        g = rng.standard_normal(tuple(y.shape))
        if y.is_complex():
            g = g + 1j * rng.standard_normal(tuple(y.shape))
        result.append(lib.from_numpy(np.asarray(g)))
    return result


def derivative(lib: Any, name: str, a: Array, upper: bool, order: int) -> Array:
    leaf = lib.from_numpy(a.copy()).requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.cholesky is deprecated
        results = ALL[name](lib, leaf, upper)
    result = lib.autograd.grad(results, [leaf], seeds(lib, results, 1), create_graph=order == 2)
    if order == 2:
        result = lib.autograd.grad(result, [leaf], seeds(lib, result, 2))
    return np.asarray(result[0].detach().resolve_conj().numpy())


@pytest.mark.parametrize("order", [1, 2])
@UPPER
@COMPLEX
@pytest.mark.parametrize("name", [*SYMMETRIC, *TRIANGULAR])
def test_derivatives(name: str, complex_: bool, upper: bool, order: int) -> None:
    symmetric = matrix(complex_)
    read = np.triu(symmetric) if upper else np.tril(symmetric)
    for other in (0.0, 0.5):
        garbage = other * (np.tril(symmetric, -1) if upper else np.triu(symmetric, 1))
        for a in (symmetric, read + garbage):
            ours, theirs = (derivative(lib, name, a, upper, order) for lib in (plait, torch))
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)


@UPPER
@COMPLEX
@pytest.mark.parametrize("name", FACTORS)
def test_derivatives_by_factors(name: str, complex_: bool, upper: bool) -> None:
    """Torch gives elements that are not read a derivative, too; ours is 0 there, which is right."""
    read = np.triu if upper else np.tril
    factor = read(matrix(complex_))
    ours, theirs = (derivative(lib, name, factor, upper, 1) for lib in (plait, torch))
    np.testing.assert_allclose(ours, read(theirs), rtol=1e-9, atol=1e-10)
    assert not np.allclose(theirs, read(theirs)), "no difference any more"


# torch.cholesky has no forward mode, and that of cholesky_inverse contradicts finite differences
FORWARD = [name for name in ALL if name not in ("cholesky", "cholesky_inverse")]


@UPPER
@COMPLEX
@pytest.mark.parametrize("name", FORWARD)
def test_forward_derivatives_along_symmetric_steps(name: str, complex_: bool, upper: bool) -> None:
    a, step = matrix(complex_), matrix(complex_, 3)
    if name not in SYMMETRIC:
        a, step = (np.triu(x) if upper else np.tril(x) for x in (a, step))
    results = []
    for lib in (plait, torch):
        forward = lib.autograd.forward_ad
        with forward.dual_level(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dual = forward.make_dual(lib.from_numpy(a.copy()), lib.from_numpy(step.copy()))
            result = ALL[name](lib, dual, upper)
            results.append([forward.unpack_dual(x).tangent.resolve_conj().numpy() for x in result])
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)
