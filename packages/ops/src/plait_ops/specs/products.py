"""Products of vectors, matrices and tensors beside `matmul`."""

import numpy as np

from plait_ops.calls import (
    bmm,
    conj,
    diagonal,
    dot,
    expand,
    mm,
    movedim,
    mul,
    mv,
    outer,
    reshape,
    sum,
    tensordot_over,
    transpose,
)
from plait_ops.spec import Composite
from plait_ops.words import check, is_complex, numel, require_same, to_dtype, wrap_dim

inner = Composite(
    "inner(Tensor self, Tensor other) -> Tensor",
    doc="""
    The scalar products of the rows of both: ``out[..., ...] = sum_k self[..., k] * other[..., k]``; a 0-d tensor scales.

    Shapes: ``self.shape[:-1] + other.shape[:-1]``. Dtypes: numbers, the same for both.
    Raises: ShapeError if the last sizes differ, DTypeError if the dtypes do.

    >>> import plait_core as pc
    >>> pc.inner(pc.tensor([1, 2]), pc.tensor([[3, 4], [5, 6]])).tolist()
    [11, 17]
    """,
    out=True,
    dtypes="arithmetic",
)


@inner.decompose
def _(self, other):
    if self.ndim == 0 or other.ndim == 0:
        return mul(self, other)
    check(
        self.shape[-1] == other.shape[-1],
        f"`self` and `other` must have the same last size; got shapes {self.shape} and {other.shape}",
    )
    left = reshape(self, [numel(self.shape[:-1]), self.shape[-1]])
    right = reshape(other, [numel(other.shape[:-1]), other.shape[-1]])
    return reshape(mm(left, transpose(right, 0, 1)), self.shape[:-1] + other.shape[:-1])


inner.reference(lambda self, other: np.asarray(np.inner(self, other)))
inner.samples(
    lambda s: iter(
        [
            s(s.array(3), s.array(3)),
            s(s.array(2, 3), s.array(4, 5, 3)),
            s(s.array(), s.array(2)),
            s(s.strided(2, 3), s.array(3)),
            s(s.array(2, 0), s.array(3, 0)),
        ]
    )
)
inner.error("ShapeError", lambda s: s(s.array(2), s.array(3)), contains=["inner", "(2,)", "(3,)"])

vdot = Composite(
    "vdot(Tensor self, Tensor other) -> Tensor",
    doc="""
    The scalar product of two vectors, of which the first is conjugated: ``sum_k conj(self[k]) * other[k]``.

    Raises: ShapeError unless both have 1 dimension and one length, DTypeError if the dtypes differ.

    >>> import plait_core as pc
    >>> pc.vdot(pc.tensor([1, 2]), pc.tensor([3, 4])).item()
    11
    """,
    out=True,
    dtypes="arithmetic",
)


@vdot.decompose
def _(self, other):
    return dot(conj(self) if is_complex(self.dtype) else self, other)


vdot.reference(lambda self, other: np.asarray(np.vdot(self, other)))
vdot.samples(
    lambda s: iter(
        [
            s(s.array(3), s.array(3)),
            s(s.array(3, dtype="complex64"), s.array(3, dtype="complex64")),
            s(s.array(3, dtype="int64"), s.array(3, dtype="int64")),
        ]
    )
)
vdot.error("ShapeError", lambda s: s(s.array(2), s.array(3)), contains=["(2,)", "(3,)"])

ger = Composite(
    "ger(Tensor self, Tensor vec2) -> Tensor",
    doc="""
    `outer`.

    >>> import plait_core as pc
    >>> pc.ger(pc.tensor([1, 2]), pc.tensor([3])).tolist()
    [[3], [6]]
    """,
    out=True,
    dtypes="arithmetic",
)


@ger.decompose
def _(self, vec2):
    return outer(self, vec2)


ger.reference(lambda self, vec2: np.outer(self, vec2))
ger.samples(lambda s: iter([s(s.array(3), s.array(2))]))
ger.error("ShapeError", lambda s: s(s.array(2, 2), s.array(2)), contains=["(2, 2)"])

trace = Composite(
    "trace(Tensor self) -> Tensor",
    doc="""
    The sum of the diagonal of a matrix; integers and bool become int64.

    Raises: ShapeError unless it has 2 dimensions.

    >>> import plait_core as pc
    >>> pc.trace(pc.tensor([[1, 2], [3, 4]])).item()
    5
    """,
    dtypes="any",
)


