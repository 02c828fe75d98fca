"""Cholesky factors of positive definite matrices, and triangular systems."""

import numpy as np

from plait_ops.calls import clone, linalg_solve_triangular, swapaxes, transpose, tril, triu
from plait_ops.linear_samples import definite, triangular
from plait_ops.linear_words import require_matrix, require_square
from plait_ops.spec import Composite, Operator
from plait_ops.words import broadcast, check, conjugate, int32, require_same, result, sum_to

_DEFINITE = (
    "RuntimeError if a matrix is not positive definite (the text names its place in the batch)"
)


# ---- factors -------------------------------------------------------------------------------------
linalg_cholesky_ = Operator(
    "linalg_cholesky(Tensor A, *, bool upper=False) -> Tensor",
    doc=f"""
    The lower triangular L with a positive diagonal for which ``A = L L^H``; with `upper`, L^H. Only the triangle that is
    meant is read.

    Shapes: `A` is (..., n, n), symmetric or Hermitian positive definite; the result too. Dtypes: floating and complex.
    The gradient is that of a symmetric `A`.
    Raises: ShapeError if a matrix is not square, DTypeError for integers, {_DEFINITE}.

    >>> import plait_core as pc
    >>> pc.linalg.cholesky(pc.tensor([[4.0, 2.0], [2.0, 5.0]])).tolist()
    [[2.0, 0.0], [1.0, 2.0]]
    """,
    method=False,
    out=True,
    dtypes="inexact",
)
linalg_cholesky_ex = Operator(
    "linalg_cholesky_ex(Tensor A, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)",
    doc="""
    `linalg.cholesky` without a check: `info` is 0 where there is a factor, else the order of the first leading minor that
    is not positive.

    Shapes: `A` is (..., n, n), `L` too, `info` is (...), int32. Dtypes: floating and complex.
    Raises: ShapeError if a matrix is not square, DTypeError for integers; with `check_errors` what `linalg.cholesky` raises.

    >>> import plait_core as pc
    >>> pc.linalg.cholesky_ex(pc.tensor([[1.0, 2.0], [2.0, 1.0]])).info.item()
    2
    """,
    method=False,
    out=True,
    dtypes="inexact",
)
cholesky = Operator(
    "cholesky(Tensor self, bool upper=False) -> Tensor",
    doc=f"""
    The triangular factors of positive definite matrices: `linalg.cholesky`.

    Shapes: `self` is (..., n, n), and so is the result. Dtypes: floating and complex.
    Raises: ShapeError if a matrix is not square, DTypeError for integers, {_DEFINITE}.

    >>> import plait_core as pc
    >>> pc.tensor([[4.0]]).cholesky().item()
    2.0
    """,
    out=True,
    dtypes="inexact",
)


@linalg_cholesky_.shape
def _(A):
    require_square("A", A)
    return result(A.shape, A.dtype)


@linalg_cholesky_ex.shape
def _(A):
    require_square("A", A)
    return result(A.shape, A.dtype), result(A.shape[:-2], int32)


@cholesky.shape
def _(self):
    require_square("self", self)
    return result(self.shape, self.dtype)


cholesky_backward = Composite(
    "cholesky_backward(Tensor grad, Tensor L, bool upper) -> Tensor",
    doc="The gradient of `linalg.cholesky` from its result: ``sym(L^-T phi(L^T grad) L^-1)``.",
    internal=True,
    dtypes="inexact",
)


@cholesky_backward.decompose
def _(grad, L, upper):
    low = conjugate(transpose(L, -2, -1)) if upper else L
    g = conjugate(transpose(grad, -2, -1)) if upper else grad
    high = conjugate(transpose(low, -2, -1))
    product = high @ g
    half = (tril(product) + tril(product, -1)) * 0.5
    left = linalg_solve_triangular(high, half, upper=True)
    full = linalg_solve_triangular(low, left, upper=False, left=False)
    return (full + conjugate(transpose(full, -2, -1))) * 0.5


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


@linalg_cholesky_.vjp("A")
def _(g, result, upper):
    return cholesky_backward(g, result, upper)


@linalg_cholesky_ex.vjp("A")
def _(g0, result0, upper):
    return cholesky_backward(g0, result0, upper)


@cholesky.vjp("self")
def _(g, result, upper):
    return cholesky_backward(g, result, upper)


def _lower(a, upper):
    low = np.linalg.cholesky(a)
    return low.conj().swapaxes(-1, -2) if upper else low


