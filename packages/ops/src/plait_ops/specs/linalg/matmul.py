"""Matrix products."""

import numpy as np

from plait_ops.calls import expand, matmul, reshape, squeeze_dim, t, transpose, unsqueeze
from plait_ops.spec import Composite, Operator
from plait_ops.words import broadcast, check, conjugate, numel, require, require_same, result

_KERNEL = "both operands have one dtype, any strides."


def _bad_dtypes(operator, *shapes):
    def call(first, second):
        return lambda s: s(
            s.array(*shapes[0], dtype=first),
            *[s.array(*shape, dtype=second) for shape in shapes[1:]],
        )

    base = operator.schema.base
    operator.error("DTypeError", call("float32", "float64"), contains=[base, "float32", "float64"])
    operator.error("DTypeError", call("bool", "bool"), contains=[base, "bool"])


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
    out=True,
    dtypes="arithmetic",
    kernel=_KERNEL,
)


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


@mm.vjp("self")
def _(g, mat2):
    return mm(g, conjugate(t(mat2)))


@mm.vjp("mat2")
def _(g, self):
    return mm(conjugate(t(self)), g)


@mm.jvp
def _(self, mat2, d_self, d_mat2):
    if d_self is None:
        return mm(self, d_mat2)
    if d_mat2 is None:
        return mm(d_self, mat2)
    return mm(d_self, mat2) + mm(self, d_mat2)


mm.reference(lambda self, mat2: np.matmul(self, mat2))


@mm.samples
def _(s):
    yield s(s.array(3, 4), s.array(4, 5))
    yield s(s.array(3, 4, dtype="float64"), s.array(5, 4, dtype="float64").T)
    yield s(s.strided(3, 4), s.strided(4, 2))
    yield s(s.backwards(3, 4), s.array(4, 2))
    yield s(s.array(3, 4, dtype="int64"), s.array(4, 5, dtype="int64"))
    yield s(s.array(3, 4, dtype="uint8"), s.array(4, 5, dtype="uint8"))
    yield s(s.array(3, 0), s.array(0, 5))
    yield s(s.array(0, 4), s.array(4, 5))
    yield s(s.array(70, 130), s.array(130, 65)).loosely(4)
    yield s(s.expanded(3, 4), s.array(4, 2))
    for dtype in ("complex64", "complex128"):
        yield s(s.array(3, 4, dtype=dtype), s.array(4, 5, dtype=dtype))
        yield s(s.strided(3, 4, dtype=dtype), s.backwards(4, 2, dtype=dtype))
    wide = s(s.array(70, 130, dtype="complex64"), s.array(130, 65, dtype="complex64"))
    yield wide.loosely(8).without_gradient()


mm.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(2, 3)),
    contains=["mm", "self", "mat2", "(2, 3)"],
)
mm.error(
    "ShapeError", lambda s: s(s.array(2, 3), s.array(3)), contains=["mm", "mat2", "(2, 3)", "(3,)"]
)
_bad_dtypes(mm, (2, 3), (3, 2))


bmm = Operator(
    "bmm(Tensor self, Tensor mat2|other) -> Tensor",
    doc="""
    Matrix products of a batch: ``out[b] = self[b] @ mat2[b]``.

    Shapes: `self` is (b, n, k), `mat2` is (b, k, m), the result (b, n, m). Dtypes: integers, floating-point and complex dtypes, the same for both.
    Raises: ShapeError for other shapes, DTypeError if the dtypes differ.

    >>> import plait_core as pc
    >>> pc.bmm(pc.ones(2, 1, 3), pc.ones(2, 3, 1)).tolist()
    [[[3.0]], [[3.0]]]
    """,
    out=True,
    dtypes="arithmetic",
    kernel=_KERNEL,
)


@bmm.shape
def _(self, mat2):
    check(
        self.ndim == 3 and mat2.ndim == 3,
        f"`self` and `mat2` must have 3 dimensions; got shapes {self.shape} and {mat2.shape}",
    )
    check(
        self.shape[0] == mat2.shape[0],
        f"`self` of shape {self.shape} and `mat2` of shape {mat2.shape} must have one batch size",
    )
    check(
        self.shape[2] == mat2.shape[1],
        f"`self` of shape {self.shape} must have as many columns as `mat2` of shape {mat2.shape} has rows",
    )
    require("self", self.dtype, "arithmetic")
    require_same("self", self, "mat2", mat2)
    return result([self.shape[0], self.shape[1], mat2.shape[2]], self.dtype)


@bmm.vjp("self")
def _(g, mat2):
    return bmm(g, conjugate(transpose(mat2, 1, 2)))


@bmm.vjp("mat2")
def _(g, self):
    return bmm(conjugate(transpose(self, 1, 2)), g)