@trace.decompose
def _(self):
    check(self.ndim == 2, f"`self` must have 2 dimensions; got shape {self.shape}")
    return sum(diagonal(self))


trace.reference(lambda self: np.asarray(np.trace(self)).astype(np.sum(self[:1]).dtype))
trace.samples(
    lambda s: iter(
        [s(s.array(3, 3)), s(s.array(2, 4, dtype="int32")), s(s.strided(3, 2)), s(s.array(0, 2))]
    )
)
trace.error("ShapeError", lambda s: s(s.array(3)), contains=["trace", "`self`", "(3,)"])


# ---- tensor products -----------------------------------------------------------------------------
kron = Composite(
    "kron(Tensor self, Tensor other) -> Tensor",
    doc="""
    The Kronecker product: every element of `self` times the whole of `other`, block after block.

    Shapes: missing dimensions of the one with fewer are 1; the sizes multiply. Dtypes: numbers.

    >>> import plait_core as pc
    >>> pc.kron(pc.tensor([1, 10]), pc.tensor([1, 2])).tolist()
    [1, 2, 10, 20]
    """,
    out=True,
    dtypes="arithmetic",
)


@kron.decompose
def _(self, other):
    n = max(self.ndim, other.ndim)
    a = [1] * (n - self.ndim) + self.shape
    b = [1] * (n - other.ndim) + other.shape
    left = []
    right = []
    whole = []
    for x, y in zip(a, b):  # noqa: B905
        left.append(x)
        left.append(1)
        right.append(1)
        right.append(y)
        whole.append(x * y)
    return reshape(mul(reshape(self, left), reshape(other, right)), whole)


kron.reference(lambda self, other: np.asarray(np.kron(self, other)))
kron.samples(
    lambda s: iter(
        [
            s(s.array(2, 3), s.array(2, 2)),
            s(s.array(3), s.array(2, 2)),
            s(s.array(2, dtype="int64"), s.array(3, dtype="int64")),
            s(s.array(0, 2), s.array(2, 2)),
            s(s.strided(2, 2), s.backwards(2)),
        ]
    )
)
kron.error("TypeError", lambda s: s(s.array(2), 3), contains=["kron", "other"])

tensordot_ = Composite(
    "tensordot(Tensor self|a, Tensor other|b, int dims=2) -> Tensor",
    doc="""
    The product over the last `dims` dimensions of `self` and the first `dims` of `other`.

    Shapes: those of the dimensions that are left, of `self` and then of `other`. Dtypes: numbers, the same for both.
    Raises: ValueError for a `dims` that one of them doesn't have, ShapeError if sizes differ, DTypeError if dtypes do.

    >>> import plait_core as pc
    >>> tuple(pc.tensordot(pc.ones(2, 3), pc.ones(3, 4), 1).shape)
    (2, 4)
    """,
    method=False,
    dtypes="arithmetic",
)
tensordot_over_ = Composite(
    "tensordot_over(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
    doc="The product over the dimensions `dims_self` of `self` and, in this order, `dims_other` of `other`.",
    method=False,
    internal=True,
    dtypes="arithmetic",
)


@tensordot_.decompose
def _(self, other, dims):
    check(
        dims >= 0 and dims <= self.ndim and dims <= other.ndim,
        f"`dims` must be in [0, {min(self.ndim, other.ndim)}] for shapes {self.shape} and {other.shape}; got {dims}",
        "ValueError",
    )
    first = []
    second = []
    for i in range(dims):
        first.append(self.ndim - dims + i)
        second.append(i)
    return tensordot_over(self, other, first, second)


@tensordot_over_.decompose
def _(self, other, dims_self, dims_other):
    require_same("self", self, "other", other)
    check(
        len(dims_self) == len(dims_other),
        f"`dims_self` and `dims_other` must be as many; got {dims_self} and {dims_other}",
        "ValueError",
    )
    first = [wrap_dim("dims", d, self.shape) for d in dims_self]
    second = [wrap_dim("dims", d, other.shape) for d in dims_other]
    size = 1
    for i, j in zip(first, second):  # noqa: B905
        check(
            self.shape[i] == other.shape[j],
            f"sizes must agree; dimension {i} of `self` {self.shape} and {j} of `other` {other.shape} differ",
        )
        size = size * self.shape[i]
    rest = [n for i, n in enumerate(self.shape) if i not in first]
    more = [n for i, n in enumerate(other.shape) if i not in second]
    check(
        len(rest) + len(first) == self.ndim and len(more) + len(second) == other.ndim,
        f"`dims` must not repeat a dimension; got {dims_self} and {dims_other}",
        "ValueError",
    )
    ends = []
    starts = []
    for i in range(len(first)):
        ends.append(i - len(first))
        starts.append(i)
    left = reshape(movedim(self, first, ends), [numel(rest), size])
    right = reshape(movedim(other, second, starts), [size, numel(more)])
    return reshape(mm(left, right), rest + more)


