"""Rows of a table, and one-hot rows."""

from plait_ops import calls as op
from plait_ops.costs import nbytes
from plait_ops.spec import Composite, Operator
from plait_ops.words import cast_argument, check, int64, is_complex, item, numel, require, result

embedding = Operator(
    "embedding(Tensor weight, Tensor indices, int padding_idx=-1) -> Tensor",
    doc="""
    The rows of `weight` at `indices`; negative indices count from the end. The row `padding_idx` (unless -1) gets no
    gradient.

    Args:
        weight: The vectors, one in each row: shape (V, D).
        indices: The rows to return, int64, of any shape.

    Shapes: `weight` is (n, d), `indices` has any shape, the result has the shape of `indices` followed by d. Dtypes: any;
    `indices` integers.
    Raises: ShapeError unless `weight` is a matrix, DTypeError unless `indices` hold integers, IndexError for an index
    outside [-n, n).

    >>> import plait_core as pc
    >>> pc.embedding(pc.tensor([[1, 2], [3, 4]]), pc.tensor([1, 1])).tolist()
    [[3, 4], [3, 4]]
    """,
    dtypes="any",
    kernel="indices are int64; a value outside [-n, n) is an IndexError that names it and n.",
)
embedding.shard("code")
embedding.batch("leading, code", indices="all")
embedding_backward = Operator(
    "embedding_backward(Tensor grad, Tensor indices, int num_weights, int padding_idx) -> Tensor",
    doc="Rows of `grad` added up at `indices` in zeros of `num_weights` rows: the derivative of `embedding`.",
    dtypes="floating",
    internal=True,
    kernel="indices are int64; rows are added in order.",
)
embedding_backward.batch("code")


@embedding.shape
def _(weight, indices):
    check(weight.ndim == 2, f"`weight` must have 2 dimensions; got shape {weight.shape}")
    require("indices", indices.dtype, "integer")
    cast_argument("indices", int64)
    return result(indices.shape + weight.shape[1:], weight.dtype)


@embedding.cost
def _(indices, result):
    return 0, nbytes(indices) + nbytes(result), nbytes(result)


@embedding.decompose
def _(weight, indices):
    rows = op.index_select(weight, 0, op.reshape(indices, [-1]))
    return op.reshape(rows, indices.shape + weight.shape[1:])


@embedding_backward.shape
def _(grad, indices, num_weights):
    require("grad", grad.dtype, "floating")
    require("indices", indices.dtype, "integer")
    check(
        grad.ndim == indices.ndim + 1 and grad.shape[:-1] == indices.shape,
        f"`grad` of shape {grad.shape} must have the shape of `indices`, {indices.shape}, and one more dimension",
    )
    cast_argument("indices", int64)
    return result([num_weights] + grad.shape[-1:], grad.dtype)


@embedding_backward.cost
def _(grad):
    return numel(grad)


@embedding_backward.decompose
def _(grad, indices, num_weights, padding_idx):
    rows = op.reshape(grad, [numel(indices.shape), grad.shape[-1]])
    at = op.reshape(indices, [-1])
    if padding_idx >= 0:
        rows = op.where(op.unsqueeze(op.eq(at, padding_idx), 1), 0.0, rows)
    made = op.zeros([num_weights, grad.shape[-1]], dtype=grad.dtype, device=grad.device)
    return op.index_add(made, 0, at, rows)


@embedding.vjp("weight")
def _(g, weight, indices, padding_idx):
    if is_complex(g.dtype):
        flat = op.reshape(indices, [-1])
        rows = op.reshape(g, [numel(indices.shape), weight.shape[1]])
        if padding_idx >= 0:
            rows = op.where(op.unsqueeze(op.eq(flat, padding_idx), -1), 0.0, rows)
        return op.index_add(op.zeros(weight.shape, dtype=g.dtype, device=g.device), 0, flat, rows)
    return embedding_backward(g, indices, weight.shape[0], padding_idx)


@embedding_backward.vjp("grad")
def _(g, grad, indices, padding_idx):
    rows = embedding(g, indices)
    if padding_idx >= 0:
        return op.where(op.unsqueeze(op.eq(indices, padding_idx), -1), 0.0, rows)
    return rows


one_hot = Composite(
    "one_hot(Tensor self, int num_classes=-1) -> Tensor",
    doc="""
    A new last dimension of size `num_classes`, int64, with 1 at the place that each element of `self` names and 0
    elsewhere. `num_classes` -1 means the largest element plus 1.

    Raises: DTypeError unless `self` holds integers, ValueError for another negative `num_classes`.

    >>> import plait_core as pc, plait_nn.functional as F
    >>> F.one_hot(pc.tensor([0, 2]), 3).tolist()
    [[1, 0, 0], [0, 0, 1]]
    """,
    dtypes="integer",
    variants="",
)


@one_hot.decompose
def _(self, num_classes):
    require("self", self.dtype, "integer")
    check(
        num_classes >= -1,
        f"`num_classes` must be at least 0, or -1 for as many as there are; got {num_classes}",
        "ValueError",
    )
    n = num_classes
    if num_classes == -1:
        n = item(op.cast(op.max(self), int64)) + 1
    return op.cast(op.eq(op.unsqueeze(self, -1), op.arange(n, device=self.device)), int64)