@bmm.jvp
def _(self, mat2, d_self, d_mat2):
    if d_self is None:
        return bmm(self, d_mat2)
    if d_mat2 is None:
        return bmm(d_self, mat2)
    return bmm(d_self, mat2) + bmm(self, d_mat2)


bmm.reference(lambda self, mat2: np.matmul(self, mat2))


@bmm.samples
def _(s):
    yield s(s.array(2, 3, 4), s.array(2, 4, 5))
    yield s(s.strided(2, 3, 4), s.array(2, 5, 4).transpose(0, 2, 1))
    yield s(s.array(2, 3, 4, dtype="int64"), s.array(2, 4, 5, dtype="int64"))
    yield s(s.array(0, 3, 4), s.array(0, 4, 5))
    yield s(s.array(2, 3, 0), s.array(2, 0, 5))
    yield s(s.expanded(3, 2, 4), s.array(3, 4, 2))
    z = s.strided(5, 3, 4, dtype="complex64")
    yield s(z, s.array(5, 4, 2, dtype="complex64"))


bmm.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(3, 2)),
    contains=["bmm", "(2, 3)", "(3, 2)", "3 dimensions"],
)
bmm.error(
    "ShapeError",
    lambda s: s(s.array(2, 3, 4), s.array(3, 4, 5)),
    contains=["bmm", "batch", "(2, 3, 4)", "(3, 4, 5)"],
)
bmm.error(
    "ShapeError",
    lambda s: s(s.array(2, 3, 4), s.array(2, 3, 5)),
    contains=["bmm", "(2, 3, 4)", "(2, 3, 5)"],
)
_bad_dtypes(bmm, (1, 2, 3), (1, 3, 2))


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
    out=True,
    dtypes="arithmetic",
    kernel=_KERNEL,
)


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
    return reshape(mm(self, unsqueeze(vec, 1)), [self.shape[0]])


@mv.vjp("self")
def _(g, vec):
    return unsqueeze(g, 1) * conjugate(unsqueeze(vec, 0))


@mv.vjp("vec")
def _(g, self):
    return mv(conjugate(t(self)), g)


mv.reference(lambda self, vec: np.matmul(self, vec))
mv.samples(
    lambda s: iter(
        [
            s(s.array(3, 4), s.array(4)),
            s(s.strided(3, 4), s.backwards(4)),
            s(s.array(3, 0), s.array(0)),
            s(s.array(2, 3, dtype="int64"), s.array(3, dtype="int64")),
            s(s.array(2, 3, dtype="complex64"), s.array(3, dtype="complex64")),
        ]
    )
)
mv.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(2)),
    contains=["mv", "self", "vec", "(2, 3)", "(2,)"],
)
mv.error("ShapeError", lambda s: s(s.array(3), s.array(3)), contains=["mv", "self", "vec", "(3,)"])
_bad_dtypes(mv, (2, 3), (3,))


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
    out=True,
    dtypes="arithmetic",
    kernel=_KERNEL,
)


@dot.shape
def _(self, tensor):
    check(
        self.ndim == 1 and tensor.ndim == 1,
        f"`self` and `tensor` must have 1 dimension; got shapes {self.shape} and {tensor.shape}",
    )
    check(
        self.shape[0] == tensor.shape[0],
        f"`self` of shape {self.shape} and `tensor` of shape {tensor.shape} must have one length",
    )
    require("self", self.dtype, "arithmetic")
    require_same("self", self, "tensor", tensor)
    return result((), self.dtype)


@dot.decompose
def _(self, tensor):
    return reshape(mm(unsqueeze(self, 0), unsqueeze(tensor, 1)), ())


@dot.vjp("self")
def _(g, tensor):
    return g * conjugate(tensor)


@dot.vjp("tensor")
def _(g, self):
    return g * conjugate(self)


dot.reference(lambda self, tensor: np.asarray(np.dot(self, tensor)))
dot.samples(
    lambda s: iter(
        [
            s(s.array(4), s.array(4)),
            s(s.strided(5), s.backwards(5)),
            s(s.array(0), s.array(0)),
            s(s.array(3, dtype="int64"), s.array(3, dtype="int64")),
            s(s.array(3, dtype="complex64"), s.array(3, dtype="complex64")),
        ]
    )
)
dot.error(
    "ShapeError",
    lambda s: s(s.array(3), s.array(2)),
    contains=["dot", "self", "tensor", "(3,)", "(2,)"],
)
dot.error("ShapeError", lambda s: s(s.array(2, 3), s.array(3)), contains=["dot", "(2, 3)", "(3,)"])
_bad_dtypes(dot, (3,), (3,))


