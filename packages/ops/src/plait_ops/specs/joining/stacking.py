"""Tensors joined along a new dimension, or along one that depends on their number of dimensions."""

from plait_ops import calls as op
from plait_ops.spec import Composite
from plait_ops.words import check


def _of_list(name, text, example):
    """An operator on a list of tensors that gives one."""
    operator = Composite(
        f"{name}(Tensor[] tensors) -> Tensor",
        doc=f"""
    {text}

    Raises: ValueError for an empty list, ShapeError if sizes do not fit.

    >>> import plait_core as pc
    >>> pc.{name}([pc.tensor([1, 2]), pc.tensor([3, 4])]).tolist()
    {example}
    """,
        dtypes="any",
    )
    return operator


hstack = _of_list(
    "hstack",
    "The `tensors` joined along dimension 1, vectors along dimension 0; 0-d tensors count as vectors.",
    "[1, 2, 3, 4]",
)
vstack = _of_list(
    "vstack",
    "The `tensors` joined along dimension 0; a vector counts as a row.",
    "[[1, 2], [3, 4]]",
)
row_stack = _of_list("row_stack", "Another name of `vstack`.", "[[1, 2], [3, 4]]")
dstack = _of_list(
    "dstack",
    "The `tensors` joined along dimension 2; a matrix of shape (n, m) counts as (n, m, 1), a vector of n elements as (1, n, 1).",
    "[[[1, 3], [2, 4]]]",
)
column_stack = _of_list(
    "column_stack",
    "The `tensors` joined along dimension 1; a vector counts as a column.",
    "[[1, 3], [2, 4]]",
)


@hstack.decompose
def _(tensors):
    check(
        len(tensors) > 0, "`tensors` must hold at least one tensor; got an empty list", "ValueError"
    )
    parts = [op.atleast_1d(t) for t in tensors]
    first = parts[0]
    return op.cat(parts, 0 if first.ndim == 1 else 1)


@vstack.decompose
@row_stack.decompose
def _(tensors):
    check(
        len(tensors) > 0, "`tensors` must hold at least one tensor; got an empty list", "ValueError"
    )
    return op.cat([op.atleast_2d(t) for t in tensors], 0)


@dstack.decompose
def _(tensors):
    check(
        len(tensors) > 0, "`tensors` must hold at least one tensor; got an empty list", "ValueError"
    )
    return op.cat([op.atleast_3d(t) for t in tensors], 2)


@column_stack.decompose
def _(tensors):
    check(
        len(tensors) > 0, "`tensors` must hold at least one tensor; got an empty list", "ValueError"
    )
    parts = []
    for t in tensors:
        if t.ndim <= 1:
            parts.append(op.reshape(t, [-1, 1]))
        else:
            parts.append(t)
    return op.cat(parts, 1)


# ---- dimensions added where there are too few --------------------------------------------------
def _atleast(n, text, example):
    operator = Composite(
        f"atleast_{n}d(Tensor(a) self) -> Tensor(a)",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> pc.atleast_{n}d(pc.tensor([1, 2])).tolist()
    {example}
    """,
        dtypes="any",
    )
    return operator


atleast_1d_ = _atleast(
    1, "`self` as a view with at least 1 dimension: a 0-d tensor becomes a vector.", "[1, 2]"
)
atleast_2d_ = _atleast(
    2, "`self` as a view with at least 2 dimensions: a vector becomes a row.", "[[1, 2]]"
)
atleast_3d_ = _atleast(
    3,
    "`self` as a view with at least 3 dimensions: a matrix of shape (n, m) becomes (n, m, 1), a vector of n elements (1, n, 1).",
    "[[[1], [2]]]",
)


@atleast_1d_.decompose
def _(self):
    return op.unsqueeze(self, 0) if self.ndim == 0 else self


@atleast_2d_.decompose
def _(self):
    if self.ndim >= 2:
        return self
    return op.unsqueeze(op.atleast_1d(self), 0)


@atleast_3d_.decompose
def _(self):
    if self.ndim >= 3:
        return self
    return op.unsqueeze(op.atleast_2d(self), 2)


stack = Composite(
    "stack(Tensor[] tensors, int dim|axis=0) -> Tensor",
    doc="""
    The `tensors`, all of one shape, along a new dimension `dim`, which lies in ``[-ndim - 1, ndim]``.

    Args:
        tensors: The tensors, all of one shape.

    Raises: ValueError for an empty list, ShapeError if shapes differ, IndexError for a `dim` out of range.

    >>> import plait_core as pc
    >>> pc.stack([pc.tensor([1, 2]), pc.tensor([3, 4])], 1).tolist()
    [[1, 3], [2, 4]]
    """,
    dtypes="any",
)


@stack.decompose
def _(tensors, dim):
    check(
        len(tensors) > 0, "`tensors` must hold at least one tensor; got an empty list", "ValueError"
    )
    first = tensors[0]
    parts = []
    for i in range(len(tensors)):
        t = tensors[i]
        check(
            t.shape == first.shape,
            f"`tensors` must have one shape; got {first.shape} and, at {i}, {t.shape}",
        )
        parts.append(op.unsqueeze(t, dim))
    return op.contiguous(op.cat(parts, dim))