tensordot_.reference(lambda self, other, dims=2: np.asarray(np.tensordot(self, other, dims)))
tensordot_over_.reference(
    lambda self, other, dims_self, dims_other: np.asarray(
        np.tensordot(self, other, (list(dims_self), list(dims_other)))
    )
)
tensordot_.samples(
    lambda s: iter(
        [
            s(s.array(2, 3, 4), s.array(3, 4, 2)).loosely(4),
            s(s.array(2, 3), s.array(3, 2), 1),
            s(s.array(2), s.array(3), 0),
            s(s.array(2, 0), s.array(0, 3), 1),
        ]
    )
)
tensordot_over_.samples(
    lambda s: iter(
        [
            s(s.array(2, 3, 4), s.array(4, 3, 2), [1, 2], [1, 0]).loosely(4),
            s(s.strided(2, 3), s.array(2, 4), [0], [-2]),
        ]
    )
)
tensordot_.error(
    "ValueError", lambda s: s(s.array(2), s.array(2), 2), contains=["tensordot", "dims", "2"]
)
tensordot_over_.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(2, 3), [0], [1]),
    contains=["tensordot", "(2, 3)"],
)


# ---- products that are added ---------------------------------------------------------------------
_BETA = """`beta` 0 leaves `self` unread, so that infinities in it do not count.

    Dtypes: numbers, one for all. Raises: ShapeError for other shapes, DTypeError if dtypes differ."""

addmv = Composite(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    doc=f"""
    ``beta * self + alpha * (mat @ vec)`` for a matrix (n, k) and a vector (k,); `self` broadcasts to (n,).
    {_BETA}

    >>> import plait_core as pc
    >>> pc.addmv(pc.ones(2), pc.eye(2), pc.tensor([3.0, 4.0])).tolist()
    [4.0, 5.0]
    """,
    out=True,
    inplace=True,
    dtypes="arithmetic",
)
addr = Composite(
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    doc=f"""
    ``beta * self + alpha * outer(vec1, vec2)`` for vectors (n,) and (m,); `self` broadcasts to (n, m).
    {_BETA}

    >>> import plait_core as pc
    >>> pc.addr(pc.zeros(1, 2), pc.ones(1), pc.tensor([3.0, 4.0])).tolist()
    [[3.0, 4.0]]
    """,
    out=True,
    inplace=True,
    dtypes="arithmetic",
)
addbmm = Composite(
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    doc=f"""
    ``beta * self + alpha * sum_b(batch1[b] @ batch2[b])`` for (b, n, k) and (b, k, m); `self` broadcasts to (n, m).
    {_BETA}

    >>> import plait_core as pc
    >>> pc.addbmm(pc.zeros(1, 1), pc.ones(2, 1, 3), pc.ones(2, 3, 1)).item()
    6.0
    """,
    out=True,
    inplace=True,
    dtypes="arithmetic",
)


@addmv.decompose
def _(self, mat, vec, beta, alpha):
    require_same("self", self, "mat", mat)
    product = mv(mat, vec)
    made = product * alpha
    if float(beta) == 0.0:
        return made
    return expand(self, product.shape) * beta + made


@addr.decompose
def _(self, vec1, vec2, beta, alpha):
    product = outer(vec1, vec2)
    made = product * alpha
    if float(beta) == 0.0:
        return made
    return expand(self, product.shape) * beta + made


@addbmm.decompose
def _(self, batch1, batch2, beta, alpha):
    require_same("self", self, "batch1", batch1)
    product = sum(bmm(batch1, batch2), [0], dtype=self.dtype)
    made = product * alpha
    if float(beta) == 0.0:
        return made
    return expand(self, product.shape) * beta + made


def _added(self, product, beta, alpha):
    made = (alpha * product).astype(self.dtype)
    return made if beta == 0 else (beta * self + made).astype(self.dtype)