outer = Composite(
    "outer(Tensor self, Tensor vec2|other) -> Tensor",
    doc="""
    The outer product of two vectors: ``out[i, j] = self[i] * vec2[j]``.

    Raises: ShapeError unless both have 1 dimension.

    >>> import plait_core as pc
    >>> pc.outer(pc.tensor([1, 2]), pc.tensor([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """,
    out=True,
)


@outer.decompose
def _(self, vec2):
    check(
        self.ndim == 1 and vec2.ndim == 1,
        f"`self` and `vec2` must have 1 dimension; got shapes {self.shape} and {vec2.shape}",
    )
    return unsqueeze(self, 1) * vec2


outer.reference(lambda self, vec2: np.outer(self, vec2))
outer.samples(lambda s: iter([s(s.array(3), s.array(4)), s(s.array(0), s.array(2))]))
outer.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(3)),
    contains=["outer", "self", "vec2", "(2, 3)", "(3,)"],
)


matmul_ = Composite(
    "matmul(Tensor self, Tensor other) -> Tensor",
    doc="""
    The matrix product, Python's ``@``: of two vectors their scalar product; a vector counts as a row on the left and as a
    column on the right; further dimensions are a batch and broadcast.

    Shapes: (..., n, k) times (..., k, m) gives (..., n, m). Dtypes: integers, floating-point and complex dtypes, the same for both.
    Raises: ShapeError for 0-d tensors and where inner sizes differ or batches do not broadcast, DTypeError if dtypes differ.

    >>> import plait_core as pc
    >>> tuple(pc.matmul(pc.ones(5, 2, 3), pc.ones(3)).shape)
    (5, 2)
    """,
    out=True,
    dtypes="arithmetic",
)


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
        return mv(t(other), self)
    if self.ndim == 1:
        return squeeze_dim(matmul(unsqueeze(self, 0), other), [-2])
    if other.ndim == 1:
        return squeeze_dim(matmul(self, unsqueeze(other, 1)), [-1])
    if other.ndim == 2:
        # a batch of matrices times one matrix is one tall matrix times it
        rows = reshape(self, [numel(self.shape[:-1]), self.shape[-1]])
        return reshape(mm(rows, other), self.shape[:-1] + other.shape[1:])
    batch = broadcast("self", self.shape[:-2], "other", other.shape[:-2])
    count = numel(batch)
    left = reshape(expand(self, batch + self.shape[-2:]), [count] + self.shape[-2:])
    right = reshape(expand(other, batch + other.shape[-2:]), [count] + other.shape[-2:])
    return reshape(bmm(left, right), batch + [self.shape[-2], other.shape[-1]])


matmul_.reference(lambda self, other: np.matmul(self, other))


@matmul_.samples
def _(s):
    yield s(s.array(3, 4), s.array(4, 5))
    yield s(s.array(4), s.array(4))
    yield s(s.array(3, 4), s.array(4))
    yield s(s.array(4), s.array(4, 3))
    yield s(s.array(2, 3, 4), s.array(4, 5))
    yield s(s.array(2, 3, 4), s.array(4))
    yield s(s.array(4), s.array(2, 4, 3))
    yield s(s.array(2, 1, 3, 4), s.array(5, 4, 2))
    yield s(s.strided(2, 3, 4), s.strided(2, 4, 3))
    yield s(s.array(3, 4, dtype="int64"), s.array(2, 4, 5, dtype="int64"))
    yield s(s.array(2, 0, 4), s.array(2, 4, 5))


matmul_.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(2, 3)),
    contains=["matmul", "self", "other", "(2, 3)"],
)
matmul_.error(
    "ShapeError", lambda s: s(s.array(), s.array(2)), contains=["matmul", "self", "other", "()"]
)
matmul_.error(
    "ShapeError",
    lambda s: s(s.array(2, 2, 3), s.array(3, 3, 2)),
    contains=["matmul", "broadcast", "(2,)", "(3,)"],
)
matmul_.error(
    "DTypeError",
    lambda s: s(s.array(2, 3), s.array(3, 2, dtype="float64")),
    contains=["self", "float32", "float64"],
)

linalg_matmul = Composite(
    "linalg_matmul(Tensor self|x1, Tensor other|x2) -> Tensor",
    doc="""
    The products of matrices: `matmul`.

    >>> import plait_core as pc
    >>> pc.linalg.matmul(pc.ones(1, 2), pc.ones(2, 1)).item()
    2.0
    """,
    method=False,
    out=True,
    dtypes="arithmetic",
)


@linalg_matmul.decompose
def _(self, other):
    return matmul(self, other)


linalg_matmul.reference(lambda self, other: np.matmul(self, other))
linalg_matmul.samples(lambda s: iter([s(s.array(2, 3), s.array(3, 2))]))
linalg_matmul.error("ShapeError", lambda s: s(s.array(2, 3), s.array(2)), contains=["(2, 3)"])
