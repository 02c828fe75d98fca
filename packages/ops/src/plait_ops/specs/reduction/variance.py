"""Variance and standard deviation."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator, Reduction
from plait_ops.words import (
    is_complex,
    is_unused,
    numel,
    part,
    real_dtype,
    reduce_dims,
    reduced,
    require,
    result,
    to_dtype,
    warn_of_freedom,
    wide_dtype,
)

TEXT = """
    The sum is divided by ``n - correction`` (never by less than 0), where n is the number of elements reduced. `correction`
    1 gives the unbiased estimate, 0 the variance of a whole population; None means 1, and NumPy's name ``ddof`` is accepted
    too. If ``n - correction`` is 0 or less, the sum is divided by 0: the result is nan or inf.
"""


var = Reduction(
    "var(Tensor self, int[]? dim|axis=None, *, Scalar? correction|ddof=1, bool keepdim|keepdims=False) -> Tensor",
    doc=f"""
    The variance of the elements along `dim`: ``sum((self - mean(self)) ** 2) / (n - correction)``.
    {TEXT}
    >>> import plait_core as pc
    >>> pc.tensor([1.0, 3.0]).var().item()
    2.0
    """,
    result="real",
    dtypes="inexact",
    kernel="`dim` may be negative; the mean is subtracted before squares are summed, so that no accuracy is lost by cancellation.",
    variants="function method",
)
std = Reduction(
    "std(Tensor self, int[]? dim|axis=None, *, Scalar? correction|ddof=1, bool keepdim|keepdims=False) -> Tensor",
    doc=f"""
    The standard deviation of the elements along `dim`: ``sqrt(sum((self - mean(self)) ** 2) / (n - correction))``.
    {TEXT}
    >>> import plait_core as pc
    >>> pc.tensor([1.0, 3.0]).std(correction=0).item()
    1.0
    """,
    result="real",
    dtypes="inexact",
    kernel="as for `var`.",
    variants="function method",
)
var_mean = Operator(
    "var_mean(Tensor self, int[]? dim|axis=None, *, Scalar? correction|ddof=1, bool keepdim|keepdims=False)"
    " -> (Tensor, Tensor)",
    doc=f"""
    `var` and `mean` in one go.
    {TEXT}
    Shapes: those of `var`. Dtypes: floating-point dtypes.
    Raises: DTypeError for other dtypes, IndexError for a `dim` out of range, ValueError for a repeated one.

    >>> import plait_core as pc
    >>> [x.item() for x in pc.var_mean(pc.tensor([1.0, 3.0]))]
    [2.0, 2.0]
    """,
    dtypes="inexact",
    kernel="as for `var`; out[1] is the mean.",
)
var_mean.batch("reduction")


std_mean_ = Operator(
    "std_mean(Tensor self, int[]? dim|axis=None, *, Scalar? correction|ddof=1, bool keepdim|keepdims=False)"
    " -> (Tensor, Tensor)",
    doc=f"""
    `std` and `mean` in one go.
    {TEXT}
    Shapes: those of `std`. Dtypes: floating-point and complex dtypes.
    Raises: DTypeError for other dtypes, IndexError for a `dim` out of range, ValueError for a repeated one.

    >>> import plait_core as pc
    >>> [x.item() for x in pc.std_mean(pc.tensor([1.0, 3.0]), correction=0)]
    [1.0, 2.0]
    """,
    dtypes="inexact",
    kernel="optional; as for `std`; out[1] is the mean.",
)


var_backward = Composite(
    "var_backward(Tensor grad, Tensor self, int[]? dim, Scalar? correction) -> Tensor",
    doc="``grad * 2 * (self - mean(self)) / (n - correction)``: the derivative of `var`.",
    dtypes="floating",
    internal=True,
    widens=True,
)
std_backward = Composite(
    "std_backward(Tensor grad, Tensor self, Tensor std, int[]? dim, Scalar? correction) -> Tensor",
    doc="``grad * (self - mean(self)) / std / (n - correction)``: the derivative of `std`.",
    dtypes="floating",
    internal=True,
    widens=True,
)


@std_mean_.decompose
def _(self, dim, correction, keepdim):
    return std(self, dim, correction=correction, keepdim=keepdim), op.mean(self, dim, keepdim)


@var.decompose
def _(self, dim, correction, keepdim):
    dims = reduce_dims("dim", dim, self.shape)
    n = numel(self.shape) / max(numel(reduced(self.shape, dims, True)), 1)
    left = max(n - (1.0 if correction is None else float(correction)), 0.0)
    x = to_dtype(self, wide_dtype(self.dtype))
    off = x - op.mean(x, dims, True)
    squares = op.square(op.abs(off)) if is_complex(self.dtype) else op.square(off)
    return to_dtype(op.sum(squares, dims, keepdim) / left, real_dtype(self.dtype))


@std.decompose
def _(self, dim, correction, keepdim):
    x = to_dtype(self, wide_dtype(self.dtype))
    spread = op.sqrt(var(x, dim, correction=correction, keepdim=keepdim))
    return to_dtype(spread, real_dtype(self.dtype))


@var_mean.decompose
def _(self, dim, correction, keepdim):
    return var(self, dim, correction=correction, keepdim=keepdim), op.mean(self, dim, keepdim)


@var_mean.shape
@std_mean_.shape
def _(self, dim, correction, keepdim):
    require("self", self.dtype, "inexact")
    dims = reduce_dims("dim", dim, self.shape)
    warn_of_freedom(self.shape, dims, 1.0 if correction is None else float(correction))
    shape = reduced(self.shape, dims, keepdim)
    return result(shape, real_dtype(self.dtype)), result(shape, self.dtype)


@var_backward.decompose
def _(grad, self, dim, correction):
    dims = reduce_dims("dim", dim, self.shape)
    small = reduced(self.shape, dims, True)
    n = numel(self.shape) / max(numel(small), 1)
    left = max(n - (1.0 if correction is None else float(correction)), 0.0)
    return (self - op.mean(self, dims, True)) * (op.reshape(grad * 2.0, small) / left)


@std_backward.decompose
def _(grad, self, std, dim, correction):
    # if all elements are equal the slope is infinite; 0 is a generalised derivative
    none = op.eq(std, 0)
    slope = op.masked_fill(grad / op.masked_fill(std * 2.0, none, 1.0), none, 0.0)
    return var_backward(slope, self, dim, correction)


@var.cost
@std.cost
@var_mean.cost
@std_mean_.cost
def _(self):
    # the mean, a difference, a product, the sum
    return 4 * numel(self)


@var.vjp("self")
def _(g, self, dim, correction):
    return var_backward(g, self, dim, correction)


@std.vjp("self")
def _(g, self, result, dim, correction):
    return std_backward(g, self, result, dim, correction)


@part
def mean_backward(g, self, dim):
    small = reduced(self.shape, reduce_dims("dim", dim, self.shape), True)
    n = numel(self.shape) / max(numel(small), 1)
    return op.expand(op.reshape(g / n, small), self.shape)


@var_mean.vjp("self")
def _(g0, g1, self, dim, correction):
    if is_unused(g0):
        return mean_backward(g1, self, dim)
    spread = var_backward(g0, self, dim, correction)
    return spread if is_unused(g1) else spread + mean_backward(g1, self, dim)


@std_mean_.vjp("self")
def _(g0, g1, self, result0, dim, correction):
    if is_unused(g0):
        return mean_backward(g1, self, dim)
    spread = std_backward(g0, self, result0, dim, correction)
    return spread if is_unused(g1) else spread + mean_backward(g1, self, dim)


# ---- the names that older programs use -----------------------------------------------------------
def _unbiased(name, results, example, variants="function"):
    return Composite(
        f"{name}.unbiased(Tensor self, int[]? dim|axis=None, bool unbiased=True, bool keepdim|keepdims=False) -> {results}",
        doc=f"""
    `{name}` with `correction` 1 if `unbiased`, else 0.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([1.0, 3.0]), 0, unbiased=False){example}
    """,
        dtypes="floating",
        variants=variants,
    )


var_unbiased = _unbiased("var", "Tensor", ".item()\n    1.0", variants="function method")
std_unbiased = _unbiased("std", "Tensor", ".item()\n    1.0", variants="function method")
var_mean_unbiased = _unbiased("var_mean", "(Tensor, Tensor)", "[0].item()\n    1.0")


@var_unbiased.decompose
def _(self, dim, unbiased, keepdim):
    return var(self, dim, correction=1 if unbiased else 0, keepdim=keepdim)


@std_unbiased.decompose
def _(self, dim, unbiased, keepdim):
    return std(self, dim, correction=1 if unbiased else 0, keepdim=keepdim)


@var_mean_unbiased.decompose
def _(self, dim, unbiased, keepdim):
    return var_mean(self, dim, correction=1 if unbiased else 0, keepdim=keepdim)


def _flag(name, results, example, variants="function"):
    operator = Composite(
        f"{name}.flag(Tensor self, bool unbiased) -> {results}",
        doc=f"""
    `{name}` of all elements with `correction` 1 if `unbiased`, else 0.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([1.0, 3.0]), False){example}
    """,
        dtypes="inexact",
        variants=variants,
    )
    return operator


var_flag = _flag("var", "Tensor", ".item()\n    1.0", variants="function method")
std_flag = _flag("std", "Tensor", ".item()\n    1.0", variants="function method")
var_mean_flag = _flag("var_mean", "(Tensor, Tensor)", "[0].item()\n    1.0")


@var_flag.decompose
def _(self, unbiased):
    return var(self, None, correction=1 if unbiased else 0)


@std_flag.decompose
def _(self, unbiased):
    return std(self, None, correction=1 if unbiased else 0)


@var_mean_flag.decompose
def _(self, unbiased):
    return var_mean(self, None, correction=1 if unbiased else 0)


std_mean_unbiased = Composite(
    "std_mean.unbiased(Tensor self, int[]? dim|axis=None, bool unbiased=True, bool keepdim|keepdims=False)"
    " -> (Tensor, Tensor)",
    doc="`std_mean` with `correction` 1 if `unbiased`, else 0.",
    dtypes="inexact",
)


@std_mean_unbiased.decompose
def _(self, dim, unbiased, keepdim):
    return op.std_mean(self, dim, correction=1 if unbiased else 0, keepdim=keepdim)


std_mean_flag = Composite(
    "std_mean.flag(Tensor self, bool unbiased) -> (Tensor, Tensor)",
    doc="`std_mean` of all elements with `correction` 1 if `unbiased`, else 0.",
    dtypes="inexact",
)


@std_mean_flag.decompose
def _(self, unbiased):
    return op.std_mean(self, None, correction=1 if unbiased else 0)
