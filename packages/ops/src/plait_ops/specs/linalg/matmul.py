"""Matrix products."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.words import broadcast, check, conjugate, numel, require, require_same, result

_KERNEL = "both operands have one dtype, any strides."


mm = Operator(
    "mm(Tensor self, Tensor mat2|other) -> Tensor",
    doc="""
    The matrix product: ``out[i, j] = sum_k self[i, k] * mat2[k, j]``.

    Shapes: `self` is (n, k), `mat2` is (k, m), the result (n, m). Dtypes: integers, floating-point and complex dtypes, the same for both.
    Raises: ShapeError for other shapes, DTypeError if the dtypes differ.

    >>> import plait_core as pc
    >>> pc.mm(pc.tensor([[1, 2]]), pc.tensor([[3], [4]])).tolist()
    [[11]]
    """,
    dtypes="arithmetic",
    kernel=_KERNEL,
    variants="function method",
)
mm.batch("mm")


@mm.shape
def _(self, mat2):
    check(
        self.ndim == 2 and mat2.ndim == 2,
        f"`self` and `mat2` must have 2 dimensions; got shapes {self.shape} and {mat2.shape}",
    )
    check(
        self.shape[1] == mat2.shape[0],
        f"`self` of shape {self.shape} must have as many columns as `mat2` of shape {mat2.shape} has rows",
    )
    require("self", self.dtype, "arithmetic")
    require_same("self", self, "mat2", mat2)
    return result([self.shape[0], mat2.shape[1]], self.dtype)


@mm.cost
def _(self, mat2):
    return 2 * numel(self) * mat2.shape[1]


@mm.vjp("self")
def _(g, mat2):
    return mm(g, conjugate(op.t(mat2)))


@mm.vjp("mat2")
def _(g, self):
    return mm(conjugate(op.t(self)), g)


@mm.jvp
def _(self, mat2, d_self, d_mat2):
    if d_self is None:
        return mm(self, d_mat2)
    if d_mat2 is None:
        return mm(d_self, mat2)
    return mm(d_self, mat2) + mm(self, d_mat2)


bmm = Operator(
    "bmm(Tensor self, Tensor mat2|other) -> Tensor",
    doc="""
    Matrix products of a batch: ``out[b] = self[b] @ mat2[b]``.

    Args:
        mat2: The second matrices: shape (b, m, p).

    Shapes: `self` is (b, n, k), `mat2` is (b, k, m), the result (b, n, m). Dtypes: integers, floating-point and complex dtypes, the same for both.
    Raises: ShapeError for other shapes, DTypeError if the dtypes differ.

    >>> import plait_core as pc
    >>> pc.bmm(pc.ones(2, 1, 3), pc.ones(2, 3, 1)).tolist()
    [[[3.0]], [[3.0]]]
    """,
    dtypes="arithmetic",
    kernel=_KERNEL,
    variants="function method",
)
bmm.batch("bmm")
bmm.slices(self=0, mat2=0, result=0)


@bmm.shape
def _(self, mat2):
    check(
        self.ndim == 3 and mat2.ndim == 3,
        f"`self` and `mat2` must have 3 dimensions; got shapes {self.shape} and {mat2.shape}",
    )
    check(
        self.shape[0] == mat2.shape[0],
        f"`self` of shape {self.shape} and `mat2` of shape {mat2.shape} must have the same batch size",
    )
    check(
        self.shape[2] == mat2.shape[1],
        f"`self` of shape {self.shape} must have as many columns as `mat2` of shape {mat2.shape} has rows",
    )
    require("self", self.dtype, "arithmetic")
    require_same("self", self, "mat2", mat2)
    return result([self.shape[0], self.shape[1], mat2.shape[2]], self.dtype)


@bmm.cost
def _(self, mat2):
    return 2 * numel(self) * mat2.shape[2]


@bmm.vjp("self")
def _(g, mat2):
    return bmm(g, conjugate(op.transpose(mat2, 1, 2)))


@bmm.vjp("mat2")
def _(g, self):
    return bmm(conjugate(op.transpose(self, 1, 2)), g)


@bmm.jvp
def _(self, mat2, d_self, d_mat2):
    if d_self is None:
        return bmm(self, d_mat2)
    if d_mat2 is None:
        return bmm(d_self, mat2)
    return bmm(d_self, mat2) + bmm(self, d_mat2)


mv = Operator(
    "mv(Tensor self, Tensor vec|other) -> Tensor",
    doc="""
    A matrix times a vector: ``out[i] = sum_k self[i, k] * vec[k]``.

    Shapes: `self` is (n, k), `vec` is (k,), the result (n,). Dtypes: integers, floating-point and complex dtypes, the same for both.
    Raises: ShapeError for other shapes, DTypeError if the dtypes differ.

    >>> import plait_core as pc
    >>> pc.mv(pc.tensor([[1, 2]]), pc.tensor([3, 4])).tolist()
    [11]
    """,
    dtypes="arithmetic",
    kernel=_KERNEL,
    variants="function method",
)
mv.batch("mv")


@mv.shape
def _(self, vec):
    check(
        self.ndim == 2 and vec.ndim == 1,
        f"`self` must have 2 dimensions and `vec` 1; got shapes {self.shape} and {vec.shape}",
    )
    check(
        self.shape[1] == vec.shape[0],
        f"`self` of shape {self.shape} must have as many columns as `vec` of shape {vec.shape} has elements",
    )
    require("self", self.dtype, "arithmetic")
    require_same("self", self, "vec", vec)
    return result([self.shape[0]], self.dtype)


@mv.decompose
def _(self, vec):
    return op.reshape(mm(self, op.unsqueeze(vec, 1)), [self.shape[0]])


@mv.vjp("self")
def _(g, vec):
    return op.unsqueeze(g, 1) * conjugate(op.unsqueeze(vec, 0))


@mv.vjp("vec")
def _(g, self):
    return mv(conjugate(op.t(self)), g)


dot = Operator(
    "dot(Tensor self, Tensor tensor|other) -> Tensor",
    doc="""
    The scalar product of two vectors: ``sum_k self[k] * tensor[k]``.

    Shapes: both are (k,), the result is 0-d. Dtypes: integers, floating-point and complex dtypes, the same for both.
    Raises: ShapeError for other shapes, DTypeError if the dtypes differ.

    >>> import plait_core as pc
    >>> pc.dot(pc.tensor([1, 2]), pc.tensor([3, 4])).item()
    11
    """,
    dtypes="arithmetic",
    kernel=_KERNEL,
    variants="function method",
)
dot.batch("dot")


@dot.shape
def _(self, tensor):
    check(
        self.ndim == 1 and tensor.ndim == 1,
        f"`self` and `tensor` must have 1 dimension; got shapes {self.shape} and {tensor.shape}",
    )
    check(
        self.shape[0] == tensor.shape[0],
        f"`self` of shape {self.shape} and `tensor` of shape {tensor.shape} must have the same length",
    )
    require("self", self.dtype, "arithmetic")
    require_same("self", self, "tensor", tensor)
    return result((), self.dtype)


@mv.cost
@dot.cost
def _(self):
    return 2 * numel(self)


@dot.decompose
def _(self, tensor):
    return op.reshape(mm(op.unsqueeze(self, 0), op.unsqueeze(tensor, 1)), ())


@dot.vjp("self")
def _(g, tensor):
    return g * conjugate(tensor)


@dot.vjp("tensor")
def _(g, self):
    return g * conjugate(self)


outer = Composite(
    "outer(Tensor self, Tensor vec2|other) -> Tensor",
    doc="""
    The outer product of two vectors: ``out[i, j] = self[i] * vec2[j]``.

    Args:
        vec2: The second vector: shape (m).

    Raises: ShapeError unless both have 1 dimension.

    >>> import plait_core as pc
    >>> pc.outer(pc.tensor([1, 2]), pc.tensor([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """,
    variants="function method",
)


@outer.decompose
def _(self, vec2):
    check(
        self.ndim == 1 and vec2.ndim == 1,
        f"`self` and `vec2` must have 1 dimension; got shapes {self.shape} and {vec2.shape}",
    )
    return op.unsqueeze(self, 1) * vec2


matmul_ = Composite(
    "matmul(Tensor self, Tensor other) -> Tensor",
    doc="""
    The matrix product, Python's ``@``. Of two vectors it is their scalar product. A vector counts as a row if it is on the
    left, and as a column if it is on the right. All dimensions but the last two are a batch; they broadcast.

    Shapes: (..., n, k) times (..., k, m) gives (..., n, m). Dtypes: integers, floating-point and complex dtypes, the same for both.
    Raises: ShapeError for 0-d tensors and where inner sizes differ or batches do not broadcast, DTypeError if dtypes differ.

    >>> import plait_core as pc
    >>> tuple(pc.matmul(pc.ones(5, 2, 3), pc.ones(3)).shape)
    (5, 2)
    """,
    dtypes="arithmetic",
    variants="function method",
)


@matmul_.cost
def _(self, result):
    return 2 * numel(result) * self.shape[-1]


@matmul_.decompose
def _(self, other):
    check(
        self.ndim > 0 and other.ndim > 0,
        f"`self` and `other` must have at least 1 dimension; got shapes {self.shape} and {other.shape}",
    )
    check(
        self.shape[-1] == (other.shape[-2] if other.ndim > 1 else other.shape[0]),
        f"the last dimension of `self` {self.shape} must equal the {'second to ' if other.ndim > 1 else ''}last of `other` {other.shape}",
    )
    if self.ndim == 2 and other.ndim == 2:
        return mm(self, other)
    if self.ndim == 1 and other.ndim == 1:
        return dot(self, other)
    if self.ndim == 2 and other.ndim == 1:
        return mv(self, other)
    if self.ndim == 1 and other.ndim == 2:
        return mv(op.t(other), self)
    if self.ndim == 1:
        return op.squeeze_dim(op.matmul(op.unsqueeze(self, 0), other), [-2])
    if other.ndim == 1:
        return op.squeeze_dim(op.matmul(self, op.unsqueeze(other, 1)), [-1])
    if other.ndim == 2:
        # a batch of matrices times one matrix is one tall matrix times it
        rows = op.reshape(self, [numel(self.shape[:-1]), self.shape[-1]])
        return op.reshape(mm(rows, other), self.shape[:-1] + other.shape[1:])
    batch = broadcast("self", self.shape[:-2], "other", other.shape[:-2])
    count = numel(batch)
    left = op.reshape(op.expand(self, batch + self.shape[-2:]), [count] + self.shape[-2:])
    right = op.reshape(op.expand(other, batch + other.shape[-2:]), [count] + other.shape[-2:])
    return op.reshape(bmm(left, right), batch + [self.shape[-2], other.shape[-1]])


linalg_matmul = Composite(
    "linalg_matmul(Tensor self, Tensor other) -> Tensor",
    doc="""
    The products of matrices: `matmul`.

    >>> import plait_core as pc
    >>> pc.linalg.matmul(pc.ones(1, 2), pc.ones(2, 1)).item()
    2.0
    """,
    dtypes="arithmetic",
)


@linalg_matmul.decompose
def _(self, other):
    return op.matmul(self, other)
