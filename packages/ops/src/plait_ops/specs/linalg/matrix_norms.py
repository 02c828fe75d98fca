"""Norms of vectors and matrices, and condition numbers."""

import math

from plait_ops import calls as op
from plait_ops.linear_words import require_matrix, require_square
from plait_ops.spec import Composite
from plait_ops.words import (
    check,
    is_complex,
    numel,
    part,
    real_dtype,
    reduced,
    require,
    to_dtype,
    wrap_dim,
)

INFINITY = math.inf

linalg_vector_norm_ = Composite(
    "linalg_vector_norm(Tensor x|self, Scalar ord=2, int[]? dim|axis=None, bool keepdim|keepdims=False, *, dtype? dtype=None) -> Tensor",
    doc="""
    The norm of the elements along `dim`, taken as one vector: ``sum(abs(x) ** ord) ** (1 / ord)``. With `ord` inf it is the
    largest magnitude, with -inf the smallest, and with 0 the number of elements that are not 0.

    Args:
        x: The input tensor.

    Shapes: `dim` names the dimensions to reduce (None: all of them). Dtypes: floating and complex; the result is real. With
    `dtype`, the elements are first cast to it.
    Raises: DTypeError for integers, IndexError for a `dim` out of range, ShapeError if there are no elements to reduce and
    `ord` is infinite or negative.

    >>> import plait_core as pc
    >>> pc.linalg.vector_norm(pc.tensor([3.0, 4.0])).item()
    5.0
    """,
    dtypes="inexact",
)
linalg_vector_norm_.shard("code")


@linalg_vector_norm_.decompose
def _(x, ord, dim, keepdim, dtype):
    y = to_dtype(x, dtype if dtype is not None else x.dtype)
    require("x", x.dtype, "inexact")
    if is_complex(y.dtype):
        return op.norm(op.abs(y), ord, dim, keepdim)
    return op.norm(y, ord, dim, keepdim)


_MATRIX = """
    Shapes: `dim` names the two dimensions of the matrices, rows first. Dtypes: floating and complex, the result is real.
    Raises: ValueError for another `ord` and for a `dim` that does not name two different dimensions, DTypeError for
    integers, IndexError for a `dim` out of range.
"""
linalg_matrix_norm_ = Composite(
    "linalg_matrix_norm(Tensor A|self, Scalar ord, int[] dim|axis=(-2, -1), bool keepdim|keepdims=False, *, dtype? dtype=None) -> Tensor",
    doc=f"""
    The norm of matrices. With `ord` 1 and -1 it is the largest and the smallest sum of the magnitudes in a column, with inf
    and -inf in a row; with 2 and -2 it is the largest and the smallest singular value.
    {_MATRIX}
    >>> import plait_core as pc
    >>> pc.linalg.matrix_norm(pc.tensor([[1.0, -2.0], [3.0, 4.0]]), 1).item()
    6.0
    """,
    dtypes="inexact",
    widens=True,
)
linalg_matrix_norm_name_ = Composite(
    'linalg_matrix_norm.name(Tensor A|self, str ord="fro", int[] dim|axis=(-2, -1), bool keepdim|keepdims=False, *, dtype? dtype=None) -> Tensor',
    doc=f"""
    The Frobenius norm ("fro"), the square root of the sum of squares; or the nuclear norm ("nuc"), the sum of singular
    values.
    {_MATRIX}
    >>> import plait_core as pc
    >>> pc.linalg.matrix_norm(pc.tensor([[3.0, 0.0], [0.0, 4.0]])).item()
    5.0
    """,
    dtypes="inexact",
    widens=True,
)


@part
def rows_and_columns(A, dim):
    require_matrix("A", A)
    check(len(dim) == 2, f"`dim` must be two dimensions; got {dim}", "ValueError")
    rows = wrap_dim("dim", dim[0], A.shape)
    columns = wrap_dim("dim", dim[1], A.shape)
    check(rows != columns, f"`dim` must be two different dimensions; got {dim}", "ValueError")
    return [rows, columns]


@linalg_matrix_norm_.decompose
def _(A, ord, dim, keepdim, dtype):
    both = rows_and_columns(A, dim)
    rows = both[0]
    columns = both[1]
    x = to_dtype(A, dtype if dtype is not None else A.dtype)
    kind = float(ord)
    size = kind if kind > 0.0 else -kind
    check(
        size == 1.0 or size == 2.0 or size == INFINITY,
        f'`ord` must be 1, -1, 2, -2, inf, -inf, "fro" or "nuc"; got {kind}',
        "ValueError",
    )
    shape = reduced(A.shape, both, keepdim)
    if size == 2.0:
        values = op.linalg_svdvals(op.movedim(x, both, [-2, -1]))
        if kind > 0.0 and values.shape[-1] == 0:
            return op.reshape(op.sum(values, [-1]), shape)
        return op.reshape(op.amax(values, [-1]) if kind > 0.0 else op.amin(values, [-1]), shape)
    inner = op.sum(op.abs(x), [rows if size == 1.0 else columns], True)
    if kind > 0.0 and (A.shape[rows] == 0 or A.shape[columns] == 0):
        return op.reshape(op.sum(inner, both), shape)  # the norm of no elements is 0
    return op.reshape(op.amax(inner, both) if kind > 0.0 else op.amin(inner, both), shape)


@linalg_matrix_norm_name_.decompose
def _(A, ord, dim, keepdim, dtype):
    both = rows_and_columns(A, dim)
    check(
        ord in ("fro", "nuc"), f'`ord` must be a number, "fro" or "nuc"; got "{ord}"', "ValueError"
    )
    x = to_dtype(A, dtype if dtype is not None else A.dtype)
    if ord == "fro":
        return op.linalg_vector_norm(x, 2, both, keepdim)
    values = op.linalg_svdvals(op.movedim(x, both, [-2, -1]))
    return op.reshape(op.sum(values, [-1]), reduced(A.shape, both, keepdim))


