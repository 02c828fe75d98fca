"""A copy of a tensor with one of its views replaced: the counterparts of select, slice, diagonal, as_strided."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.specs.views.slicing import sliced_dim
from plait_ops.words import check, result, slice_count, to_dtype, wrap_dim, wrap_index

_RAISES = "`src` is cast to the dtype of `self`. Raises: as `{view}`, ShapeError unless `src` has the shape of that view."


def _scatter(name, arguments, text, example):
    return Operator(
        f"{name}_scatter(Tensor self, Tensor src, {arguments}) -> Tensor",
        doc=f"""
    A copy of `self` with `src` in {text}.

    {_RAISES.format(view=name)}

    >>> import plait_core as pc
    >>> {example[0]}
    {example[1]}
    """,
        dtypes="any",
        kernel="optional: without a kernel other operators compute it.",
        variants="function method",
    )


select_scatter_ = _scatter(
    "select",
    "int dim|axis, int index",
    "``select(self, dim, index)``",
    ("pc.select_scatter(pc.zeros(2, 2), pc.ones(2), 0, 1).tolist()", "[[0.0, 0.0], [1.0, 1.0]]"),
)
select_scatter_.batch("leading")
slice_scatter_ = _scatter(
    "slice",
    "int dim|axis=0, int? start=None, int? end=None, int step=1",
    "``self[..., start:end:step, ...]`` along `dim`",
    ("pc.slice_scatter(pc.zeros(4), pc.ones(2), 0, 1, 3).tolist()", "[0.0, 1.0, 1.0, 0.0]"),
)
slice_scatter_.batch("leading")
diagonal_scatter_ = _scatter(
    "diagonal",
    "int offset=0, int dim1=0, int dim2=1",
    "``diagonal(self, offset, dim1, dim2)``",
    ("pc.diagonal_scatter(pc.zeros(2, 2), pc.ones(2)).tolist()", "[[1.0, 0.0], [0.0, 1.0]]"),
)
diagonal_scatter_.batch("leading")


@select_scatter_.shape
def _(self, src, dim, index):
    check(
        self.ndim > 0,
        f"`self` must have at least 1 dimension; got shape {self.shape}",
        "IndexError",
    )
    at = wrap_dim("dim", dim, self.shape)
    wrap_index("index", index, self.shape[at])
    want = self.shape[:at] + self.shape[at + 1 :]
    check(src.shape == want, f"`src` must have shape {tuple(want)}; got {src.shape}")
    return result(self.shape, self.dtype)


@slice_scatter_.shape
def _(self, src, dim, start, end, step):
    at = sliced_dim(self, dim, step)
    want = list(self.shape)
    want[at] = slice_count(start, end, step, self.shape[at])
    check(src.shape == want, f"`src` must have shape {tuple(want)}; got {src.shape}")
    return result(self.shape, self.dtype)


@diagonal_scatter_.shape
def _(self, src, offset, dim1, dim2):
    check(self.ndim >= 2, f"`self` must have at least 2 dimensions; got shape {self.shape}")
    a = wrap_dim("dim1", dim1, self.shape)
    b = wrap_dim("dim2", dim2, self.shape)
    check(a != b, f"`dim1` and `dim2` must differ; got {dim1} and {dim2}", "ValueError")
    n = max(min(self.shape[a] - max(-offset, 0), self.shape[b] - max(offset, 0)), 0)
    rest = [self.shape[i] for i in range(self.ndim) if i != a and i != b]
    check(src.shape == rest + [n], f"`src` must have shape {tuple(rest + [n])}; got {src.shape}")
    return result(self.shape, self.dtype)


@select_scatter_.decompose
def _(self, src, dim, index):
    made = op.clone(op.contiguous(self))
    op.copy_(op.select(made, dim, index), src)
    return made


@slice_scatter_.decompose
def _(self, src, dim, start, end, step):
    made = op.clone(op.contiguous(self))
    op.copy_(op.slice(made, dim, start, end, step), src)
    return made


@diagonal_scatter_.decompose
def _(self, src, offset, dim1, dim2):
    made = op.clone(op.contiguous(self))
    op.copy_(op.diagonal(made, offset, dim1, dim2), src)
    return made


@select_scatter_.vjp("self")
def _(g, dim, index):
    made = op.clone(op.contiguous(g))
    op.fill_(op.select(made, dim, index), 0)
    return made


@slice_scatter_.vjp("self")
def _(g, dim, start, end, step):
    made = op.clone(op.contiguous(g))
    op.fill_(op.slice(made, dim, start, end, step), 0)
    return made


@diagonal_scatter_.vjp("self")
def _(g, offset, dim1, dim2):
    made = op.clone(op.contiguous(g))
    op.fill_(op.diagonal(made, offset, dim1, dim2), 0)
    return made


@select_scatter_.vjp("src")
def _(g, src, dim, index):
    return to_dtype(op.select(g, dim, index), src.dtype)


@slice_scatter_.vjp("src")
def _(g, src, dim, start, end, step):
    return to_dtype(op.slice(g, dim, start, end, step), src.dtype)


@diagonal_scatter_.vjp("src")
def _(g, src, offset, dim1, dim2):
    return to_dtype(op.diagonal(g, offset, dim1, dim2), src.dtype)


as_strided_scatter = Composite(
    "as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
    doc="""
    A copy of `self` in C order with `src` in ``as_strided(copy, size, stride, storage_offset)``.

    Args:
        size: The shape of the view.
        stride: The distance of two elements in memory along each dimension, in elements.

    `src` is cast to the dtype of `self`. Raises: as `as_strided`, ShapeError unless `src` has shape `size`.

    >>> import plait_core as pc
    >>> pc.as_strided_scatter(pc.zeros(4), pc.ones(2), [2], [2]).tolist()
    [1.0, 0.0, 1.0, 0.0]
    """,
    dtypes="any",
    variants="function method",
)


@as_strided_scatter.decompose
def _(self, src, size, stride, storage_offset):
    check(src.shape == size, f"`src` must have shape {tuple(size)}; got {src.shape}")
    made = op.clone(op.contiguous(self))
    offset = 0
    if storage_offset is not None:
        offset = int(storage_offset)
    op.copy_(op.as_strided(made, size, stride, offset), src)
    return made


fill_diagonal = Composite(
    "fill_diagonal_(Tensor(a)! self, Scalar fill_value, bool wrap=False) -> Tensor(a)!",
    doc="""
    Write `fill_value` to the main diagonal: ``self[i, i, ...] = fill_value``; with `wrap` the diagonal of a matrix with
    more rows than columns begins again one row after its end. Returns `self`.

    Args:
        fill_value: The value of the diagonal.

    Raises: ShapeError for fewer than 2 dimensions, or more than 2 of different sizes.

    >>> import plait_core as pc
    >>> pc.zeros(2, 3).fill_diagonal_(1).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """,
    dtypes="any",
    variants="method",
)


@fill_diagonal.decompose
def _(self, fill_value, wrap):
    check(self.ndim >= 2, f"`self` must have at least 2 dimensions; got shape {self.shape}")
    n = self.shape[0]
    step = 0
    for d in range(self.ndim):
        check(
            self.ndim == 2 or self.shape[d] == self.shape[0],
            f"`self` of more than 2 dimensions must have equal sizes; got shape {self.shape}",
        )
        n = min(n, self.shape[d])
        step += self.strides[d]
    if n > 0:
        op.fill_(op.as_strided(self, [n], [step]), fill_value)
    if wrap and self.ndim == 2 and n > 0 and self.shape[0] > self.shape[1] + 1:
        top = self.shape[1] + 1
        while top < self.shape[0]:
            n = min(self.shape[1], self.shape[0] - top)
            below = op.narrow(self, 0, top, self.shape[0] - top)
            op.fill_(op.diagonal(below), fill_value)
            top += self.shape[1] + 1
    return self
