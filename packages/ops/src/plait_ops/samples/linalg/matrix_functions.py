"""Test data of linalg/matrix_functions: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.samples.matrices import regular
from plait_ops.specs.linalg.matrix_functions import (
    linalg_matrix_exp_,
    linalg_matrix_power_,
    matrix_exp,
    matrix_power,
)


@linalg_matrix_exp_.reference
def _(A):
    x = A.astype("complex128" if A.dtype.kind == "c" else "float64") / 2**10
    result = term = np.broadcast_to(np.eye(A.shape[-1]), A.shape)
    for k in range(1, 20):
        term = term @ x / k
        result = result + term
    for _ in range(10):
        result = result @ result
    return result.astype(A.dtype)


@linalg_matrix_exp_.samples
def _(s):
    yield s(s.array(3, 3)).loosely(20)
    yield s(s.array(2, 2, 2, dtype="float64", low=-6, high=6)).loosely(1e4)
    yield s(s.array(2, 2, low=-0.01, high=0.01)).loosely(20)
    yield s(s.strided(2, 2)).loosely(20)
    yield s(s.array(2, 2, dtype="complex64")).loosely(50)
    yield s(s.array(0, 2, 2))
    yield s(s.array(2, 0, 0))


linalg_matrix_exp_.error(
    "ShapeError", lambda s: s(s.array(2, 3)), contains=["linalg_matrix_exp", "square", "(2, 3)"]
)
linalg_matrix_exp_.error(
    "DTypeError", lambda s: s(s.array(2, 2, dtype="int64")), contains=["linalg_matrix_exp", "int64"]
)


matrix_exp.reference(lambda self: linalg_matrix_exp_(self))
matrix_exp.samples(lambda s: iter([s(s.array(2, 2)).loosely(20)]))
matrix_exp.error("ShapeError", lambda s: s(s.array(2, 3)), contains=["square", "(2, 3)"])
linalg_matrix_power_.reference(lambda A, n: np.linalg.matrix_power(A, n))
matrix_power.reference(lambda self, n: np.linalg.matrix_power(self, n))


@linalg_matrix_power_.samples
def _(s):
    for n in (0, 1, 2, 3, 5):
        yield s(s.array(2, 3, 3, low=-1, high=1), n).loosely(10)
    yield s(regular(s, 3, 3), -2).loosely(10)
    yield s(s.array(2, 2, dtype="int64"), 3)
    yield s(s.strided(3, 3), 2).loosely(10)


matrix_power.samples(lambda s: iter([s(s.array(2, 2), 3).loosely(10)]))
linalg_matrix_power_.error(
    "ValueError", lambda s: s(s.array(2, 2), -(2**63)), contains=["linalg_matrix_power", "`n`"]
)
for _each in (linalg_matrix_power_, matrix_power):
    _each.error("ShapeError", lambda s: s(s.array(2, 3), 2), contains=["square", "(2, 3)"])