addmv.reference(
    lambda self, mat, vec, beta=1, alpha=1: _added(self, np.matmul(mat, vec), beta, alpha)
)
addr.reference(
    lambda self, vec1, vec2, beta=1, alpha=1: _added(self, np.outer(vec1, vec2), beta, alpha)
)
addbmm.reference(
    lambda self, batch1, batch2, beta=1, alpha=1: _added(
        self, np.matmul(batch1, batch2).sum(0), beta, alpha
    )
)
addmv.samples(
    lambda s: iter(
        [
            s(s.array(3), s.array(3, 2), s.array(2)),
            s(s.array(3), s.array(3, 2), s.array(2), beta=0.5, alpha=2.0),
            s(
                s.np.full(3, s.np.nan, "float32"), s.array(3, 2), s.array(2), beta=0
            ).without_gradient(),
            s(
                s.array(2, dtype="int64"),
                s.array(2, 2, dtype="int64"),
                s.array(2, dtype="int64"),
                beta=2,
            ),
        ]
    )
)
addr.samples(
    lambda s: iter(
        [
            s(s.array(3, 2), s.array(3), s.array(2)),
            s(s.array(3, 2), s.array(3), s.array(2), beta=0.5, alpha=2.0),
            s(s.array(2), s.array(3), s.array(2), beta=0.5),
        ]
    )
)
addbmm.samples(
    lambda s: iter(
        [
            s(s.array(3, 2), s.array(2, 3, 4), s.array(2, 4, 2)).loosely(4),
            s(s.array(3, 2), s.array(2, 3, 4), s.array(2, 4, 2), beta=0.5, alpha=2.0).loosely(4),
            s(s.array(3, 2), s.array(0, 3, 4), s.array(0, 4, 2)),
        ]
    )
)
addmv.error(
    "ShapeError", lambda s: s(s.array(3), s.array(3, 2), s.array(3)), contains=["(3, 2)", "(3,)"]
)
addr.error("ShapeError", lambda s: s(s.array(3, 2), s.array(3, 1), s.array(2)), contains=["(3, 1)"])
addbmm.error(
    "ShapeError",
    lambda s: s(s.array(3, 2), s.array(2, 3, 4), s.array(2, 3, 2)),
    contains=["(2, 3, 4)", "(2, 3, 2)"],
)

bilinear = Composite(
    "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
    doc="""
    ``out[..., k] = sum_ij input1[..., i] * weight[k, i, j] * input2[..., j] + bias[k]``.

    Shapes: `input1` (..., n), `input2` (..., m), `weight` (k, n, m), `bias` (k,); the result (..., k).
    Raises: ShapeError for other shapes, DTypeError if dtypes differ.

    >>> import plait_core as pc
    >>> pc.bilinear(pc.ones(2), pc.ones(3), pc.ones(1, 2, 3)).tolist()
    [6.0]
    """,
    method=False,
    dtypes="arithmetic",
)


@bilinear.decompose
def _(input1, input2, weight, bias):
    check(weight.ndim == 3, f"`weight` must have 3 dimensions; got shape {weight.shape}")
    check(
        input1.ndim >= 1
        and input2.ndim == input1.ndim
        and input1.shape[:-1] == input2.shape[:-1]
        and input1.shape[-1] == weight.shape[1]
        and input2.shape[-1] == weight.shape[2],
        f"`input1` of shape {input1.shape} and `input2` of shape {input2.shape} must be (..., {weight.shape[1]}) and (..., {weight.shape[2]}) for `weight` of shape {weight.shape}",
    )
    k = weight.shape[0]
    n = weight.shape[1]
    m = weight.shape[2]
    rows = numel(input1.shape[:-1])
    first = mm(reshape(input1, [rows, n]), reshape(transpose(weight, 0, 1), [n, k * m]))
    made = sum(reshape(first, [rows, k, m]) * reshape(input2, [rows, 1, m]), [-1])
    made = reshape(to_dtype(made, input1.dtype), input1.shape[:-1] + [k])
    if bias is None:
        return made
    return made + bias


@bilinear.reference
def _(input1, input2, weight, bias=None):
    made = np.einsum("...i,kij,...j->...k", input1, weight, input2)
    return (made if bias is None else made + bias).astype(input1.dtype)


bilinear.samples(
    lambda s: iter(
        [
            s(s.array(2, 3), s.array(2, 2), s.array(4, 3, 2), s.array(4)).loosely(4),
            s(s.array(3), s.array(2), s.array(4, 3, 2)).loosely(4),
            s(s.array(0, 3), s.array(0, 2), s.array(4, 3, 2)),
        ]
    )
)
bilinear.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(3, 2), s.array(4, 3, 2)),
    contains=["bilinear", "input1", "(2, 3)", "(3, 2)", "(4, 3, 2)"],
)
