"""Views in another shape or order of dimensions, under PyTorch's and NumPy's names."""

from plait_ops import calls as op
from plait_ops.spec import Composite
from plait_ops.words import check, infer_size, is_complex, max_dims, wrap_dim


def _view(name, arguments, text, example, dtypes="any", variants="function method"):
    operator = Composite(
        f"{name}(Tensor(a) self{arguments}) -> Tensor(a)",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> {example[0]}
    {example[1]}
    """,
        dtypes=dtypes,
        variants=variants,
    )
    return operator


ravel = _view(
    "ravel",
    "",
    "`self` as a vector: a view where its elements lie in order and without gaps, else a copy.",
    ("pc.tensor([[1, 2], [3, 4]]).ravel().tolist()", "[1, 2, 3, 4]"),
)
expand_as = _view(
    "expand_as",
    ", Tensor other",
    "`self` broadcast to the shape of `other`: ``self.expand(other.shape)``.",
    ("pc.tensor([1, 2]).expand_as(pc.zeros(2, 2)).tolist()", "[[1, 2], [1, 2]]"),
    variants="method",
)
view_as = _view(
    "view_as",
    ", Tensor other",
    "A view in the shape of `other`: ``self.view(other.shape)``.",
    ("pc.arange(4).view_as(pc.zeros(2, 2)).tolist()", "[[0, 1], [2, 3]]"),
    variants="method",
)
reshape_as = _view(
    "reshape_as",
    ", Tensor other",
    "The elements in the shape of `other`: ``self.reshape(other.shape)``.",
    ("pc.arange(4).reshape_as(pc.zeros(2, 2)).tolist()", "[[0, 1], [2, 3]]"),
    variants="method",
)
swapdims = _view(
    "swapdims",
    ", int dim0, int dim1",
    "Another name of `transpose`.",
    ("pc.tensor([[1, 2]]).swapdims(0, 1).tolist()", "[[1], [2]]"),
)
moveaxis = _view(
    "moveaxis",
    ", int[] source, int[] destination",
    "`movedim` under NumPy's name.",
    ("pc.zeros(2, 3, 4).moveaxis(0, -1).shape", "plait.Size([3, 4, 2])"),
)
adjoint = _view(
    "adjoint",
    "",
    "`self` with its last two dimensions swapped and, if it is complex, conjugated. Of a real tensor it is a view, of a complex one a copy.",
    ("pc.tensor([[1, 2]]).adjoint().tolist()", "[[1], [2]]"),
)
unflatten = _view(
    "unflatten",
    ", int dim, int[] sizes",
    """
    `dim` split into several dimensions of the given `sizes`, of which one may be -1.

    Raises: IndexError for a `dim` out of range, ShapeError if the product of the sizes is not the size of `dim`.
    """,
    ("pc.arange(4).unflatten(0, (2, -1)).tolist()", "[[0, 1], [2, 3]]"),
)


@ravel.decompose
def _(self):
    return op.reshape(op.contiguous(self), [-1])


@expand_as.decompose
def _(self, other):
    return op.expand(self, other.shape)


@view_as.decompose
def _(self, other):
    return op.view(self, other.shape)


@reshape_as.decompose
def _(self, other):
    return op.reshape(self, other.shape)


@swapdims.decompose
def _(self, dim0, dim1):
    return op.transpose(self, dim0, dim1)


@moveaxis.decompose
def _(self, source, destination):
    return op.movedim(self, source, destination)


@adjoint.decompose
def _(self):
    check(self.ndim >= 2, f"`self` must have at least 2 dimensions; got shape {self.shape}")
    return (
        op.conj(op.transpose(self, -2, -1))
        if is_complex(self.dtype)
        else op.transpose(self, -2, -1)
    )


@unflatten.decompose
def _(self, dim, sizes):
    at = wrap_dim("dim", dim, self.shape)
    check(self.ndim > 0, "`self` must have at least 1 dimension; got shape ()")
    check(len(sizes) > 0, "`sizes` must not be empty; got ()")
    max_dims("sizes", self.ndim + len(sizes))
    new_sizes = infer_size("sizes", sizes, self.shape[at : at + 1])
    return op.view(self, self.shape[:at] + new_sizes + self.shape[at + 1 :])
