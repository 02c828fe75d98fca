"""Test data of linalg/matrix_norms: references in NumPy, sample calls, errors."""

import math

import numpy as np

from plait_ops.samples.matrices import regular
from plait_ops.specs.linalg.matrix_norms import (
    linalg_cond,
    linalg_cond_name,
    linalg_matrix_norm_,
    linalg_matrix_norm_name_,
    linalg_norm_,
    linalg_norm_name,
    linalg_vector_norm_,
)


def _dims(dim):
    if dim is None or (isinstance(dim, (tuple, list)) and not len(dim)):
        return None
    return tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)


@linalg_vector_norm_.reference
def _(x, ord=2, dim=None, keepdim=False, dtype=None):
    y = x.astype(dtype or x.dtype)
    axes = _dims(dim)
    axes = tuple(range(x.ndim)) if axes is None else tuple(a % x.ndim for a in axes)
    rest = tuple(i for i in range(x.ndim) if i not in axes)
    flat = abs(y).transpose(rest + axes).reshape([y.shape[i] for i in rest] + [-1])
    result = np.linalg.norm(flat, ord, -1)
    shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keepdim or i not in axes]
    return np.asarray(result).reshape(shape).astype(y.real.dtype)


@linalg_vector_norm_.samples
def _(s):
    for ord_ in (2, 1, 0, 3.5, -1, math.inf, -math.inf):
        yield s(s.distinct(3, 4), ord_, 1)
    yield s(s.array(2, 3, 4), 2, (0, -1), True)
    yield s(s.array(3, 4))
    yield s(s.array(3, dtype="complex64"))
    yield s(s.array(3), dtype="float64")
    yield s(s.strided(3, 2), 3, (0,))


linalg_vector_norm_.error(
    "IndexError", lambda s: s(s.array(2, 3), 2, 2), contains=["norm", "dim", "(2, 3)", "2"]
)
linalg_vector_norm_.error(
    "DTypeError",
    lambda s: s(s.array(2, dtype="int64")),
    contains=["linalg_vector_norm", "`x`", "int64"],
)


def _matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, dtype=None):
    x = A.astype(dtype or A.dtype)
    if x.size == 0:  # only newer releases of NumPy support this
        return np.sum(x.real, tuple(dim), keepdims=keepdim)
    return np.asarray(np.linalg.norm(x, ord, tuple(dim), keepdim)).astype(x.real.dtype)


linalg_matrix_norm_.reference(
    lambda A, ord, dim=(-2, -1), keepdim=False, dtype=None: _matrix_norm(
        A, ord, dim, keepdim, dtype
    )
)
linalg_matrix_norm_name_.reference(
    lambda A, ord="fro", dim=(-2, -1), keepdim=False, dtype=None: _matrix_norm(
        A, ord, dim, keepdim, dtype
    )
)


@linalg_matrix_norm_.samples
def _(s):
    for ord_ in (1, -1, 2, -2, math.inf, -math.inf):
        yield s(s.distinct(3, 4), ord_).loosely(10)
        yield s(s.distinct(2, 3, 4), ord_, (2, 0), True).loosely(10)
    yield s(s.array(2, 3, dtype="complex64"), 1).loosely(10)
    for ord_ in (1, 2, math.inf):
        yield s(s.array(2, 0, 3), ord_)
        yield s(s.array(3, 0), ord_)
    yield s(s.strided(2, 3), 2).loosely(10)


@linalg_matrix_norm_name_.samples
def _(s):
    yield s(s.array(3, 4)).loosely(10)
    yield s(s.array(3, 4), "nuc").loosely(10)
    yield s(s.array(2, 3, 4), "nuc", (0, 2), True).loosely(10)
    yield s(s.array(2, 3, 4), "fro", (2, 0), True).loosely(10)
    yield s(s.array(2, 3, dtype="complex64")).loosely(10)


for _each, _ord in ((linalg_matrix_norm_, 1), (linalg_matrix_norm_name_, "fro")):
    _each.error(
        "ShapeError",
        lambda s, o=_ord: s(s.array(3), o),
        contains=["linalg_matrix_norm", "`A`", "(3,)"],
    )
    _each.error(
        "ValueError",
        lambda s, o=_ord: s(s.array(2, 3), o, (1, -1)),
        contains=["linalg_matrix_norm", "dim", "(1, -1)"],
    )
linalg_matrix_norm_.error(
    "ValueError", lambda s: s(s.array(2, 3), 3), contains=["linalg_matrix_norm", "ord", "3"]
)
linalg_matrix_norm_name_.error(
    "ValueError", lambda s: s(s.array(2, 3), "max"), contains=["linalg_matrix_norm", "ord", "max"]
)


@linalg_norm_.reference
def _(A, ord=None, dim=None, keepdim=False, dtype=None):
    axes = _dims(dim)
    if ord is None or (len(axes) == 1 if axes else A.ndim == 1):
        return linalg_vector_norm_(A, 2 if ord is None else ord, axes, keepdim, dtype=dtype)
    return _matrix_norm(A, ord, axes or (-2, -1), keepdim, dtype)


linalg_norm_name.reference(
    lambda A, ord, dim=None, keepdim=False, dtype=None: _matrix_norm(
        A, ord, _dims(dim) or (-2, -1), keepdim, dtype
    )
)


@linalg_norm_.samples
def _(s):
    yield s(s.array(2, 3, 4))
    yield s(s.array(3), 3).loosely(10)
    yield s(s.distinct(3, 4), 2).loosely(10)
    yield s(s.distinct(3, 4), 1, 1)
    yield s(s.distinct(2, 3, 4), math.inf, (0, 1), True)
    yield s(s.array(2, 3), dim=(0, 1), dtype="float64")


linalg_norm_name.samples(
    lambda s: iter([s(s.array(3, 4), "fro"), s(s.array(2, 3, 4), "nuc", (0, 1)).loosely(10)])
)
linalg_norm_.error(
    "ShapeError", lambda s: s(s.array(2, 3, 4), 2), contains=["linalg_norm", "`A`", "(2, 3, 4)"]
)
linalg_norm_.error(
    "ValueError", lambda s: s(s.array(2, 3, 4), 2, (0, 1, 2)), contains=["linalg_norm", "dim"]
)
linalg_norm_name.error(
    "ShapeError", lambda s: s(s.array(3), "fro"), contains=["linalg_norm", "`A`", "(3,)"]
)


linalg_cond.reference(lambda A, p=None: np.asarray(np.linalg.cond(A, p)).astype(A.real.dtype))
linalg_cond_name.reference(lambda A, p: np.asarray(np.linalg.cond(A, p)).astype(A.real.dtype))


@linalg_cond.samples
def _(s):
    yield s(regular(s, 3, 3)).loosely(50)
    yield s(s.array(2, 3, 2)).loosely(100)
    for p in (1, -1, math.inf, -2):
        yield s(regular(s, 2, 3, 3), p).loosely(50)
    yield s(regular(s, 2, 2, dtype="complex64")).loosely(50)


linalg_cond_name.samples(
    lambda s: iter([s(regular(s, 3, 3), "fro").loosely(50), s(regular(s, 3, 3), "nuc").loosely(50)])
)
linalg_cond.error(
    "ShapeError", lambda s: s(s.array(2, 3), 1), contains=["linalg_cond", "`A`", "square"]
)
linalg_cond_name.error(
    "ShapeError", lambda s: s(s.array(2, 3), "fro"), contains=["linalg_cond", "`A`", "square"]
)
