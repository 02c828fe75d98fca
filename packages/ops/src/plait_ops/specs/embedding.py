"""Rows of a table by their indices."""

import numpy as np

from plait_ops.calls import eq, masked_fill, unsqueeze
from plait_ops.spec import Operator
from plait_ops.words import check, require, result

embedding = Operator(
    "embedding(Tensor weight, Tensor indices, int padding_idx=-1) -> Tensor",
    doc="""
    ``out[...] = weight[indices[...]]``. The row `padding_idx` gets no gradient (-1: every row does).

    Shapes: weight (rows, width) and indices (*) give (*, width). Indices are integers in [-rows, rows - 1]; negative
    ones count from the end.

    Raises: ShapeError if `weight` is no matrix; DTypeError if `indices` are not integers; IndexError if one is out of
    range or `padding_idx` is.

    >>> import plait_core as pc
    >>> pc.embedding(pc.tensor([[1.0, 2.0], [3.0, 4.0]]), pc.tensor([1, 0])).tolist()
    [[3.0, 4.0], [1.0, 2.0]]
    """,
    dtypes="any",
    method=False,
)


@embedding.shape
def _(weight, indices, padding_idx):
    check(weight.ndim == 2, f"`weight` must be a matrix; got shape {weight.shape}")
    require("indices", indices.dtype, "integer")
    check(
        padding_idx >= -1 and padding_idx < max(weight.shape[0], 1),
        f"`padding_idx` must be a row of `weight` of shape {weight.shape}; got {padding_idx}",
        "IndexError",
    )
    return result(indices.shape + [weight.shape[1]], weight.dtype)


@embedding.vjp("weight")
def _(g, weight, indices, padding_idx):
    return embedding_backward(g, indices, weight.shape[0], padding_idx)


embedding.reference(lambda weight, indices, padding_idx=-1: weight[indices])


@embedding.samples
def _(s):
    yield s(s.array(5, 3), s.indices(5, 4))
    yield s(s.array(5, 3), s.indices(5, 2, 3), 2)
    yield s(s.array(5, 3).T, s.indices(3, 4))
    yield s(s.strided(5, 3), s.indices(5, 6)[::-2])
    yield s(s.array(5, 3), s.indices(5))
    yield s(s.array(5, 3), s.indices(5, 0))
    yield s(s.array(5, 0), s.indices(5, 2))
    yield s(s.array(5, 3), s.indices(5, 4, dtype="int32"))
    yield s(s.array(5, 3), s.indices(5, 7, negative=True))
    yield s(s.array(5, 3, dtype="float64"), s.indices(5, 4))


embedding.error(
    "ShapeError", lambda s: s(s.array(5), s.indices(5, 2)), contains=["embedding", "weight", "(5,)"]
)
embedding.error(
    "DTypeError", lambda s: s(s.array(5, 3), s.array(2)), contains=["embedding", "indices", "float32"]
)
embedding.error(
    "IndexError", lambda s: s(s.array(5, 3), np.array([0, 5])), contains=["embedding", "5", "size 5"]
)
embedding.error(
    "IndexError",
    lambda s: s(s.array(5, 3), s.indices(5, 2), 7),
    contains=["embedding", "padding_idx", "(5, 3)", "7"],
)


embedding_backward = Operator(
    "embedding_backward(Tensor gy, Tensor indices, int rows, int padding_idx=-1) -> Tensor",
    doc="""
    Sums the rows of `gy` that have the same index: the gradient of embedding's table of `rows` rows.

    Raises: ShapeError if `gy` is not `indices` by a width; DTypeError; IndexError.

    >>> import plait_core as pc
    >>> pc.embedding_backward(pc.ones(2, 1), pc.tensor([1, 1]), 3).tolist()
    [[0.0], [2.0], [0.0]]
    """,
    dtypes="floating",
    internal=True,
)


@embedding_backward.shape
def _(gy, indices, rows):
    check(
        gy.ndim == indices.ndim + 1 and gy.shape[:-1] == indices.shape,
        f"`gy` must have the shape of `indices` and a width; got {gy.shape} and {indices.shape}",
    )
    check(rows >= 0, f"`rows` must not be negative; got {rows}", "ValueError")
    require("gy", gy.dtype, "floating")
    require("indices", indices.dtype, "integer")
    return result([rows, gy.shape[-1]], gy.dtype)


@embedding_backward.vjp("gy")
def _(g, indices, padding_idx):
    rows = embedding(g, indices)
    if padding_idx >= 0:
        return masked_fill(rows, unsqueeze(eq(indices, padding_idx), -1), 0)
    return rows


@embedding_backward.reference
def _(gy, indices, rows, padding_idx=-1):
    out = np.zeros((rows, gy.shape[-1]), gy.dtype)
    at = np.where(indices < 0, indices + rows, indices)
    keep = at != padding_idx
    np.add.at(out, at[keep], gy[keep])
    return out


@embedding_backward.samples
def _(s):
    yield s(s.array(4, 3), s.indices(5, 4), 5)
    yield s(s.array(2, 3, 3), s.indices(4, 2, 3), 4, 1)
    yield s(s.strided(6, 3), s.indices(2, 6), 2)
    yield s(s.array(3), s.indices(5), 5)
    yield s(s.array(0, 3), s.indices(5, 0), 5)
    yield s(s.array(4, 3, dtype="float64"), s.indices(5, 4), 5)


embedding_backward.error(
    "ShapeError",
    lambda s: s(s.array(4, 3), s.indices(5, 3), 5),
    contains=["embedding_backward", "gy", "(4, 3)", "(3,)"],
)
embedding_backward.error(
    "IndexError",
    lambda s: s(s.array(1, 3), np.array([9]), 5),
    contains=["embedding_backward", "9", "size 5"],
)
