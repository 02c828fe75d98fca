"""Test data of linalg/eigenvalues: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.samples.matrices import definite, eigenproducts
from plait_ops.specs.linalg.eigenvalues import (
    linalg_eig,
    linalg_eigh_,
    linalg_eigvals,
    linalg_eigvalsh,
    symmetric_eigenvalues,
)

linalg_eigh_.reference(lambda A, UPLO="L": tuple(np.linalg.eigh(A, UPLO)))
linalg_eigh_.compare(eigenproducts)
linalg_eigvalsh.reference(lambda A, UPLO="L": np.linalg.eigvalsh(A, UPLO))


def _symmetric_samples(s):
    yield s(definite(s, 3, 3)).loosely(100).without_gradient()
    yield s(definite(s, 2, 3, 3, dtype="float64"), "U").loosely(100).without_gradient()
    yield s(s.array(3, 1, 1))
    yield s(s.array(3, 3), "U").loosely(100).without_gradient()
    yield s(s.strided(3, 3)).loosely(100).without_gradient()
    yield s(definite(s, 2, 2, dtype="complex64")).loosely(100).without_gradient()
    yield s(s.array(0, 3, 3))
    yield s(s.array(2, 0, 0))


@symmetric_eigenvalues.reference
def _(A, UPLO, vectors):
    if not vectors:
        return np.linalg.eigvalsh(A, UPLO), np.zeros(0, A.dtype)
    return tuple(np.linalg.eigh(A, UPLO))


symmetric_eigenvalues.compare(eigenproducts)


@symmetric_eigenvalues.samples
def _(s):
    for vectors in (False, True):
        yield s(s.array(2, 3, 3), "L", vectors).loosely(100).without_gradient()
        yield s(s.array(3, 1, 1), "U", vectors)


symmetric_eigenvalues.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), "L", True),
    contains=["symmetric_eigenvalues", "`A`", "(2, 3)"],
)

for _each in (linalg_eigh_, linalg_eigvalsh):
    _name = _each.schema.base
    _each.samples(_symmetric_samples)
    _each.error(
        "ShapeError", lambda s: s(s.array(2, 3)), contains=[_name, "`A`", "square", "(2, 3)"]
    )
    _each.error("ValueError", lambda s: s(s.array(2, 2), "X"), contains=[_name, "UPLO", "X"])
    _each.error("DTypeError", lambda s: s(s.array(2, 2, dtype="int8")), contains=[_name, "int8"])
    _each.error(
        "RuntimeError", lambda s: s(s.np.full((2, 2), s.np.nan)), contains=[_name, "`A`", "NaN"]
    )


def _complex(x, like):
    return np.asarray(x).astype(np.result_type(like.dtype, "complex64"))


linalg_eig.reference(lambda A: tuple(_complex(x, A) for x in np.linalg.eig(A)))
linalg_eigvals.reference(lambda A: _complex(np.linalg.eigvals(A), A))


def _general_samples(s):
    # of triangular matrices the order of the values and the phases of the vectors are LAPACK's;
    # core's tests use other matrices and multiply the factors
    def triangle(*shape, dtype="float32"):
        a = s.np.triu(s.array(*shape, dtype=dtype), 1)
        return (a + s.np.diag(s.np.arange(1.0, shape[-1] + 1))).astype(dtype)

    # the order of the values may change with a small step
    yield s(triangle(3, 3)).loosely(100).without_gradient()
    yield s(triangle(2, 4, 4, dtype="float64")).loosely(100).without_gradient()
    yield s(triangle(4, 4)[::2, ::2]).loosely(100).without_gradient()
    yield s(triangle(3, 3, dtype="complex64")).loosely(100).without_gradient()
    yield s(s.array(2, 1, 1, dtype="float64"))
    yield s(s.array(0, 3, 3))
    yield s(s.array(2, 0, 0))


for _each in (linalg_eig, linalg_eigvals):
    _name = _each.schema.base
    _each.samples(_general_samples)
    _each.error(
        "ShapeError", lambda s: s(s.array(2, 3)), contains=[_name, "`A`", "square", "(2, 3)"]
    )
    _each.error(
        "RuntimeError",
        lambda s: s(s.np.full((2, 2), s.np.inf)),
        contains=[_name, "`A`", "infinities"],
    )
