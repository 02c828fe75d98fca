"""One triangle of a matrix."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.words import (
    bool_,
    check,
    part,
    require,
    result,
    to_dtype,
)


def _triangle(name, text, example):
    operator = Operator(
        f"{name}(Tensor self, int diagonal|k=0) -> Tensor",
        doc=f"""
    The {text} of the matrices in the last two dimensions, 0 elsewhere. A positive `diagonal` moves the edge of the triangle
    to the upper right, a negative one to the lower left.

    Shape: at least two dimensions; the result has the shape of `self`. Dtypes: all.
    Raises: ShapeError for fewer dimensions.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([[1, 2], [3, 4]])).tolist()
    {example}
    """,
        kernel="in[0] has any strides and dtype; the result is in C order and zero elsewhere; in[1] is any int64.",
        inplace=True,
        dtypes="any",
        variants="function method",
    )

    @operator.shape
    def _(self):
        check(self.ndim >= 2, f"`self` must have at least 2 dimensions; got shape {self.shape}")
        return result(self.shape, self.dtype)

    return operator


tril = _triangle("tril", "lower triangle with the diagonal", "[[1, 0], [3, 4]]")
triu = _triangle("triu", "upper triangle with the diagonal", "[[1, 2], [0, 4]]")
tril.batch("matrices")
triu.batch("matrices")


@tril.vjp("self")
def _(g, diagonal):
    return tril(g, diagonal)


@triu.vjp("self")
def _(g, diagonal):
    return triu(g, diagonal)


@part
def _offsets(self):
    """How far each place of a matrix lies above the diagonal."""
    rows = op.reshape(op.arange(self.shape[-2], device=self.device), [self.shape[-2], 1])
    return op.arange(self.shape[-1], device=self.device) - rows


@tril.decompose
def _(self, diagonal):
    return op.masked_fill(self, op.gt(_offsets(self), diagonal), 0)


@triu.decompose
def _(self, diagonal):
    return op.masked_fill(self, op.lt(_offsets(self), diagonal), 0)


def _indices(triangle, lower):
    def decompose(row, col, offset, dtype, device):
        check(
            row >= 0 and col >= 0,
            f"`row` and `col` must not be negative; got {row} and {col}",
            "ValueError",
        )
        require("dtype", dtype, "integer")
        square = triangle(op.ones([row, col], dtype=bool_, device=device), offset)
        # Row i has start + i elements left of the diagonal, but at least 0 and at most `col`. So
        # the shape is known without values, also on the device meta.
        start = offset + (1 if lower else 0)
        some = min(max(1 - start, 0), row)
        full = min(max(col - start, some), row)
        below = (full - some) * (2 * start + full + some - 1) // 2 + (row - full) * col
        rows = op.nonzero_rows(square, below if lower else row * col - below)
        return op.clone(
            op.transpose(to_dtype(rows, dtype), 0, 1), memory_format="contiguous_format"
        )

    return decompose


def _triangle_indices(name, what, example):
    operator = Composite(
        f"{name}_indices(int row, int col, int offset=0, *, dtype dtype=int64, device? device=None) -> Tensor",
        doc=f"""
    Where the {what} triangle of a matrix of `row` rows and `col` columns is: row numbers and column numbers, shape (2, n),
    row by row. A positive `offset` moves the edge of the triangle to the upper right, a negative one to the lower left.

    Raises: ValueError for a negative size, DTypeError unless `dtype` is int32 or int64.

    >>> import plait_core as pc
    >>> pc.{name}_indices(2, 2).tolist()
    {example}
    """,
    )
    return operator


tril_indices = _triangle_indices("tril", "lower", "[[0, 1, 1], [0, 0, 1]]")
triu_indices = _triangle_indices("triu", "upper", "[[0, 0, 1], [0, 1, 1]]")


tril_indices.decompose(_indices(tril, True))
triu_indices.decompose(_indices(triu, False))