linalg_norm_ = Composite(
    "linalg_norm(Tensor A|self, Scalar? ord=None, int[]? dim|axis=None, bool keepdim|keepdims=False, *, dtype? dtype=None) -> Tensor",
    doc="""
    A norm of vectors or matrices. Without `ord` the 2-norm of the elements along `dim` (None: of all of them). With `ord`,
    it is `linalg.matrix_norm` if `dim` names two dimensions, and `linalg.vector_norm` if it names one. If `dim` is None,
    `A` must have 1 or 2 dimensions, which decide in the same way.

    Args:
        A: The input tensor; a vector or matrix if `ord` is given.
        ord: The order of the norm: a number, inf or -inf; None: the 2-norm of all elements.

    Raises: ShapeError if `ord` is given, `dim` is not, and `A` has neither 1 nor 2 dimensions; and what the two norms
    raise.

    >>> import plait_core as pc
    >>> pc.linalg.norm(pc.tensor([[3.0, 0.0], [0.0, 4.0]]), 2).item()
    4.0
    """,
    dtypes="inexact",
)
linalg_norm_name = Composite(
    "linalg_norm.name(Tensor A|self, str ord, int[]? dim|axis=None, bool keepdim|keepdims=False, *, dtype? dtype=None) -> Tensor",
    doc="""
    `linalg.matrix_norm` with `ord` "fro" or "nuc".

    Args:
        A: A matrix, or a batch of them.
        ord: The name of the norm: "fro" or "nuc".

    >>> import plait_core as pc
    >>> pc.linalg.norm(pc.tensor([[3.0, 0.0], [0.0, 4.0]]), "nuc").item()
    7.0
    """,
    dtypes="inexact",
)


@linalg_norm_.decompose
def _(A, ord, dim, keepdim, dtype):
    if ord is None:
        return op.linalg_vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if dim is not None:
        check(
            len(dim) == 1 or len(dim) == 2,
            f"`dim` must be one dimension of vectors or two of matrices; got {dim}",
            "ValueError",
        )
        if len(dim) == 1:
            return op.linalg_vector_norm(A, ord, dim, keepdim, dtype=dtype)
        return op.linalg_matrix_norm(A, ord, dim, keepdim, dtype=dtype)
    check(
        A.ndim == 1 or A.ndim == 2,
        f"`A` must have 1 or 2 dimensions where `ord` is given and `dim` is not; got shape {A.shape}",
    )
    if A.ndim == 1:
        return op.linalg_vector_norm(A, ord, dim, keepdim, dtype=dtype)
    return op.linalg_matrix_norm(A, ord, [-2, -1], keepdim, dtype=dtype)


@linalg_norm_name.decompose
def _(A, ord, dim, keepdim, dtype):
    if dim is not None:
        return op.linalg_matrix_norm_name(A, ord, dim, keepdim, dtype=dtype)
    check(A.ndim == 2, f"`A` must have 2 dimensions where `dim` is not given; got shape {A.shape}")
    return op.linalg_matrix_norm_name(A, ord, [-2, -1], keepdim, dtype=dtype)


# ---- condition numbers ---------------------------------------------------------------------------
linalg_cond = Composite(
    "linalg_cond(Tensor A, Scalar? p=None) -> Tensor",
    doc="""
    The condition number ``|A| |A^-1|`` in the norm `p` of `linalg.matrix_norm`; by default the quotient of the largest and
    smallest singular value, also of matrices that are not square. A singular matrix gives inf.

    Args:
        p: The norm by which the condition is measured; None: 2.

    Shapes: `A` is (..., m, n), square unless `p` is None, 2 or -2; the result is (...), real. Dtypes: floating and complex.
    Raises: ShapeError for other shapes, DTypeError for integers, ValueError for another `p`.

    >>> import plait_core as pc
    >>> pc.linalg.cond(pc.tensor([[2.0, 0.0], [0.0, 0.5]])).item()
    4.0
    """,
    dtypes="inexact",
    widens=True,
)
linalg_cond_name = Composite(
    "linalg_cond.name(Tensor A, str p) -> Tensor",
    doc="""
    The condition number in the Frobenius or nuclear norm, `p` "fro" or "nuc".

    Args:
        p: The norm by which the condition is measured; None: 2.

    >>> import plait_core as pc
    >>> round(pc.linalg.cond(pc.eye(2), "fro").item(), 3)
    2.0
    """,
    dtypes="inexact",
    widens=True,
)


@linalg_cond.decompose
def _(A, p):
    require_matrix("A", A)
    kind = 2.0
    if p is not None:
        kind = float(p)
    if kind == 2.0 or kind == -2.0:
        values = op.linalg_svdvals(A)
        if numel(values.shape) == 0:
            return op.zeros(A.shape[:-2], dtype=real_dtype(A.dtype), device=A.device)
        first = op.select(values, -1, 0)
        last = op.select(values, -1, -1)
        return first / last if kind > 0.0 else last / first
    require_square("A", A)
    inverse, info = op.linalg_inv_ex(A)
    made = op.linalg_matrix_norm(A, kind) * op.linalg_matrix_norm(inverse, kind)
    return op.masked_fill(made, op.gt(info, 0), INFINITY)


@linalg_cond_name.decompose
def _(A, p):
    require_square("A", A)
    inverse, info = op.linalg_inv_ex(A)
    made = op.linalg_matrix_norm_name(A, p) * op.linalg_matrix_norm_name(inverse, p)
    return op.masked_fill(made, op.gt(info, 0), INFINITY)
