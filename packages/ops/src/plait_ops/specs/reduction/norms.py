"""Norms and the logarithm of a sum of exponentials."""

import math

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.words import (
    cast_argument,
    check,
    conjugate,
    default_dtype,
    is_complex,
    is_floating,
    is_integral,
    itemsize,
    numel,
    real_dtype,
    reduce_dims,
    reduced,
    require,
    result,
    to_dtype,
)

INFINITY = math.inf


norm = Operator(
    "norm(Tensor self, Scalar p|ord=2, int[]? dim|axis=None, bool keepdim|keepdims=False, *, dtype? dtype=None) -> Tensor",
    doc="""
    The p-norm of the elements along `dim`, taken as one vector: ``sum(abs(self) ** p) ** (1 / p)``.
    With `p` inf it is the largest magnitude, with -inf the smallest, and with 0 the number of elements that are not 0.

    Shape: `dim` names the dimensions to reduce (None or an empty list: all of them); with `keepdim` they stay, with size 1.
    Dtypes: floating-point and complex dtypes; the result has the dtype of `self`, or of its real parts if it is complex.
    With `dtype`, `self` is first cast to it. The gradient at 0 is 0.
    Raises: DTypeError for other dtypes, IndexError for a `dim` out of range, ValueError for a repeated one, ShapeError if
    there are no elements to reduce and `p` is infinite or negative.

    >>> import plait_core as pc
    >>> pc.norm(pc.tensor([3.0, 4.0])).item()
    5.0
    >>> pc.norm(pc.tensor([[3.0, -4.0], [0.0, 2.0]]), 1, dim=1).tolist()
    [7.0, 2.0]
    """,
    dtypes="inexact",
    kernel="optional: without a kernel other operators compute it. in[0] has the dtype of the result or a narrower"
    " floating-point one, or the complex one whose parts have it; squares are summed where they do not overflow, so that a norm is finite whenever it fits.",
    variants="function method",
    widens=True,
)
norm.shard("code")
norm.batch("reduction")


@norm.shape
def _(self, p, dim, keepdim, dtype):
    chosen = dtype if dtype is not None else self.dtype
    require("self" if dtype is None else "dtype", chosen, "inexact")
    check(
        is_complex(chosen) or not is_complex(self.dtype),
        f"`dtype` must be complex for `self` of {self.dtype}; got {chosen}",
        "DTypeError",
    )
    dims = reduce_dims("dim", dim, self.shape)
    for at in dims:
        check(
            self.ndim == 0 or self.shape[at] > 0 or (float(p) >= 0.0 and float(p) < INFINITY),
            f"`self` of shape {self.shape} has no elements along dimension {at}, and an empty norm with `p` {float(p)} has no value",
        )
    # a wider result needs no copy of `self`
    if (
        is_complex(chosen)
        or itemsize(self.dtype) >= itemsize(chosen)
        or not is_floating(self.dtype)
    ):
        cast_argument("self", chosen)
    return result(reduced(self.shape, dims, keepdim), real_dtype(chosen))


@norm.cost
def _(self):
    # a power and a sum
    return 2 * numel(self)


@norm.decompose
def _(self, p, dim, keepdim, dtype):
    chosen = dtype if dtype is not None else self.dtype
    dims = reduce_dims("dim", dim, self.shape)
    wide = to_dtype(self, chosen)
    x = op.abs(wide) if is_complex(wide.dtype) else wide
    if float(p) == 2.0:
        return op.sqrt(op.sum(x * x, dims, keepdim))
    if float(p) == 1.0:
        return op.sum(op.abs(x), dims, keepdim)
    if float(p) == 0.0:
        return op.sum(op.ne(x, 0), dims, keepdim, dtype=x.dtype)
    if float(p) == INFINITY:
        return op.amax(op.abs(x), dims, keepdim)
    if float(p) == -INFINITY:
        return op.amin(op.abs(x), dims, keepdim)
    if numel(x.shape) == 0:
        return op.sum(op.abs(x), dims, keepdim)
    # powers of x / largest, which do not overflow
    sizes = op.abs(x)
    top = op.amax(sizes, dims, True) if float(p) > 0.0 else op.amin(sizes, dims, True)
    unit = op.where(op.bitwise_or(op.eq(top, 0), op.isinf(top)), 1.0, top)
    share = op.pow(op.sum(op.pow(sizes / unit, float(p)), dims, keepdim), 1.0 / float(p))
    return share * op.reshape(unit, share.shape)


