"""Diagonals: views of them, and tensors made from them."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator, View
from plait_ops.words import check, max_dims, result, sizes, view as look, wrap_dim

diag_embed_ = Operator(
    "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    doc="""
    Matrices, in dimensions `dim1` and `dim2` of the result, with the vectors of the last dimension of `self` on a diagonal
    and 0 elsewhere. `offset` 0 is the main diagonal, a positive one lies above it.

    Raises: ShapeError for a 0-d tensor, IndexError for a dim out of range, ValueError if both are the same.

    >>> import plait_core as pc
    >>> pc.diag_embed(pc.tensor([1, 2]), 1).tolist()
    [[0, 1, 0], [0, 0, 2], [0, 0, 0]]
    """,
    dtypes="any",
    kernel="optional: without a kernel other operators compute it.",
    variants="function method",
)
diag_embed_.batch("new dimension")
FURTHEST = 2**31


@diag_embed_.shape
def _(self, offset, dim1, dim2):
    check(self.ndim >= 1, f"`self` must have at least 1 dimension; got shape {self.shape}")
    check(
        -FURTHEST <= offset <= FURTHEST,
        f"`offset` must be in [{-FURTHEST}, {FURTHEST}]; got {offset}",
        "ValueError",
    )
    max_dims("self", self.ndim + 1)
    shape = list(self.shape) + [1]
    a = wrap_dim("dim1", dim1, shape)
    b = wrap_dim("dim2", dim2, shape)
    check(a != b, f"`dim1` and `dim2` must differ; got {dim1} and {dim2}", "ValueError")
    n = self.shape[-1] + abs(offset)
    made = []
    at = 0
    for i in range(self.ndim + 1):
        if i in (a, b):
            made.append(n)
        else:
            made.append(self.shape[at])
            at += 1
    sizes("self", made)
    return result(made, self.dtype)


@diag_embed_.decompose
def _(self, offset, dim1, dim2):
    shape = list(self.shape) + [1]
    a = wrap_dim("dim1", dim1, shape)
    b = wrap_dim("dim2", dim2, shape)
    n = self.shape[-1] + abs(offset)
    size = []
    at = 0
    for i in range(self.ndim + 1):
        if i in (a, b):
            size.append(n)
        else:
            size.append(self.shape[at])
            at += 1
    made = op.zeros(size, dtype=self.dtype, device=self.device)
    op.copy_(diagonal(made, offset, a, b), self)
    return made


diag = Composite(
    "diag(Tensor self, int diagonal|k=0) -> Tensor",
    doc="""
    Of a matrix, a copy of its `diagonal`; of a vector, the matrix that has the vector on that diagonal and 0 elsewhere.

    Raises: ShapeError unless `self` has 1 or 2 dimensions.

    >>> import plait_core as pc
    >>> pc.diag(pc.tensor([1, 2])).tolist(), pc.diag(pc.tensor([[1, 2], [3, 4]]), 1).tolist()
    ([[1, 0], [0, 2]], [2])
    """,
    dtypes="any",
    variants="function method",
)
diagflat = Composite(
    "diagflat(Tensor self, int offset=0) -> Tensor",
    doc="""
    The matrix with the elements of `self`, of any shape, on the diagonal `offset` and 0 elsewhere.

    >>> import plait_core as pc
    >>> pc.diagflat(pc.tensor([[1], [2]])).tolist()
    [[1, 0], [0, 2]]
    """,
    dtypes="any",
    variants="function method",
)


@diag.decompose
def _(self, diagonal):
    check(
        self.ndim == 1 or self.ndim == 2,
        f"`self` must have 1 or 2 dimensions; got shape {self.shape}",
    )
    if self.ndim == 1:
        return op.diag_embed(self, diagonal)
    return op.clone(op.diagonal(self, diagonal))


@diagflat.decompose
def _(self, offset):
    return op.diag_embed(op.reshape(self, [-1]), offset)


diagonal = View(
    "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
    doc="""
    The diagonal of the matrices in dimensions `dim1` and `dim2`, as a new last dimension. `offset` 0 is the main diagonal,
    a positive one lies above it.

    Raises: IndexError for a dim out of range, ValueError if both are the same.

    >>> import plait_core as pc
    >>> pc.tensor([[1, 2], [3, 4]]).diagonal().tolist()
    [1, 4]
    """,
    variants="function method",
)
diagonal.batch("leading")
diagonal_backward = Operator(
    "diagonal_backward(Tensor grad, int[] size, int offset, int dim1, int dim2) -> Tensor",
    doc="Zeros of shape `size` with `grad` on a diagonal: the derivative of `diagonal`.",
    kernel="optional: without a kernel other operators compute it; in[2] to in[4] are the arguments of `diagonal`; dimensions may be negative; every element of the result is written, zeros included.",
    dtypes="floating",
    internal=True,
)
diagonal_backward.batch("leading")


@diagonal.shape
def _(self, offset, dim1, dim2):
    check(self.ndim >= 2, f"`self` must have at least 2 dimensions; got shape {self.shape}")
    a = wrap_dim("dim1", dim1, self.shape)
    b = wrap_dim("dim2", dim2, self.shape)
    check(a != b, f"`dim1` and `dim2` must differ; got {dim1} and {dim2}", "ValueError")
    rows = self.shape[a] - max(-offset, 0)
    columns = self.shape[b] - max(offset, 0)
    n = max(min(rows, columns), 0)
    shape = [self.shape[i] for i in range(self.ndim) if i != a and i != b]
    strides = [self.strides[i] for i in range(self.ndim) if i != a and i != b]
    start = max(-offset, 0) * self.strides[a] + max(offset, 0) * self.strides[b] if n > 0 else 0
    return look(self, shape + [n], strides + [self.strides[a] + self.strides[b]], start)


@diagonal.vjp("self")
def _(g, self, offset, dim1, dim2):
    return diagonal_backward(g, self.shape, offset, dim1, dim2)


@diagonal_backward.shape
def _(grad, size):
    sizes("size", size)
    return result(size, grad.dtype)


@diagonal_backward.decompose
def _(grad, size, offset, dim1, dim2):
    made = op.zeros(size, dtype=grad.dtype, device=grad.device)
    op.copy_(diagonal(made, offset, dim1, dim2), grad)
    return made


@diag_embed_.vjp("self")
@diagonal_backward.vjp("grad")
def _(g, offset, dim1, dim2):
    return diagonal(g, offset, dim1, dim2)


linalg_diagonal = Composite(
    "linalg_diagonal(Tensor(a) A|self, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
    doc="""
    `diagonal` of the matrices in the last two dimensions.

    >>> import plait_core as pc
    >>> pc.linalg.diagonal(pc.tensor([[[1, 2], [3, 4]]])).tolist()
    [[1, 4]]
    """,
    dtypes="any",
)


@linalg_diagonal.decompose
def _(A, offset, dim1, dim2):
    return diagonal(A, offset, dim1, dim2)
