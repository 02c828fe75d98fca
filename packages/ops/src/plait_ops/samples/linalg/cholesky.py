"""Test data of linalg/cholesky: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.samples.matrices import definite, triangular
from plait_ops.specs.linalg.cholesky import (
    cholesky,
    cholesky_backward,
    cholesky_inverse,
    cholesky_solve,
    linalg_cholesky_,
    linalg_cholesky_ex,
    linalg_solve_triangular_,
    triangular_solve,
)


@cholesky_backward.reference
def _(grad, L, upper):
    low, g = (L.swapaxes(-1, -2), grad.swapaxes(-1, -2)) if upper else (L, grad)
    product = low.swapaxes(-1, -2) @ g
    half = (np.tril(product) + np.tril(product, -1)) / 2
    inverse = np.linalg.inv(low)
    full = inverse.swapaxes(-1, -2) @ half @ inverse
    return ((full + full.swapaxes(-1, -2)) / 2).astype(grad.dtype)


@cholesky_backward.samples
def _(s):
    yield s(s.array(3, 3), triangular(s, 3, 3), False).without_gradient()
    yield s(s.array(2, 3, 3), triangular(s, 2, 3, 3, upper=True), True).without_gradient()


cholesky_backward.error(
    "TypeError", lambda s: s(1, s.array(2, 2), False), contains=["cholesky_backward", "grad"]
)


def _lower(a, upper):
    low = np.linalg.cholesky(a)
    return low.conj().swapaxes(-1, -2) if upper else low


linalg_cholesky_.reference(lambda A, upper=False: _lower(A, upper))
linalg_cholesky_ex.reference(
    lambda A, upper=False, check_errors=False: (_lower(A, upper), np.zeros(A.shape[:-2], "int32"))
)
cholesky.reference(lambda self, upper=False: _lower(self, upper))


def _definite_samples(s):
    for upper in (False, True):
        # the gradient is symmetric, which finite differences of one element are not
        yield s(definite(s, 3, 3), upper=upper).loosely(10).without_gradient()
        yield s(definite(s, 3, 1, 1), upper=upper).loosely(10)
        hermitian = definite(s, 2, 3, 3, dtype="complex64")
        yield s(hermitian, upper=upper).loosely(10).without_gradient()
    yield (
        s(definite(s, 2, 3, 3, dtype="float64").swapaxes(0, 1).copy().swapaxes(0, 1))
        .loosely(10)
        .without_gradient()
    )
    yield s(definite(s, 50, 50)).loosely(100).without_gradient()
    yield s(s.array(0, 3, 3))
    yield s(s.array(2, 0, 0))


for _each in (linalg_cholesky_, linalg_cholesky_ex, cholesky):
    _name, _first = _each.schema.base, _each.schema.arguments[0].name
    _each.samples(_definite_samples)
    _each.error(
        "ShapeError",
        lambda s: s(s.array(2, 3)),
        contains=[_name, f"`{_first}`", "square", "(2, 3)"],
    )
    _each.error("DTypeError", lambda s: s(s.array(2, 2, dtype="bool")), contains=[_name, "bool"])


def _one_indefinite(s):
    a = definite(s, 2, 2, 2)
    a[1] = [[1, 2], [2, 1]]
    return a


linalg_cholesky_.error(
    "RuntimeError",
    lambda s: s(_one_indefinite(s)),
    contains=["linalg_cholesky", "`A` at batch index (1,)", "not positive definite", "order 2"],
)
cholesky.error(
    "RuntimeError",
    lambda s: s(-s.np.eye(2)),
    contains=["cholesky", "`self`", "not positive definite"],
)


@cholesky_solve.reference
def _(self, L, upper=False):
    low = L.conj().swapaxes(-1, -2) if upper else L
    return np.linalg.solve(low @ low.conj().swapaxes(-1, -2), self)


@cholesky_solve.samples
def _(s):
    yield s(s.array(3, 2), triangular(s, 3, 3)).loosely(10)
    yield s(s.array(3, 2), triangular(s, 3, 3, upper=True), True).loosely(10)
    yield s(s.array(2, 3, 2), triangular(s, 3, 3)).loosely(10)
    yield s(s.strided(3, 2), triangular(s, 2, 3, 3)).loosely(10)
    yield s(s.array(2, 1, dtype="complex64"), triangular(s, 2, 2, dtype="complex64")).loosely(10)
    yield s(s.array(3, 0), triangular(s, 3, 3))


cholesky_solve.error(
    "ShapeError",
    lambda s: s(s.array(2, 2), s.array(3, 3)),
    contains=["cholesky_solve", "`self`", "rows", "(2, 2)", "(3, 3)"],
)
cholesky_solve.error(
    "DTypeError",
    lambda s: s(s.array(2, 2), s.array(2, 2, dtype="float64")),
    contains=["cholesky_solve", "float64"],
)


@cholesky_inverse.reference
def _(self, upper=False):
    low = np.triu(self).conj().swapaxes(-1, -2) if upper else np.tril(self)
    return np.linalg.inv(low @ low.conj().swapaxes(-1, -2))


@cholesky_inverse.samples
def _(s):
    yield s(triangular(s, 3, 3)).loosely(10)
    yield s(triangular(s, 2, 3, 3, upper=True), True).loosely(10)
    # the diagonal of a factor is real
    yield s(triangular(s, 2, 2, dtype="complex64")).loosely(10).without_gradient()
    yield s(s.array(0, 2, 2))


cholesky_inverse.error(
    "ShapeError", lambda s: s(s.array(2, 3)), contains=["cholesky_inverse", "square", "(2, 3)"]
)
cholesky_inverse.error(
    "RuntimeError", lambda s: s(s.np.zeros((2, 2))), contains=["cholesky_inverse", "singular"]
)


@linalg_solve_triangular_.reference
def _(A, B, upper, left=True, unitriangular=False):
    a = np.triu(A) if upper else np.tril(A)
    if unitriangular:
        a = a - a * np.eye(A.shape[-1], dtype=A.dtype) + np.eye(A.shape[-1], dtype=A.dtype)
    if left:
        return np.linalg.solve(a, B)
    return np.linalg.solve(a.swapaxes(-1, -2), B.swapaxes(-1, -2)).swapaxes(-1, -2)


@linalg_solve_triangular_.samples
def _(s):
    for upper in (False, True):
        a = s.array(3, 3, low=-0.5, high=0.5) + 3 * s.np.eye(3, dtype="float32")
        yield s(a, s.array(3, 2), upper=upper).loosely(10)
        yield s(a, s.array(2, 3), upper=upper, left=False).loosely(10)
        yield s(a, s.array(3, 2), upper=upper, unitriangular=True).loosely(10)
        yield s(a.T, s.array(2, 2, 3), upper=upper, left=False, unitriangular=True).loosely(10)
    yield s(triangular(s, 2, 2, 2), s.strided(2, 3), upper=False).loosely(10)
    yield s(
        triangular(s, 2, 2, dtype="complex64"), s.array(2, 3, dtype="complex64"), upper=False
    ).loosely(10)
    yield s(triangular(s, 3, 3), s.array(3, 0), upper=False)


linalg_solve_triangular_.error(
    "ShapeError",
    lambda s: s(s.array(3, 3), s.array(2, 2), upper=True),
    contains=["linalg_solve_triangular", "`B`", "rows", "(2, 2)", "(3, 3)"],
)
linalg_solve_triangular_.error(
    "TypeError",
    lambda s: s(s.array(3, 3), s.array(3, 2)),
    contains=["linalg_solve_triangular", "upper"],
)


@triangular_solve.reference
def _(self, A, upper=True, transpose=False, unitriangular=False):
    a, high = (A.swapaxes(-1, -2), not upper) if transpose else (A, upper)
    result = linalg_solve_triangular_(a, self, upper=high, unitriangular=unitriangular)
    return result, A.copy()


triangular_solve.samples(
    lambda s: iter(
        [
            s(s.array(3, 2), triangular(s, 3, 3, upper=True)).loosely(10),
            s(s.array(3, 2), triangular(s, 3, 3, upper=True), True, True).loosely(10),
        ]
    )
)
triangular_solve.error(
    "ShapeError",
    lambda s: s(s.array(2, 2), s.array(3, 3)),
    contains=["`B`", "rows", "(2, 2)", "(3, 3)"],
)