@norm.vjp("self")
def _(g, self, result, p, dim):
    x = self if is_complex(self.dtype) else to_dtype(self, g.dtype)
    dims = reduce_dims("dim", dim, self.shape)
    small = reduced(self.shape, dims, True)
    grad = op.reshape(g, small)
    size = op.reshape(result, small)
    if float(p) == 0.0:
        return op.zeros_like(self)
    if float(p) == 1.0:
        return to_dtype(grad * op.sgn(x), self.dtype)
    if float(p) == INFINITY or float(p) == -INFINITY:
        # not `size`: kernels may round the magnitude of a complex number in another way
        sizes = op.abs(x)
        top = op.amax(sizes, dims, True) if float(p) > 0.0 else op.amin(sizes, dims, True)
        found = to_dtype(op.eq(sizes, top), g.dtype)
        return to_dtype(op.sgn(x) * found * (grad / op.sum(found, dims, True)), self.dtype)
    if float(p) == 2.0:
        return to_dtype(x * op.masked_fill(grad / size, op.eq(size, 0), 0.0), self.dtype)
    # powers of x / norm, as those of x and of the norm overflow
    none = op.eq(size, 0)
    share = op.abs(x) / op.masked_fill(size, none, 1.0)
    slope = op.masked_fill(op.sgn(x) * op.pow(share, float(p) - 1.0), op.eq(x, 0), 0.0)
    return to_dtype(slope * op.masked_fill(grad, none, 0.0), self.dtype)


norm_name = Composite(
    "norm.name(Tensor self, str p|ord, int[]? dim|axis=None, bool keepdim|keepdims=False, *, dtype? dtype=None) -> Tensor",
    doc="""
    With `p` "fro" the Frobenius norm, which is the 2-norm of all elements along `dim`. With "nuc" the nuclear norm of the
    matrices in the two dimensions of `dim`, which is the sum of their singular values.

    Args:
        p: The name of the norm: "fro" or "nuc".
        dim: The two dimensions of the matrices.

    Raises: ValueError for another name, ShapeError for "nuc" unless `dim` names two dimensions.

    >>> import plait_core as pc
    >>> pc.norm(pc.tensor([[3.0, 4.0]]), "fro").item()
    5.0
    """,
    dtypes="floating",
    variants="function method",
)


@norm_name.decompose
def _(self, p, dim, keepdim, dtype):
    check(
        p == "fro" or p == "nuc", f'`p` must be "fro", "nuc" or a number; got "{p}"', "ValueError"
    )
    if p == "nuc":
        dims = reduce_dims("dim", dim, self.shape)
        check(len(dims) == 2, f'`dim` must name two dimensions of shape {self.shape} for `p` "nuc"')
        x = to_dtype(self, dtype if dtype is not None else self.dtype)
        rest = [i for i in range(self.ndim) if i != dims[0] and i != dims[1]]
        made = op.sum(op.linalg_svdvals(op.permute(x, rest + [dims[0], dims[1]])), [-1])
        return op.reshape(made, reduced(self.shape, dims, keepdim))
    return norm(self, 2, dim, keepdim, dtype=dtype)


logsumexp = Operator(
    "logsumexp(Tensor self, int[] dim|axis, bool keepdim|keepdims=False) -> Tensor",
    doc="""
    ``log(sum(exp(self)))`` along `dim`. The largest element is subtracted first, so that nothing overflows. Without
    elements it is -inf.

    Shape: `dim` names the dimensions to reduce (an empty list: all of them); with `keepdim` they stay, with size 1.
    Dtypes: that of `self`; bool and integers give the default dtype.
    Raises: IndexError for a `dim` out of range, ValueError for a repeated one.

    >>> import plait_core as pc
    >>> f"{pc.logsumexp(pc.tensor([1000.0, 1000.0]), 0).item():.3f}"
    '1000.693'
    """,
    dtypes="any",
    kernel="optional: without a kernel other operators compute it. in[0] has the dtype of the result.",
    variants="function method",
    widens=True,
    libm="wide",
)
logsumexp.batch("reduction")
logsumexp.slices(self="dim", result="dim")


@logsumexp.shape
def _(self, dim, keepdim):
    chosen = default_dtype() if is_integral(self.dtype) else self.dtype
    cast_argument("self", chosen)
    return result(reduced(self.shape, reduce_dims("dim", dim, self.shape), keepdim), chosen)


@logsumexp.cost
def _(self):
    # the largest, a difference, exp, the sum
    return 4 * numel(self)


@logsumexp.decompose
def _(self, dim, keepdim):
    x = to_dtype(self, default_dtype() if is_integral(self.dtype) else self.dtype)
    dims = reduce_dims("dim", dim, self.shape)
    if numel(self.shape) == 0:
        return op.log(op.sum(op.exp(x), dims, keepdim))
    top = op.amax(op.real(x) if is_complex(x.dtype) else x, dims, True)
    base = op.where(op.isinf(top), 0.0, top)
    sums = op.log(op.sum(op.exp(x - base), dims, keepdim))
    return sums + op.reshape(base, reduced(self.shape, dims, keepdim))


@logsumexp.vjp("self")
def _(g, self, result, dim):
    dims = reduce_dims("dim", dim, self.shape)
    small = reduced(self.shape, dims, True)
    total = op.reshape(result, small)
    parts = op.masked_fill(op.exp(self - total), op.eq(total, -INFINITY), 0.0)
    if is_complex(g.dtype):
        return op.reshape(g, small) * conjugate(parts)
    # `result` is rounded, by several units where numbers are large: the sum of `parts` is not 1
    whole = op.sum(parts, dims, True)
    return op.reshape(g, small) / op.where(whole > 0, whole, 1.0) * parts
