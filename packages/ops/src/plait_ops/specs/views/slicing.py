"""Views of a part: one element or a range along a dimension."""

from plait_ops import calls as op
from plait_ops.spec import Operator, View
from plait_ops.words import (
    check,
    part,
    result,
    sizes,
    slice_count,
    slice_start,
    view as look,
    wrap_dim,
    wrap_index,
)

select = View(
    "select(Tensor(a) self, int dim, int index) -> Tensor(a)",
    doc="""
    The slice of `self` at `index` along `dim`, without that dimension: ``self[..., index, ...]``.

    Args:
        index: The index along `dim`; a negative one counts from the last.

    Raises: IndexError if `dim` or `index` is out of range.

    >>> import plait_core as pc
    >>> pc.tensor([[1, 2], [3, 4]]).select(0, -1).tolist()
    [3, 4]
    """,
    variants="function method",
)
select.batch("leading")
select_backward = Operator(
    "select_backward(Tensor grad, int[] size, int dim, int index) -> Tensor",
    doc="Zeros of shape `size` with `grad` at `index` along `dim`: the derivative of `select`.",
    kernel="optional: without a kernel other operators compute it; in[2] and in[3] may be negative; every element of the result is written, zeros included.",
    dtypes="floating",
    internal=True,
)
select_backward.batch("leading")


@select.shape
def _(self, dim, index):
    check(
        self.ndim > 0,
        f"`self` must have at least 1 dimension; got shape {self.shape}",
        "IndexError",
    )
    at = wrap_dim("dim", dim, self.shape)
    i = wrap_index("index", index, self.shape[at])
    return look(
        self,
        self.shape[:at] + self.shape[at + 1 :],
        self.strides[:at] + self.strides[at + 1 :],
        i * self.strides[at],
    )


@select.vjp("self")
def _(g, self, dim, index):
    if self.shape[dim] == 1:  # it is all of self
        return op.unsqueeze(g, dim)
    return select_backward(g, self.shape, dim, index)


@select_backward.shape
def _(grad, size, dim, index):
    sizes("size", size)
    at = wrap_dim("dim", dim, size)
    wrap_index("index", index, size[at])
    check(
        grad.shape == size[:at] + size[at + 1 :],
        f"`grad` of shape {grad.shape} does not fit `size` {size} without dimension {at}",
    )
    return result(size, grad.dtype)


@select_backward.decompose
def _(grad, size, dim, index):
    made = op.zeros(size, dtype=grad.dtype, device=grad.device)
    op.copy_(select(made, dim, index), grad)
    return made


@select_backward.vjp("grad")
def _(g, dim, index):
    return select(g, dim, index)


slice_ = View(
    "slice(Tensor(a) self, int dim, int? start=None, int? end=None, int step=1) -> Tensor(a)",
    doc="""
    ``self[..., start:end:step, ...]`` along `dim`: bounds are clipped as Python does, `step` may be negative.

    Args:
        end: The index after the last element; None: the size.
        start: The index of the first element; None: 0.

    Raises: IndexError for a `dim` out of range, ValueError if `step` is 0.

    >>> import plait_abi, plait_core as pc
    >>> plait_abi.operator("slice")(pc.arange(5), 0, None, None, -2).tolist()
    [4, 2, 0]
    """,
    variants="",
)
slice_.batch("leading")
slice_backward = Operator(
    "slice_backward(Tensor grad, int[] size, int dim, int? start=None, int? end=None, int step=1) -> Tensor",
    doc="Zeros of shape `size` with `grad` in ``[..., start:end:step, ...]``: the derivative of `slice`.",
    kernel="optional: without a kernel other operators compute it; in[2] may be negative, in[3] and in[4] may be None or lie outside, in[5] may be negative; every element of the result is written, zeros included.",
    dtypes="floating",
    internal=True,
)
slice_backward.batch("leading")


@part
def sliced_dim(self, dim, step):
    check(
        self.ndim > 0,
        f"`self` must have at least 1 dimension; got shape {self.shape}",
        "IndexError",
    )
    at = wrap_dim("dim", dim, self.shape)
    check(step != 0, f"`step` must not be 0; got {step}", "ValueError")
    return at


@slice_.shape
def _(self, dim, start, end, step):
    at = sliced_dim(self, dim, step)
    n = self.shape[at]
    first = slice_start(start, step, n)
    count = slice_count(start, end, step, n)
    shape = list(self.shape)
    strides = list(self.strides)
    shape[at] = count
    strides[at] = strides[at] * step if count > 1 else strides[at]
    return look(self, shape, strides, first * self.strides[at] if count > 0 else 0)


@slice_.vjp("self")
def _(g, self, dim, start, end, step):
    if step > 0 and g.shape == self.shape:  # it is all of self
        return g
    return slice_backward(g, self.shape, dim, start, end, step)


@slice_backward.shape
def _(grad, size, dim, start, end, step):
    sizes("size", size)
    at = wrap_dim("dim", dim, size)
    check(step != 0, f"`step` must not be 0; got {step}", "ValueError")
    want = list(size)
    want[at] = slice_count(start, end, step, size[at])
    check(
        grad.shape == tuple(want),
        f"`grad` of shape {grad.shape} does not fit; {tuple(want)} is required",
    )
    return result(size, grad.dtype)


@slice_backward.decompose
def _(grad, size, dim, start, end, step):
    made = op.zeros(size, dtype=grad.dtype, device=grad.device)
    op.copy_(slice_(made, dim, start, end, step), grad)
    return made


@slice_backward.vjp("grad")
def _(g, dim, start, end, step):
    return slice_(g, dim, start, end, step)


narrow = View(
    "narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)",
    doc="""
    `length` elements of `self` along `dim`, from `start` on.

    Args:
        start: The index of the first element; None: 0.

    Raises: IndexError if `dim` or `start` is out of range, ShapeError if `length` is negative or reaches past the end.

    >>> import plait_core as pc
    >>> pc.arange(5).narrow(0, 1, 3).tolist()
    [1, 2, 3]
    """,
    variants="function method",
)
narrow.batch("leading")


@narrow.shape
def _(self, dim, start, length):
    check(
        self.ndim > 0,
        f"`self` must have at least 1 dimension; got shape {self.shape}",
        "IndexError",
    )
    at = wrap_dim("dim", dim, self.shape)
    n = self.shape[at]
    check(
        -n <= start <= n,
        f"`start` must be in [{-n}, {n}] for a dimension of size {n}; got {start}. start out of range",
        "IndexError",
    )
    first = start + n if start < 0 else start
    check(
        0 <= length <= n - first,
        f"`length` must be in [0, {n - first}] for `start` {start} in a dimension of size {n}; got {length}",
    )
    shape = list(self.shape)
    shape[at] = length
    return look(self, shape, self.strides, first * self.strides[at] if length > 0 else 0)


@narrow.vjp("self")
def _(g, self, dim, start, length):
    if length == self.shape[dim]:  # it is all of self
        return g
    first = start + self.shape[dim] if start < 0 else start
    return slice_backward(g, self.shape, dim, first, first + length, 1)
