"""Test data of linalg/lu: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.samples.matrices import lu, regular
from plait_ops.specs.linalg.lu import (
    linalg_lu,
    linalg_lu_factor_,
    linalg_lu_factor_ex,
    linalg_lu_solve_,
    lu_solve,
    lu_unpack_,
)


@linalg_lu_factor_.reference
def _(A, pivot=True):
    return lu(A)


@linalg_lu_factor_ex.reference
def _(A, pivot=True, check_errors=False):
    result, pivots = lu(A)
    diagonal = np.diagonal(result, axis1=-2, axis2=-1) == 0
    info = np.where(diagonal.any(-1), diagonal.argmax(-1) + 1, 0) if diagonal.shape[-1] else 0
    return result, pivots, np.broadcast_to(info, A.shape[:-2]).astype("int32")


def _factor_samples(s):
    yield s(s.array(3, 3)).loosely(10)
    yield s(s.array(2, 4, 3, dtype="float64")).loosely(10)
    yield s(s.strided(3, 5)).loosely(10)
    yield s(s.backwards(2, 2, 3)).loosely(10)
    yield s(s.array(3, 3, dtype="complex64")).loosely(20)
    yield s(s.array(0, 3, 3))
    yield s(s.array(3, 0))


for _each in (linalg_lu_factor_, linalg_lu_factor_ex):
    _name = _each.schema.base
    _each.samples(_factor_samples)
    _each.error(
        "ShapeError", lambda s: s(s.array(3)), contains=[_name, "`A`", "2 dimensions", "(3,)"]
    )
    _each.error("DTypeError", lambda s: s(s.array(2, 2, dtype="int64")), contains=[_name, "int64"])
    _each.error(
        "NotImplementedError", lambda s: s(s.array(2, 2), pivot=False), contains=[_name, "pivot"]
    )


@lu_unpack_.reference
def _(LU_data, LU_pivots):
    *batch, m, n = LU_data.shape
    k = min(m, n)
    p = np.zeros((*batch, m, m), LU_data.dtype)
    for at in np.ndindex(*batch):
        rows = list(range(m))
        for i, with_ in enumerate(LU_pivots[at]):
            rows[i], rows[with_ - 1] = rows[with_ - 1], rows[i]
        p[at][rows, range(m)] = 1
    low = np.tril(LU_data, -1)[..., :k] + np.eye(m, k, dtype=LU_data.dtype)
    return p, low, np.triu(LU_data)[..., :k, :]


lu_unpack_.samples(
    lambda s: iter(
        [
            s(*lu(s.array(3, 3))),
            s(*lu(s.array(2, 2, 4))),
            s(*lu(s.array(4, 2, dtype="complex64"))),
            s(*lu(s.array(0, 2, 2))),
        ]
    )
)
lu_unpack_.error(
    "ShapeError",
    lambda s: s(s.array(3, 3), np.ones(2, "int32")),
    contains=["lu_unpack", "LU_pivots", "(2,)", "(3,)"],
)
lu_unpack_.error(
    "DTypeError",
    lambda s: s(s.array(3, 3), np.ones(3, "int64")),
    contains=["lu_unpack", "LU_pivots", "int64"],
)
lu_unpack_.error(
    "RuntimeError",
    lambda s: s(s.array(3, 3), np.zeros(3, "int32")),
    contains=["lu_unpack", "LU_pivots"],
)


linalg_lu.reference(lambda A, pivot=True: lu_unpack_(*lu(A)))
linalg_lu.samples(lambda s: iter([s(regular(s, 3, 3))]))
linalg_lu.error("ShapeError", lambda s: s(s.array(3)), contains=["linalg_lu", "`A`", "(3,)"])


@linalg_lu_solve_.reference
def _(LU, pivots, B, left=True, adjoint=False):
    p, low, high = lu_unpack_(LU, pivots)
    a = p @ low @ high
    a = a.conj().swapaxes(-1, -2) if adjoint else a
    if left:
        return np.linalg.solve(a, B)
    return np.linalg.solve(a.swapaxes(-1, -2), B.swapaxes(-1, -2)).swapaxes(-1, -2)


@linalg_lu_solve_.samples
def _(s):
    yield s(*lu(regular(s, 3, 3)), s.array(3, 2)).loosely(10)
    yield s(*lu(regular(s, 3, 3)), s.array(2, 3), left=False).loosely(10)
    yield s(*lu(regular(s, 2, 3, 3)), s.array(3, 2), adjoint=True).loosely(10)
    yield s(*lu(regular(s, 2, 2, dtype="complex64")), s.array(3, 2, 1, dtype="complex64")).loosely(
        10
    )
    yield s(
        *lu(regular(s, 2, 2, dtype="complex64")),
        s.array(3, 2, dtype="complex64"),
        left=False,
        adjoint=True,
    ).loosely(10)
    yield s(*lu(regular(s, 3, 3)), s.array(3, 0))


linalg_lu_solve_.error(
    "ShapeError",
    lambda s: s(*lu(regular(s, 3, 3)), s.array(2, 2)),
    contains=["linalg_lu_solve", "`B`", "rows", "(2, 2)", "(3, 3)"],
)
linalg_lu_solve_.error(
    "ShapeError",
    lambda s: s(s.array(3, 3), np.ones(2, "int32"), s.array(3, 2)),
    contains=["linalg_lu_solve", "`pivots`", "(2,)"],
)
linalg_lu_solve_.error(
    "DTypeError",
    lambda s: s(s.array(3, 3), np.ones(3, "int64"), s.array(3, 2)),
    contains=["linalg_lu_solve", "`pivots`", "int64"],
)


lu_solve.reference(lambda self, LU_data, LU_pivots: linalg_lu_solve_(LU_data, LU_pivots, self))
lu_solve.samples(lambda s: iter([s(s.array(3, 2), *lu(regular(s, 3, 3)))]))
lu_solve.error(
    "ShapeError",
    lambda s: s(s.array(2, 2), *lu(regular(s, 3, 3))),
    contains=["`B`", "(2, 2)", "(3, 3)"],
)
