"""Products of vectors, matrices and tensors other than `matmul`."""

from plait_ops import calls as op
from plait_ops.spec import Composite
from plait_ops.words import (
    broadcast,
    check,
    is_complex,
    numel,
    require_same,
    to_dtype,
    warn,
    wrap_dim,
)

inner = Composite(
    "inner(Tensor self, Tensor other) -> Tensor",
    doc="""
    The scalar products of all rows of `self` with all rows of `other`: ``out[..., ...] = sum_k self[..., k] * other[...,
    k]``; a 0-d tensor multiplies the other operand.

    Shapes: ``self.shape[:-1] + other.shape[:-1]``. Dtypes: numbers, the same for both.
    Raises: ShapeError if the last sizes differ, DTypeError if the dtypes differ.

    >>> import plait_core as pc
    >>> pc.inner(pc.tensor([1, 2]), pc.tensor([[3, 4], [5, 6]])).tolist()
    [11, 17]
    """,
    dtypes="arithmetic",
    variants="function method",
)


@inner.decompose
def _(self, other):
    if self.ndim == 0 or other.ndim == 0:
        return op.mul(self, other)
    check(
        self.shape[-1] == other.shape[-1],
        f"`self` and `other` must have the same last size; got shapes {self.shape} and {other.shape}",
    )
    left = op.reshape(self, [numel(self.shape[:-1]), self.shape[-1]])
    right = op.reshape(other, [numel(other.shape[:-1]), other.shape[-1]])
    return op.reshape(op.mm(left, op.transpose(right, 0, 1)), self.shape[:-1] + other.shape[:-1])


vdot = Composite(
    "vdot(Tensor self, Tensor other) -> Tensor",
    doc="""
    The scalar product of two vectors, of which the first is conjugated: ``sum_k conj(self[k]) * other[k]``.

    Raises: ShapeError unless both have 1 dimension and the same length, DTypeError if the dtypes differ.

    >>> import plait_core as pc
    >>> pc.vdot(pc.tensor([1, 2]), pc.tensor([3, 4])).item()
    11
    """,
    dtypes="arithmetic",
    variants="function method",
)


@vdot.decompose
def _(self, other):
    return op.dot(op.conj(self) if is_complex(self.dtype) else self, other)


ger = Composite(
    "ger(Tensor self, Tensor vec2) -> Tensor",
    doc="""
    The outer product of two vectors: `outer`.

    Args:
        vec2: The second vector: shape (m).

    >>> import plait_core as pc
    >>> pc.ger(pc.tensor([1, 2]), pc.tensor([3])).tolist()
    [[3], [6]]
    """,
    dtypes="arithmetic",
    variants="function method",
)


@ger.decompose
def _(self, vec2):
    return op.outer(self, vec2)


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
    variants="function method",
)


@trace.decompose
def _(self):
    check(self.ndim == 2, f"`self` must have 2 dimensions; got shape {self.shape}")
    return op.sum(op.diagonal(self))


