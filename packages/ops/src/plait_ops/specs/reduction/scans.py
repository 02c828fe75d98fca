"""Running sums, products, extremes and log-sum-exps."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.words import (
    accumulated,
    cast_argument,
    check,
    conjugate,
    int64,
    is_complex,
    numel,
    require,
    result,
    to_dtype,
    wrap_dim,
)


def _extreme(name, what, example):
    operator = Operator(
        f"{name}(Tensor self, int dim|axis) -> (Tensor values, Tensor indices)",
        doc=f"""
    The {what} of all elements up to each one along `dim`, and its index as int64. Of equal elements the last counts; a nan
    counts before all numbers.

    Shapes: those of `self`. Raises: IndexError for a `dim` out of range, DTypeError for complex numbers.

    >>> import plait_core as pc
    >>> [x.tolist() for x in pc.{name}(pc.tensor([1, 3, 2]), 0)]
    {example}
    """,
        kernel="out[1] is int64; `dim` may be negative.",
        variants="function method",
    )

    @operator.shape
    def _(self, dim):
        wrap_dim("dim", dim, self.shape)
        require("self", self.dtype, "all")
        return result(self.shape, self.dtype), result(self.shape, int64)

    @operator.cost
    def _(self):
        return numel(self)

    @operator.vjp("self")
    def _(g0, self, result1, dim):
        return op.scatter_add(
            op.zeros(self.shape, dtype=g0.dtype, device=g0.device), dim, result1, g0
        )

    return operator


cummax = _extreme("cummax", "largest", "[[1, 3, 3], [0, 1, 1]]")
cummax.batch("dimensions")
cummin = _extreme("cummin", "smallest", "[[1, 1, 1], [0, 0, 0]]")
cummin.batch("dimensions")

running_logsumexp = Operator(
    "logcumsumexp(Tensor self, int dim|axis) -> Tensor",
    doc="""
    ``log(cumsum(exp(self)))`` along `dim`, computed so that nothing overflows.

    Shape: that of `self`. Dtypes: floating and complex (imaginary parts of the result may lie outside of [-pi, pi]).
    Raises: IndexError for a `dim` out of range, DTypeError.

    >>> import plait_core as pc
    >>> [round(x, 4) for x in pc.logcumsumexp(pc.zeros(3), 0).tolist()]
    [0.0, 0.6931, 1.0986]
    """,
    kernel="in[0] has the dtype of the result, any strides; `dim` may be negative; a 0-d input counts as one of shape (1,).",
    dtypes="inexact",
    variants="function method",
    widens=True,
    libm="all",
)
running_logsumexp.batch("dimensions")
INFINITY = float("inf")


@running_logsumexp.shape
def _(self, dim):
    wrap_dim("dim", dim, self.shape)
    require("self", self.dtype, "inexact")
    return result(self.shape, self.dtype)


@running_logsumexp.cost
def _(self):
    # the larger one, a difference, exp, log, the sum
    return 5 * numel(self)


@running_logsumexp.vjp("self")
def _(g, self, result, dim):
    # the sum over k >= i of g_k * exp(self_i - result_k), as a recurrence that is linear in g
    if self.ndim == 0:
        return g
    at = wrap_dim("dim", dim, self.shape)
    n = self.shape[at]
    if n == 0:
        return g
    base = result if is_complex(self.dtype) else op.where(result > -INFINITY, result, 0.0)
    weight = conjugate(op.exp(self - base))
    early = op.narrow(result, at, 0, n - 1)
    decay = op.exp(early - op.narrow(base, at, 1, n - 1))
    if not is_complex(self.dtype):
        decay = op.where(early < INFINITY, decay, 1.0)
    factors = op.cat([op.narrow(weight, at, 0, 1), conjugate(decay)], at)
    return op.linear_recurrence(factors, g, at, True) * weight


def _scan(name, text, example):
    operator = Operator(
        f"{name}(Tensor self, int dim|axis, *, dtype? dtype=None) -> Tensor",
        doc=f"""
    {text} Bool and integers give int64; with `dtype`, `self` is first cast to it.

    Raises: IndexError for a `dim` out of range.

    >>> import plait_core as pc
    >>> pc.tensor([1, 2, 3]).{name}(0).tolist()
    {example}
    """,
        inplace=True,
        dtypes="any",
        kernel="in[0] has the dtype of the result.",
        variants="function method",
    )

    @operator.shape
    def _(self, dim, dtype):
        wrap_dim("dim", dim, self.shape)
        out_dtype = dtype if dtype is not None else accumulated(self.dtype)
        cast_argument("self", out_dtype)
        return result(self.shape, out_dtype)

    @operator.cost
    def _(self):
        return numel(self)

    return operator


exclusive_prod = Composite(
    "exclusive_prod(Tensor self, int dim, bool reverse) -> Tensor",
    doc="The product of all elements before each one along `dim` (after it if `reverse`).",
    dtypes="floating",
    internal=True,
)


@exclusive_prod.decompose
def _(self, dim, reverse):
    at = wrap_dim("dim", dim, self.shape)
    n = self.shape[at]
    if n == 0:
        return op.clone(self)
    shape = list(self.shape)
    shape[at] = 1
    one = op.ones(shape, dtype=self.dtype, device=self.device)
    if reverse:
        return op.flip(
            op.cumprod(op.cat([one, op.narrow(op.flip(self, [at]), at, 0, n - 1)], at), at), [at]
        )
    return op.cumprod(op.cat([one, op.narrow(self, at, 0, n - 1)], at), at)


cumsum_ = _scan("cumsum", "The sum of all elements up to each one along `dim`.", "[1, 3, 6]")
cumsum_.batch("dimensions")
cumprod_ = _scan("cumprod", "The product of all elements up to each one along `dim`.", "[1, 2, 6]")
cumprod_.batch("dimensions")


@cumsum_.vjp("self")
def _(g, self, dim):
    if self.ndim == 0:
        return to_dtype(g, self.dtype)
    return to_dtype(op.flip(op.cumsum(op.flip(g, [dim]), dim), [dim]), self.dtype)


@cumprod_.vjp("self")
def _(g, self, dim):
    return to_dtype(cumprod_backward(g, to_dtype(self, g.dtype), dim), self.dtype)


cumprod_backward = Composite(
    "cumprod_backward(Tensor grad, Tensor self, int dim) -> Tensor",
    doc="The derivative of `cumprod`, correct also where elements are 0.",
    dtypes="inexact",
    internal=True,
)


@cumprod_backward.decompose
def _(grad, self, dim):
    check(
        grad.shape == self.shape,
        f"`grad` of shape {grad.shape} must have the shape of `self`, {self.shape}",
    )
    # d_i = before_i * r_i with r_i = g_i + x_(i+1) * r_(i+1): no division, so zeros need no special
    # case
    if self.ndim == 0:
        return op.clone(grad)
    factors = conjugate(self)
    return op.mul(
        exclusive_prod(factors, dim, False), op.linear_recurrence(factors, grad, dim, True)
    )
