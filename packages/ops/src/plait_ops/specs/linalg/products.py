"""Products of vectors, matrices and tensors beside `matmul`."""

import numpy as np

from plait_ops.calls import (
    bmm,
    conj,
    diagonal,
    dot,
    expand,
    mm,
    mul,
    mv,
    outer,
    reshape,
    sum,
    transpose,
)
from plait_ops.spec import Composite
from plait_ops.words import (
    bool_,
    check,
    dtype_of,
    is_complex,
    is_integral,
    numel,
    require_same,
    to_dtype,
)

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
    The outer product of two vectors: `outer`.

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


# ---- products that are added ---------------------------------------------------------------------
_BETA = """`beta` 0 leaves `self` unread, so that infinities in it do not count.

    Dtypes: numbers, one for all; of integers fractions of `beta` and `alpha` are cut off, as in PyTorch. Raises: ShapeError for other shapes, DTypeError if dtypes differ."""

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
    if is_integral(self.dtype):
        whole = product * int(float(alpha))
        return whole + expand(self, product.shape) * int(float(beta))
    made = product * alpha
    if not is_complex(dtype_of(beta)) and float(beta) == 0.0:
        return made
    return expand(self, product.shape) * beta + made


@addr.decompose
def _(self, vec1, vec2, beta, alpha):
    product = outer(vec1, vec2)
    if is_integral(self.dtype) and is_integral(product.dtype):
        check(
            is_integral(dtype_of(beta)) and is_integral(dtype_of(alpha)),
            f"`beta` and `alpha` must be integers for {product.dtype} tensors; got {beta} and {alpha}",
            "TypeError",
        )
        whole = product * int(float(alpha)) + expand(self, product.shape) * int(float(beta))
        if self.dtype == bool_ and product.dtype == bool_:
            return to_dtype(whole, bool_)
        return whole
    made = product * alpha
    if not is_complex(dtype_of(beta)) and float(beta) == 0.0:
        return made
    return expand(self, product.shape) * beta + made


@addbmm.decompose
def _(self, batch1, batch2, beta, alpha):
    require_same("self", self, "batch1", batch1)
    product = sum(bmm(batch1, batch2), [0], dtype=self.dtype)
    if is_integral(self.dtype):
        whole = product * int(float(alpha))
        return whole + expand(self, product.shape) * int(float(beta))
    made = product * alpha
    if not is_complex(dtype_of(beta)) and float(beta) == 0.0:
        return made
    return expand(self, product.shape) * beta + made


def _added(self, product, beta, alpha):
    if self.dtype.kind in "biu":
        beta, alpha = int(beta), int(alpha)
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
            s(s.np.full(3, s.np.nan, "float32"), s.array(3, 2), s.array(2), beta=0),
            s(
                s.array(2, dtype="int64"),
                s.array(2, 2, dtype="int64"),
                s.array(2, dtype="int64"),
                beta=2,
            ),
            s(*[s.array(*n, dtype="int64") for n in ((2,), (2, 2), (2,))], beta=0.5, alpha=2.7),
        ]
    )
)
addr.samples(
    lambda s: iter(
        [
            s(s.array(3, 2), s.array(3), s.array(2)),
            s(s.array(3, 2), s.array(3), s.array(2), beta=0.5, alpha=2.0),
            s(s.array(2), s.array(3), s.array(2), beta=0.5),
            s(*[s.array(*n, dtype="bool") for n in ((3, 2), (3,), (2,))], beta=3, alpha=2),
            s(
                *[s.array(*n, dtype="complex64") for n in ((3, 2), (3,), (2,))],
                beta=0.4 + 0.6j,
                alpha=2j,
            ),
        ]
    )
)
addbmm.samples(
    lambda s: iter(
        [
            s(s.array(3, 2), s.array(2, 3, 4), s.array(2, 4, 2)).loosely(4),
            s(s.array(3, 2), s.array(2, 3, 4), s.array(2, 4, 2), beta=0.5, alpha=2.0).loosely(4),
            s(s.array(3, 2), s.array(0, 3, 4), s.array(0, 4, 2)),
            s(*[s.array(*n, dtype="int64") for n in ((3, 2), (2, 3, 4), (2, 4, 2))], alpha=1.5),
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