bilinear = Composite(
    "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
    doc="""
    ``out[..., k] = sum_ij input1[..., i] * weight[k, i, j] * input2[..., j] + bias[k]``.

    Args:
        weight: The weights: shape (out, in1, in2).
        bias: What is added to each output: shape (out), or None.

    Shapes: `input1` (..., n), `input2` (..., m), `weight` (k, n, m), `bias` (k,); the result (..., k).
    Raises: ShapeError for other shapes, DTypeError if dtypes differ.

    >>> import plait_core as pc
    >>> pc.bilinear(pc.ones(2), pc.ones(3), pc.ones(1, 2, 3)).tolist()
    [6.0]
    """,
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
    first = op.mm(op.reshape(input1, [rows, n]), op.reshape(op.transpose(weight, 0, 1), [n, k * m]))
    made = op.sum(op.reshape(first, [rows, k, m]) * op.reshape(input2, [rows, 1, m]), [-1])
    made = op.reshape(to_dtype(made, input1.dtype), input1.shape[:-1] + [k])
    if bias is None:
        return made
    return made + bias


_VECDOT = """
    Shapes: both broadcast. `dim` is a dimension of each of them, and the result lacks it. Dtypes: numbers, the same for
    both.
    Raises: ShapeError where sizes along `dim` differ or others do not broadcast, IndexError for a `dim` out of range.
"""


# ---- products of vectors -------------------------------------------------------------------------
linalg_cross_ = Composite(
    "linalg_cross(Tensor self, Tensor other, *, int dim|axis=-1) -> Tensor",
    doc="""
    The cross product of vectors of three elements along `dim`; other dimensions broadcast.

    Raises: ShapeError unless both have 3 elements along `dim` and the same number of dimensions, IndexError for a `dim` out
    of range.

    >>> import plait_core as pc
    >>> pc.linalg.cross(pc.tensor([1, 0, 0]), pc.tensor([0, 1, 0])).tolist()
    [0, 0, 1]
    """,
    dtypes="arithmetic",
    widens=True,
)
cross = Composite(
    "cross(Tensor self, Tensor other, int? dim|axis=None) -> Tensor",
    doc="""
    The cross product along `dim`; without `dim` along the first dimension that has 3 elements.

    Raises: ShapeError if there is no such dimension; and what `linalg.cross` raises.

    >>> import plait_core as pc
    >>> pc.tensor([1, 0, 0]).cross(pc.tensor([0, 1, 0]), dim=0).tolist()
    [0, 0, 1]
    """,
    dtypes="arithmetic",
    variants="function method",
)


@linalg_cross_.decompose
def _(self, other, dim):
    check(
        self.ndim == other.ndim,
        f"`self` and `other` must have the same number of dimensions; got shapes {self.shape} and {other.shape}",
    )
    at = wrap_dim("dim", dim, self.shape)
    check(
        self.ndim > 0 and self.shape[at] == 3 and other.shape[at] == 3,
        f"`self` and `other` must have 3 elements along `dim` {dim}; got shapes {self.shape} and {other.shape}",
    )
    shape = broadcast("self", self.shape, "other", other.shape)
    a = op.expand(self, shape)
    b = op.expand(other, shape)
    return op.roll(a, [-1], [at]) * op.roll(b, [-2], [at]) - op.roll(a, [-2], [at]) * op.roll(
        b, [-1], [at]
    )


@cross.decompose
def _(self, other, dim):
    at = -1
    if dim is not None:
        return op.linalg_cross(self, other, dim=dim)
    warn(
        True,
        "Using torch.cross without specifying the dim arg is deprecated. It takes the first "
        "dimension of 3 elements; give `dim`, or use linalg.cross, which takes the last",
    )
    for i in range(self.ndim):
        if at < 0 and self.shape[i] == 3:
            at = i
    check(at >= 0, f"`self` must have a dimension of 3 elements; got shape {self.shape}")
    return op.linalg_cross(self, other, dim=at)


linalg_vecdot_ = Composite(
    "linalg_vecdot(Tensor x|x1, Tensor y|x2, *, int dim|axis=-1) -> Tensor",
    doc=f"""
    The scalar product of vectors along `dim`: ``sum(conj(x) * y, dim)``.
    {_VECDOT}
    >>> import plait_core as pc
    >>> pc.linalg.vecdot(pc.tensor([[1, 2], [3, 4]]), pc.tensor([1, 1])).tolist()
    [3, 7]
    """,
    dtypes="arithmetic",
)


@linalg_vecdot_.decompose
def _(x, y, dim):
    at = wrap_dim("dim", dim, x.shape)
    other = wrap_dim("dim", dim, y.shape)
    check(
        x.ndim > 0 and y.ndim > 0 and x.shape[at] == y.shape[other],
        f"`x` and `y` must have the same number of elements along `dim` {dim}; got shapes {x.shape} and {y.shape}",
    )
    require_same("x", x, "y", y)
    left = op.conj(x) if is_complex(x.dtype) else x
    if dim < 0:
        return op.sum(left * y, [dim], dtype=x.dtype)
    return op.sum(op.movedim(left, [at], [-1]) * op.movedim(y, [other], [-1]), [-1], dtype=x.dtype)
