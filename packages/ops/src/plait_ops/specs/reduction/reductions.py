"""Sums, means, products, extremes, and logical reductions."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Reduction
from plait_ops.words import (
    check,
    conjugate,
    is_complex,
    numel,
    reduce_dims,
    reduced,
    to_dtype,
    wide_dtype,
    wrap_dim,
)

sum_ = Reduction(
    "sum(Tensor self, int[]? dim|axis=None, bool keepdim|keepdims=False, *, dtype? dtype=None) -> Tensor",
    doc="""
    The sum of the elements along `dim`; without elements it is 0.

    >>> import plait_core as pc
    >>> pc.tensor([[1, 2], [3, 4]]).sum(0).tolist()
    [4, 6]
    """,
    result="sum",
    kernel="in[0] has the dtype of the result, or is bool or an integer of any width with a result of int64; `dim` may be negative.",
    dtypes="any",
    variants="function method",
)
sum_.shard("sum", dims=["dim"])
mean = Reduction(
    "mean(Tensor self, int[]? dim|axis=None, bool keepdim|keepdims=False, *, dtype? dtype=None) -> Tensor",
    doc="""
    The sum of the elements along `dim`, divided by their number; without elements it is nan.

    >>> import plait_core as pc
    >>> pc.tensor([[1.0, 2.0], [3.0, 4.0]]).mean().item()
    2.5
    """,
    result="float",
    dtypes="inexact",
    kernel="in[0] has the dtype of the result.",
    variants="function method",
)
mean.shard("mean", dims=["dim"])


@sum_.vjp("self")
def _(g, self, dim, keepdim):
    dims = reduce_dims("dim", dim, self.shape)
    return to_dtype(
        op.expand(op.reshape(g, reduced(self.shape, dims, True)), self.shape), self.dtype
    )


@mean.vjp("self")
def _(g, self, dim, keepdim):
    dims = reduce_dims("dim", dim, self.shape)
    small = reduced(self.shape, dims, True)
    n = numel(self.shape) / max(numel(small), 1)
    return to_dtype(op.expand(op.reshape(g / n, small), self.shape), self.dtype)


@mean.decompose
def _(self, dim, keepdim, dtype):
    wanted = dtype if dtype is not None else self.dtype
    dims = reduce_dims("dim", dim, self.shape)
    n = numel(self.shape) / max(numel(reduced(self.shape, dims, True)), 1)
    total = op.sum(to_dtype(self, wide_dtype(wanted)), dims, keepdim)
    if is_complex(wanted):  # a complex quotient would mix infinite parts with others
        return op.view_as_complex(op.view_as_real(total) / n)
    return to_dtype(total / n, wanted)


prod = Reduction(
    "prod(Tensor self, *, dtype? dtype=None) -> Tensor",
    doc="""
    The product of all elements; without elements it is 1.

    >>> import plait_core as pc
    >>> pc.tensor([1, 2, 3]).prod().item()
    6
    """,
    result="sum",
    kernel="as for `sum`.",
    dtypes="any",
    variants="function method",
)
prod_dim = Reduction(
    "prod.dim(Tensor self, int dim|axis, bool keepdim|keepdims=False, *, dtype? dtype=None) -> Tensor",
    doc="""
    The product of the elements along `dim`.

    >>> import plait_core as pc
    >>> pc.tensor([[1, 2], [3, 4]]).prod(1).tolist()
    [2, 12]
    """,
    result="sum",
    kernel="as for `sum`.",
    dtypes="any",
    variants="function method",
)
prod_backward = Composite(
    "prod_backward(Tensor grad, Tensor self, Tensor result, int dim) -> Tensor",
    doc="The product of the other elements along `dim`, times `grad`: the derivative of `prod`, correct also where elements are 0.",
    dtypes="floating",
    internal=True,
)


@prod.vjp("self")
def _(g, self, result):
    flat = op.reshape(to_dtype(self, g.dtype), [-1])
    return to_dtype(
        op.reshape(prod_backward(op.reshape(g, [1]), flat, op.reshape(result, [1]), 0), self.shape),
        self.dtype,
    )


@prod_dim.vjp("self")
def _(g, self, result, dim):
    if self.ndim == 0:
        return to_dtype(g, self.dtype)
    small = reduced(self.shape, [wrap_dim("dim", dim, self.shape)], True)
    made = prod_backward(
        op.reshape(g, small), to_dtype(self, g.dtype), op.reshape(result, small), dim
    )
    return to_dtype(made, self.dtype)


@prod_backward.decompose
def _(grad, self, result, dim):
    # products of all elements before and after, without a division, so zeros need no special case
    small = reduced(self.shape, [wrap_dim("dim", dim, self.shape)], True)
    check(
        grad.shape == small and result.shape == small,
        f"`grad` and `result` must have shape {tuple(small)}; got {grad.shape}",
    )
    others = op.exclusive_prod(self, dim, False) * op.exclusive_prod(self, dim, True)
    return grad * conjugate(others)


@prod.decompose
def _(self, dtype):
    return prod_dim(op.reshape(self, [-1]), 0, dtype=dtype)


def _truth(name, text, example):
    whole = Reduction(
        f"{name}(Tensor self) -> Tensor",
        doc=f"""
    Whether {text} not 0.

    >>> import plait_core as pc
    >>> pc.tensor([True, False]).{name}().item()
    {example}
    """,
        kernel="in[0] has any dtype and strides, and may have no elements; what is not 0 counts as true, nan too; the result is bool, a byte 0 or 1.",
        result="bool",
        dtypes="any",
        variants="function method",
    )
    along = Reduction(
        f"{name}.dim(Tensor self, int[]? dim|axis=None, bool keepdim|keepdims=False) -> Tensor",
        doc=f"""
    Whether {text} not 0, along `dim`.

    >>> import plait_core as pc
    >>> pc.tensor([[True, False]]).{name}(1).tolist()
    [{example}]
    """,
        kernel="in[0] as without `dim`; `dim` may be negative, None (all dimensions), or empty: none.",
        result="bool",
        empty="none",
        dtypes="any",
        variants="function method",
    )
    return whole, along


any_, any_dim = _truth("any", "an element is", "True")
all_, all_dim = _truth("all", "all elements are", "False")


@any_.decompose
def _(self):
    return any_dim(self, None)


@all_.decompose
def _(self):
    return all_dim(self, None)


@any_dim.decompose
def _(self, dim, keepdim):
    true = op.ne(self, 0)
    if dim is not None and len(dim) == 0:
        return true
    return op.gt(sum_(true, dim, keepdim), 0)


@all_dim.decompose
def _(self, dim, keepdim):
    return op.logical_not(any_dim(op.eq(self, 0), dim, keepdim))


count_nonzero = Reduction(
    "count_nonzero(Tensor self, int[]? dim|axis=None, bool keepdim|keepdims=False) -> Tensor",
    doc="""
    How many elements along `dim` are not 0; a nan is not 0.

    >>> import plait_core as pc
    >>> pc.count_nonzero(pc.tensor([0, 1, 2])).item()
    2
    """,
    result="int64",
    dtypes="any",
    kernel="optional; in[0] as for `any`.",
    variants="function method",
)


@count_nonzero.decompose
def _(self, dim, keepdim):
    return sum_(op.ne(self, 0), dim, keepdim)
