"""Test data of linalg/ldl: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.samples.matrices import ldl, unldl
from plait_ops.specs.linalg.ldl import linalg_ldl_factor, linalg_ldl_factor_ex, linalg_ldl_solve

linalg_ldl_factor.reference(lambda A, hermitian=False: ldl(A, hermitian)[:2])
linalg_ldl_factor_ex.reference(lambda A, hermitian=False, check_errors=False: ldl(A, hermitian))


def _symmetric(x):
    return x + x.swapaxes(-1, -2)


def _hermitian(x):
    return x + x.swapaxes(-1, -2).conj()


def _factor_samples(s):
    yield s(_symmetric(s.array(3, 3))).loosely(20).without_gradient()
    yield s(_symmetric(s.array(2, 5, 5, dtype="float64"))).loosely(20).without_gradient()
    yield s(_symmetric(s.array(3, 3, dtype="complex64"))).loosely(20).without_gradient()
    yield (
        s(_hermitian(s.array(4, 4, dtype="complex128")), hermitian=True)
        .loosely(20)
        .without_gradient()
    )
    yield s(np.array([[0, 1], [1, 0]], "float32")).without_gradient()
    yield s(s.array(0, 3, 3)).without_gradient()


for _each in (linalg_ldl_factor, linalg_ldl_factor_ex):
    _name = _each.schema.base
    _each.samples(_factor_samples)
    _each.error("ShapeError", lambda s: s(s.array(2, 3)), contains=[_name, "`A`", "(2, 3)"])
    _each.error("DTypeError", lambda s: s(s.array(2, 2, dtype="int64")), contains=[_name, "int64"])
linalg_ldl_factor_ex.error(
    "RuntimeError",
    lambda s: s(np.zeros((2, 2), "float32"), check_errors=True),
    contains=["linalg_ldl_factor_ex", "`A`", "D", "1"],
)


@linalg_ldl_solve.reference
def _(LD, pivots, B, hermitian=False):
    return np.linalg.solve(unldl(LD, pivots, hermitian), B).astype(B.dtype)


@linalg_ldl_solve.samples
def _(s):
    for a, hermitian in (
        (_symmetric(s.array(3, 3, dtype="float64")), False),
        (_symmetric(s.array(2, 3, 3, dtype="float64")), False),
        (_symmetric(s.array(3, 3, dtype="complex128")), False),
        (_hermitian(s.array(3, 3, dtype="complex128")), True),
    ):
        result, pivots, _ = ldl(a, hermitian)
        b = s.array(3, 2, dtype=str(a.dtype))
        yield s(result, pivots, b, hermitian=hermitian).loosely(100).without_gradient()


linalg_ldl_solve.error(
    "ShapeError",
    lambda s: s(s.array(3, 3), np.ones(2, "int32"), s.array(3, 1)),
    contains=["linalg_ldl_solve", "pivots", "(2,)", "(3,)"],
)
linalg_ldl_solve.error(
    "RuntimeError",
    lambda s: s(s.array(3, 3), np.zeros(3, "int32"), s.array(3, 1)),
    contains=["linalg_ldl_solve", "pivots"],
)