linalg_cholesky_.reference(lambda A, upper=False: _lower(A, upper))
linalg_cholesky_ex.reference(
    lambda A, upper=False, check_errors=False: (
        _lower(A, upper),
        np.zeros(A.shape[:-2], "int32"),
    )
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


# ---- what factors solve --------------------------------------------------------------------------
cholesky_solve = Operator(
    "cholesky_solve(Tensor self|B, Tensor L|input2, bool upper=False) -> Tensor",
    doc="""
    Solve ``A X = self`` with a Cholesky factor of A: ``A = L L^H``, or ``L^H L`` with `upper`.

    Shapes: `self` is (..., n, k), `L` (..., n, n); batches broadcast. Dtypes: floating and complex, the same for both.
    Raises: ShapeError for other shapes, DTypeError if dtypes differ.

    >>> import plait_core as pc
    >>> pc.cholesky_solve(pc.ones(1, 1), pc.tensor([[2.0]])).item()
    0.25
    """,
    out=True,
    dtypes="inexact",
)


@cholesky_solve.shape
def _(self, L):
    require_square("L", L)
    require_matrix("self", self)
    require_same("self", self, "L", L)
    check(
        self.shape[-2] == L.shape[-1],
        f"`self` of shape {self.shape} must have as many rows as `L` of shape {L.shape}",
    )
    batch = broadcast("self", self.shape[:-2], "L", L.shape[:-2])
    return result(batch + self.shape[-2:], self.dtype)


@cholesky_solve.vjp("self", "L", meta=["self"])
def _(g, self, L, result, upper):
    back = cholesky_solve(g, L, upper)
    outer = back @ conjugate(transpose(result, -2, -1))
    both = outer + conjugate(transpose(outer, -2, -1))
    gL = -triu(L @ both) if upper else -tril(both @ L)
    return sum_to(back, self.shape), sum_to(gL, L.shape)


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


cholesky_inverse = Operator(
    "cholesky_inverse(Tensor self|L, bool upper=False) -> Tensor",
    doc="""
    The inverse of ``A = L L^H`` (``L^H L`` with `upper`) from its Cholesky factor `self`.

    Shapes: `self` is (..., n, n), and so is the result. Dtypes: floating and complex.
    Raises: ShapeError if a matrix is not square, DTypeError for integers, RuntimeError for a 0 on the diagonal.

    >>> import plait_core as pc
    >>> pc.cholesky_inverse(pc.tensor([[2.0]])).item()
    0.25
    """,
    out=True,
    dtypes="inexact",
)


@cholesky_inverse.shape
def _(self):
    require_square("self", self)
    return result(self.shape, self.dtype)


@cholesky_inverse.vjp("self")
def _(g, self, result, upper):
    both = result @ (g + conjugate(transpose(g, -2, -1))) @ result
    return -triu(self @ both) if upper else -tril(both @ self)


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
    "RuntimeError",
    lambda s: s(s.np.zeros((2, 2))),
    contains=["cholesky_inverse", "singular"],
)


# ---- triangular systems --------------------------------------------------------------------------
linalg_solve_triangular_ = Operator(
    "linalg_solve_triangular(Tensor A, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor",
    doc="""
    The X of ``A X = B``, or of ``X A = B`` with ``left=False``, for a triangular `A`. The other triangle is not read, nor
    is the diagonal with `unitriangular`, where it counts as 1. A 0 on the diagonal gives infinities.

    Shapes: `A` is (..., n, n), `B` (..., n, k), or (..., k, n) with ``left=False``; batches broadcast.
    Dtypes: floating and complex, the same for both.
    Raises: ShapeError for other shapes, DTypeError if dtypes differ.

    >>> import plait_core as pc
    >>> a = pc.tensor([[2.0, 0.0], [1.0, 1.0]])
    >>> pc.linalg.solve_triangular(a, pc.tensor([[2.0], [3.0]]), upper=False).tolist()
    [[1.0], [2.0]]
    """,
    method=False,
    out=True,
    dtypes="inexact",
)


@linalg_solve_triangular_.shape
def _(A, B, left):
    require_square("A", A)
    require_matrix("B", B)
    require_same("A", A, "B", B)
    check(
        (B.shape[-2] if left else B.shape[-1]) == A.shape[-1],
        f"`B` of shape {B.shape} must have as many {'rows' if left else 'columns'} as `A` of shape {A.shape}",
    )
    return result(broadcast("A", A.shape[:-2], "B", B.shape[:-2]) + B.shape[-2:], A.dtype)


@linalg_solve_triangular_.vjp("A", "B")
def _(g, A, B, result, upper, left, unitriangular):
    back = linalg_solve_triangular(
        conjugate(transpose(A, -2, -1)), g, upper=not upper, left=left, unitriangular=unitriangular
    )
    x = conjugate(transpose(result, -2, -1))
    full = back @ x if left else x @ back
    edge = 1 if unitriangular else 0
    gA = -triu(full, edge) if upper else -tril(full, -edge)
    return sum_to(gA, A.shape), sum_to(back, B.shape)


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


triangular_solve = Composite(
    "triangular_solve(Tensor self|b, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
    doc="""
    `linalg.solve_triangular` with `self` first, the upper triangle by default, and a copy of `A` as second result.

    >>> import plait_core as pc
    >>> pc.triangular_solve(pc.ones(1, 1), pc.tensor([[4.0]])).solution.item()
    0.25
    """,
    dtypes="inexact",
)


@triangular_solve.decompose
def _(self, A, upper, transpose, unitriangular):
    if transpose:
        return (
            linalg_solve_triangular(
                swapaxes(A, -2, -1), self, upper=not upper, unitriangular=unitriangular
            ),
            clone(A),
        )
    return linalg_solve_triangular(A, self, upper=upper, unitriangular=unitriangular), clone(A)


@triangular_solve.reference
def _(self, A, upper=True, transpose=False, unitriangular=False):
    a, high = (A.swapaxes(-1, -2), not upper) if transpose else (A, upper)
    made = linalg_solve_triangular_(a, self, upper=high, unitriangular=unitriangular)
    return made, A.copy()


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
