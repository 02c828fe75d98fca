"""Test data of linalg/systems: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.samples.matrices import lu, regular
from plait_ops.specs.linalg.systems import (
    are_vectors,
    inverse,
    linalg_inv_,
    linalg_inv_ex,
    linalg_solve_,
    linalg_solve_ex,
    regular_factors,
    solve_by_factors,
)

linalg_inv_.reference(lambda A: np.linalg.inv(A))
linalg_inv_ex.reference(
    lambda A, check_errors=False: (np.linalg.inv(A), np.zeros(A.shape[:-2], "int32"))
)


def _square_samples(s):
    yield s(regular(s, 3, 3)).loosely(10)
    yield s(regular(s, 2, 3, 3, dtype="float64")).loosely(10)
    yield s(regular(s, 2, 3, 3).swapaxes(0, 2)[::-1].swapaxes(0, 2)).loosely(20)
    yield s(regular(s, 2, 3, 3).swapaxes(1, 2)).loosely(10)
    yield s(regular(s, 3, 3, dtype="complex64")).loosely(10)
    yield s(regular(s, 40, 40)).loosely(100)
    yield s(s.array(0, 3, 3))
    yield s(s.array(2, 0, 0))


def square_errors(operator, name="A"):
    base = operator.schema.base
    operator.error(
        "ShapeError", lambda s: s(s.array(2, 3)), contains=[base, f"`{name}`", "square", "(2, 3)"]
    )
    operator.error(
        "ShapeError", lambda s: s(s.array(3)), contains=[base, f"`{name}`", "2 dimensions", "(3,)"]
    )
    operator.error(
        "DTypeError",
        lambda s: s(s.array(2, 2, dtype="int64")),
        contains=[base, f"`{name}`", "int64"],
    )


def _one_singular(s):
    a = regular(s, 2, 3, 2, 2)
    a[1, 0] = 1
    return a


for _each in (linalg_inv_, linalg_inv_ex):
    _each.samples(_square_samples)
    square_errors(_each)
linalg_inv_.error(
    "RuntimeError",
    lambda s: s(_one_singular(s)),
    contains=["linalg_inv", "`A` at batch index (1, 0)", "singular", "pinv"],
)
linalg_inv_ex.error(
    "RuntimeError", lambda s: s(s.np.zeros((2, 2)), check_errors=True), contains=["singular"]
)


inverse.reference(lambda self: np.linalg.inv(self))
inverse.samples(lambda s: iter([s(regular(s, 3, 3)).loosely(10)]))
inverse.error("ShapeError", lambda s: s(s.array(2, 3)), contains=["square", "(2, 3)"])


@linalg_solve_.reference
def _(A, B, left=True):
    if are_vectors(A, B):
        return np.linalg.solve(A, B[..., None])[..., 0]
    if left:
        return np.linalg.solve(A, B)
    return np.linalg.solve(A.swapaxes(-1, -2), B.swapaxes(-1, -2)).swapaxes(-1, -2)


@linalg_solve_ex.reference
def _(A, B, left=True, check_errors=False):
    x = linalg_solve_(A, B, left=left)
    return x, np.zeros(x.shape[: -1 if are_vectors(A, B) else -2], "int32")


def _solve_samples(s):
    yield s(regular(s, 3, 3), s.array(3, 2)).loosely(10)
    yield s(regular(s, 3, 3), s.array(3)).loosely(10)
    yield s(regular(s, 2, 3, 3, dtype="float64"), s.array(2, 3, dtype="float64")).loosely(10)
    yield s(regular(s, 2, 3, 3), s.array(3)).loosely(10)
    yield s(regular(s, 3, 3), s.array(2, 2, 3), left=False).loosely(10)
    yield s(regular(s, 2, 1, 3, 3), s.array(4, 3, 2)).loosely(10)
    yield s(regular(s, 2, 3, 3).swapaxes(1, 2), s.strided(3, 2)).loosely(10)
    yield s(regular(s, 2, 2, dtype="complex64"), s.array(2, 3, dtype="complex64")).loosely(10)
    yield s(
        regular(s, 2, 2, dtype="complex128"), s.array(3, 2, dtype="complex128"), left=False
    ).loosely(10)
    yield s(regular(s, 3, 3), s.array(3, 0))
    yield s(s.array(0, 2, 2), s.array(2, 3))


for _each in (linalg_solve_, linalg_solve_ex):
    _name = _each.schema.base
    _each.samples(_solve_samples)
    _each.error(
        "ShapeError",
        lambda s: s(s.array(2, 3), s.array(3)),
        contains=[_name, "`A`", "square", "(2, 3)"],
    )
    _each.error(
        "ShapeError",
        lambda s: s(regular(s, 3, 3), s.array(2, 2)),
        contains=[_name, "`B`", "rows", "(2, 2)", "(3, 3)"],
    )
    _each.error(
        "DTypeError",
        lambda s: s(regular(s, 2, 2), s.array(2, dtype="float64")),
        contains=[_name, "`A` and `B`", "float64"],
    )
    _each.error(
        "ValueError",
        lambda s: s(regular(s, 2, 2), s.array(2), left=False),
        contains=[_name, "left"],
    )
linalg_solve_.error(
    "RuntimeError",
    lambda s: s(_one_singular(s), s.array(2, 1)),
    contains=["linalg_solve", "`A` at batch index (1, 0)", "singular", "lstsq"],
)


regular_factors.reference(lambda A: lu(A))


@regular_factors.samples
def _(s):
    for dtype in ("float32", "float64", "complex64", "complex128"):
        yield s(regular(s, 2, 3, 3, dtype=dtype)).loosely(10)
    yield s(regular(s, 2, 1, 3, 3).swapaxes(2, 3)).loosely(10)
    yield s(s.array(4, 4)).loosely(100)  # with exchanges of rows
    yield s(s.array(0, 2, 2))
    yield s(s.array(2, 0, 0))


regular_factors.error("ShapeError", lambda s: s(s.array(2, 3)), contains=["`A`", "(2, 3)"])
regular_factors.error(
    "RuntimeError",
    lambda s: s(_one_singular(s)),
    contains=["`A` at batch index (1, 0)", "singular", "lstsq"],
)


@solve_by_factors.reference
def _(A, LU, pivots, B, left, adjoint):
    return linalg_solve_.reference_function(A.conj().swapaxes(-1, -2) if adjoint else A, B, left)


def _factored(s, A, B, left, adjoint):
    LU, pivots = lu(A)
    # the factors are constants, so that differences are no derivative
    return s(A, LU, pivots, B, left, adjoint).loosely(20).without_gradient()


@solve_by_factors.samples
def _(s):
    for left in (True, False):
        for adjoint in (False, True):
            yield _factored(s, regular(s, 3, 3), s.array(3, 3), left, adjoint)
            for dtype in ("float64", "complex64", "complex128"):
                b = s.array(2, 3, 3, dtype=dtype)
                yield _factored(s, regular(s, 3, 3, dtype=dtype), b, left, adjoint)
        yield _factored(s, regular(s, 2, 1, 3, 3), s.array(4, 3, 3), left, True)
    yield _factored(s, regular(s, 2, 3, 3), s.strided(3, 2), True, False)
    yield _factored(s, regular(s, 3, 3), s.array(3, 0), True, False)


solve_by_factors.error(
    "ShapeError",
    lambda s: s(regular(s, 3, 3), *lu(regular(s, 3, 3)), s.array(2, 2), True, False),
    contains=["`B`", "rows", "(2, 2)", "(3, 3)"],
)
