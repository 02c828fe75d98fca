"""Softmax, its logarithm and its negative counterpart."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.words import (
    cast_argument,
    check,
    numel,
    part,
    require,
    result,
    result as made,
    to_dtype,
    wide_dtype,
    wrap_dim,
)

_DOC = """
    {formula}

    Shape: that of `self`. Dtypes: floating-point dtypes; with `dtype`, `self` is first cast to it.
    Raises: IndexError for a `dim` out of range, DTypeError for other dtypes.

    >>> import plait_core as pc
    >>> pc.{name}(pc.zeros(2), 0).tolist()
    {example}
    """

softmax = Operator(
    "softmax(Tensor self, int dim|axis, dtype? dtype=None) -> Tensor",
    doc=_DOC.format(
        name="softmax",
        formula="``exp(self) / sum(exp(self))`` along `dim`, computed without overflow.",
        example="[0.5, 0.5]",
    ),
    dtypes="floating",
    kernel="in[0] has the dtype of the result; `dim` may be negative; a 0-d input counts as one of shape (1,).",
    variants="function method",
    libm="wide",
)
softmax.shard("elements", dims=["dim"])
softmax.batch("dimensions")
softmax.slices(self="dim", result="dim")
log_softmax = Operator(
    "log_softmax(Tensor self, int dim|axis, dtype? dtype=None) -> Tensor",
    doc=_DOC.format(
        name="log_softmax",
        formula="``self - log(sum(exp(self)))`` along `dim`, computed without overflow.",
        example="[-0.6931471824645996, -0.6931471824645996]",
    ),
    dtypes="floating",
    kernel="as for `softmax`.",
    variants="function method",
    libm="wide",
)
log_softmax.shard("elements", dims=["dim"])
log_softmax.batch("dimensions")
log_softmax.slices(self="dim", result="dim")


@softmax.shape
@log_softmax.shape
def _(self, dim, dtype):
    wrap_dim("dim", dim, self.shape)
    require("self", self.dtype, "all" if dtype is not None else "floating")
    wanted = dtype if dtype is not None else self.dtype
    require("dtype", wanted, "floating")
    cast_argument("self", wanted)
    return result(self.shape, wanted)


@softmax.cost
@log_softmax.cost
def _(self):
    # the largest, a difference, exp, the sum; a quotient or a difference
    return 5 * numel(self)


@softmax.vjp("self")
def _(g, self, result, dim):
    return to_dtype(softmax_backward(g, result, dim), self.dtype)


@log_softmax.vjp("self")
def _(g, self, result, dim):
    return to_dtype(log_softmax_backward(g, result, dim), self.dtype)


@softmax.jvp
def _(d_self, result, dim):  # the Jacobian is symmetric
    return softmax_backward(to_dtype(d_self, result.dtype), result, dim)


@log_softmax.jvp
def _(d_self, result, dim):
    d = to_dtype(d_self, result.dtype)
    return d - op.sum(op.exp(result) * d, [dim], True)


@part
def _below_the_largest(self, dim, dtype):
    """`self` minus its largest element along `dim`, so that no exponential overflows."""
    x = to_dtype(self, wide_dtype(dtype))
    return x - op.amax(x, [dim], True) if numel(x.shape) > 0 else x


@softmax.decompose
def _(self, dim, dtype):
    wanted = dtype if dtype is not None else self.dtype
    e = op.exp(_below_the_largest(self, dim, wanted))
    return to_dtype(e / op.sum(e, [dim], True), wanted)


@log_softmax.decompose
def _(self, dim, dtype):
    wanted = dtype if dtype is not None else self.dtype
    x = _below_the_largest(self, dim, wanted)
    return to_dtype(x - op.log(op.sum(op.exp(x), [dim], True)), wanted)


softmax_backward = Operator(
    "softmax_backward(Tensor grad, Tensor result, int dim) -> Tensor",
    doc="``result * (grad - sum(grad * result))`` along `dim`: the derivative of `softmax`.",
    dtypes="floating",
    internal=True,
    kernel="both operands have one shape and dtype, any strides.",
)
softmax_backward.batch("dimensions")
softmax_backward.slices(grad="dim", result="dim", result0="dim")
log_softmax_backward = Operator(
    "log_softmax_backward(Tensor grad, Tensor result, int dim) -> Tensor",
    doc="``grad - exp(result) * sum(grad)`` along `dim`: the derivative of `log_softmax`.",
    dtypes="floating",
    internal=True,
    kernel="both operands have one shape and dtype, any strides.",
    libm="wide",
)
log_softmax_backward.batch("dimensions")
log_softmax_backward.slices(grad="dim", result="dim", result0="dim")


@softmax_backward.shape
@log_softmax_backward.shape
def _(grad, result, dim):
    wrap_dim("dim", dim, result.shape)
    require("grad", grad.dtype, "floating")
    check(
        grad.shape == result.shape and grad.dtype == result.dtype,
        f"`grad` of shape {grad.shape} and {grad.dtype} must be like `result` of shape {result.shape} and {result.dtype}",
    )
    return made(grad.shape, grad.dtype)


@softmax_backward.cost
@log_softmax_backward.cost
def _(grad):
    return 4 * numel(grad)


@softmax_backward.decompose
def _(grad, result, dim):
    return op.mul(result, op.sub(grad, op.sum(op.mul(grad, result), [dim], True)))


@log_softmax_backward.decompose
def _(grad, result, dim):
    return op.sub(grad, op.mul(op.exp(result), op.sum(grad, [dim], True)))


@softmax_backward.vjp("grad")
def _(g, result, dim):
    return softmax_backward(g, result, dim)


@softmax_backward.vjp("result")
def _(g, grad, result, dim):
    return g * (grad - op.sum(grad * result, [dim], True)) - grad * op.sum(g * result, [dim], True)


@log_softmax_backward.vjp("grad")
def _(g, result, dim):
    return g - op.sum(g * op.exp(result), [dim], True)


@log_softmax_backward.vjp("result")
def _(g, grad, result, dim):
    return -(g * op.exp(result) * op.sum(grad, [dim], True))


softmin = Composite(
    "softmin(Tensor self, int dim|axis, *, dtype? dtype=None) -> Tensor",
    doc="""
    ``softmax(-self)`` along `dim`.

    Shape: that of `self`. Dtypes: floating-point dtypes; with `dtype`, `self` is first cast to it.

    >>> import plait_core as pc, plait_nn.functional as F
    >>> F.softmin(pc.tensor([0.0, 0.0]), 0).tolist()
    [0.5, 0.5]
    """,
    dtypes="floating",
    variants="",
)


@softmin.decompose
def _(self, dim, dtype):
    return softmax(op.neg(self), dim, dtype=dtype)
