"""Indices of the elements that are not 0."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.words import check, int64, is_complex, item, numel, require, result

nonzero_ = Operator(
    "nonzero(Tensor self) -> Tensor",
    doc="""
    The indices of the elements that are not 0, one row each, in C order: int64 of shape (count, ndim). The shape of the
    result depends on the values, so tensors on the device meta are an error.

    >>> import plait_core as pc
    >>> pc.nonzero(pc.tensor([0, 5, 7])).tolist()
    [[1], [2]]
    """,
    kernel="this operator takes no kernel, since the size of its result depends on the values; replace `nonzero_rows` and `count_nonzero` instead.",
    variants="function method",
)
nonzero_rows = Operator(
    "nonzero_rows(Tensor self, int count) -> Tensor",
    doc="`nonzero` with a given number of rows.",
    internal=True,
    kernel="writes at most in[1] rows; it is the number of elements that are not 0.",
)


@nonzero_.decompose
def _(self):
    if is_complex(self.dtype):
        found = op.ne(self, 0)
        return nonzero_rows(found, item(op.count_nonzero(found)))
    return nonzero_rows(self, item(op.count_nonzero(self)))


@nonzero_rows.shape
def _(self, count):
    check(count >= 0, f"`count` must not be negative; got {count}", "ValueError")
    require("self", self.dtype, "all")
    return result([count, self.ndim], int64)


argwhere = Composite(
    "argwhere(Tensor self) -> Tensor",
    doc="""
    The indices of the elements that are not 0, one row each: `nonzero` under NumPy's name.

    >>> import plait_core as pc
    >>> pc.argwhere(pc.tensor([0, 5, 7])).tolist()
    [[1], [2]]
    """,
    variants="function method",
)


@argwhere.decompose
def _(self):
    return op.nonzero(self)


nonzero_static = Composite(
    "nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor",
    doc="""
    The indices of the first `size` elements that are not 0, one row each, then rows of `fill_value`: `nonzero` with a shape
    that does not depend on the elements.

    Args:
        size: The number of rows of the result.
        fill_value: The value of the rows that are left.

    Shape: (size, ndim). Dtype: int64. Raises: ValueError if `size` is negative.

    >>> import plait_core as pc
    >>> pc.nonzero_static(pc.tensor([0, 5, 7]), size=3).tolist()
    [[1], [2], [-1]]
    """,
    dtypes="any",
    variants="function method",
)


@nonzero_static.decompose
def _(self, size, fill_value):
    check(size >= 0, f"`size` must not be negative; got {size}", "ValueError")
    n = numel(self.shape)
    found = op.reshape(op.ne(self, 0), [n])
    before = op.cumsum(found, 0) - 1
    # unwanted elements get an additional index, which is dropped
    rows = op.where(op.bitwise_and(found, op.lt(before, size)), before, size)
    empty = op.full([size + 1], -1, dtype=int64, device=self.device)
    flat = op.narrow(op.scatter(empty, 0, rows, op.arange(n, device=self.device)), 0, 0, size)
    missing = op.lt(flat, 0)
    made = op.full([size, self.ndim], fill_value, dtype=int64, device=self.device)
    step = n
    for d in range(self.ndim):
        step = step // max(self.shape[d], 1)
        place = op.remainder(op.floor_divide(flat, max(step, 1)), max(self.shape[d], 1))
        op.copy_(op.select(made, 1, d), op.where(missing, fill_value, place))
    return made


nonzero_list = Composite(
    "nonzero_list(Tensor self) -> Tensor[]",
    doc="`nonzero` as one int64 vector for each dimension, so that ``self[result]`` selects the elements. A 0-d tensor counts as a vector.",
    internal=True,
)


@nonzero_list.decompose
def _(self):
    x = self if self.ndim > 0 else op.reshape(self, [1])
    rows = op.nonzero(x)
    return [op.select(rows, 1, d) for d in range(x.ndim)]
