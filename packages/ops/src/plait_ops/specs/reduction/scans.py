"""Running sums, products, extremes and log-sum-exps."""

import numpy as np

from plait_ops.calls import (
    cat,
    clone,
    conj,
    cumprod,
    cumsum,
    eq,
    exp,
    flip,
    linear_recurrence,
    log,
    logcumsumexp,
    mul,
    narrow,
    neg,
    ones,
    scatter_add,
    where,
    zeros,
)
from plait_ops.spec import Composite, Operator
from plait_ops.words import (
    accumulated,
    cast_argument,
    check,
    conjugate,
    int64,
    is_complex,
    require,
    result,
    to_dtype,
    wrap_dim,
)
from plait_ops.words import result as made_like


def _extreme(name, what, reference, example):
    operator = Operator(
        f"{name}(Tensor self, int dim|axis) -> (Tensor, Tensor)",
        doc=f"""
    The {what} of all elements up to each one along `dim`, and where it stands, as int64: of equal ones the last; nan wins.

    Shapes: those of `self`. Raises: IndexError for a `dim` out of range, DTypeError for complex numbers.

    >>> import plait_core as pc
    >>> [x.tolist() for x in pc.{name}(pc.tensor([1, 3, 2]), 0)]
    {example}
    """,
        out=True,
        kernel="out[1] is int64; `dim` is not wrapped.",
    )

    @operator.shape
    def _(self, dim):
        wrap_dim("dim", dim, self.shape)
        require("self", self.dtype, "all")
        return result(self.shape, self.dtype), result(self.shape, int64)

    @operator.vjp("self")
    def _(g0, self, result1, dim):
        return scatter_add(zeros(self.shape, dtype=g0.dtype, device=g0.device), dim, result1, g0)

    @operator.reference
    def _(self, dim):
        if self.ndim == 0:
            return self.copy(), np.zeros((), "int64")
        x = np.moveaxis(self, dim, 0)
        values, places = x.copy(), np.zeros(x.shape, "int64")
        for i in range(1, len(x)):
            better = reference(x[i], values[i - 1]) | (x[i] != x[i]) | (x[i] == values[i - 1])
            values[i] = np.where(
                better & ((x[i] != x[i]) | (values[i - 1] == values[i - 1])), x[i], values[i - 1]
            )
            places[i] = np.where(
                better & ((x[i] != x[i]) | (values[i - 1] == values[i - 1])), i, places[i - 1]
            )
        return np.moveaxis(values, 0, dim), np.moveaxis(places, 0, dim)

    @operator.samples
    def _(s):
        yield s(s.distinct(7), 0)
        yield s(s.distinct(3, 4), 1)
        yield s(s.distinct(3, 4, 5), 1)
        yield s(s.distinct(6, 4)[::-2, ::2].T, 0)
        yield s(s.array(3, 30, dtype="int64"), -1)
        yield s(s.array(30, dtype="uint8"), 0)
        yield s(s.array(9, dtype="bool"), 0)
        yield s(np.array([1, np.nan, 3, np.nan, -np.inf], "float32"), 0).without_gradient()
        yield s(s.array(), 0)
        yield s(s.array(0, 3), 1)

    operator.error(
        "IndexError", lambda s: s(s.array(2, 3), 2), contains=[name, "dim", "(2, 3)", "2"]
    )
    operator.error(
        "DTypeError",
        lambda s: s(s.array(2, dtype="complex64"), 0),
        contains=[name, "self", "complex64"],
    )
    return operator


cummax = _extreme("cummax", "largest", np.greater, "[[1, 3, 3], [0, 1, 1]]")
cummin = _extreme("cummin", "smallest", np.less, "[[1, 1, 1], [0, 0, 0]]")

running_logsumexp = Operator(
    "logcumsumexp(Tensor self, int dim|axis) -> Tensor",
    doc="""
    ``log(cumsum(exp(self)))`` along `dim`, computed so that nothing overflows.

    Shape: that of `self`. Dtypes: floating and complex (whose imaginary parts may leave [-pi, pi]). Raises: IndexError for a `dim` out of range, DTypeError.

    >>> import plait_core as pc
    >>> [round(x, 4) for x in pc.logcumsumexp(pc.zeros(3), 0).tolist()]
    [0.0, 0.6931, 1.0986]
    """,
    out=True,
    dtypes="inexact",
)
INFINITY = float("inf")


@running_logsumexp.shape
def _(self, dim):
    wrap_dim("dim", dim, self.shape)
    require("self", self.dtype, "inexact")
    return result(self.shape, self.dtype)


@running_logsumexp.vjp("self")
def _(g, self, result, dim):
    # sum of g_k * exp(self - result_k) over k >= i, in logarithms for both signs of g
    if self.ndim == 0:
        return g
    if is_complex(g.dtype):
        turned = where(eq(g, 0), -INFINITY, log(conj(g))) - result
        return conj(exp(flip(logcumsumexp(flip(turned, [dim]), dim), [dim]) + self))
    up = where(g > 0, log(g), -INFINITY)
    down = where(g < 0, log(neg(g)), -INFINITY)
    base = where(result > -INFINITY, result, 0.0)
    rise = exp(flip(logcumsumexp(flip(up - base, [dim]), dim), [dim]) + self)
    fall = exp(flip(logcumsumexp(flip(down - base, [dim]), dim), [dim]) + self)
    return rise - fall


def _complex_sums(x, dim):
    rows = np.moveaxis(x.astype("complex128"), dim, 0)
    for i in range(1, len(rows)):
        a, b = rows[i - 1], rows[i]
        high, low = np.where(a.real >= b.real, (a, b), (b, a))
        rows[i] = high + np.log1p(np.exp(low - high))
    return np.moveaxis(rows, 0, dim).astype(x.dtype)


@running_logsumexp.reference
def _(self, dim):
    with np.errstate(all="ignore"):
        if self.dtype.kind == "c":
            return _complex_sums(self, dim)
        x = self.astype("float64").reshape(self.shape or (1,))
        return np.logaddexp.accumulate(x, axis=dim).astype(self.dtype).reshape(self.shape)


@running_logsumexp.samples
def _(s):
    yield s(s.array(7), 0)
    yield s(s.array(3, 4), 1)
    yield s(s.array(3, 4, 5, dtype="float64"), 1)
    yield s(s.strided(3, 4), -1)
    yield s(s.array(4) + np.float32(800), 0)
    yield s(np.array([-np.inf, 1, -np.inf, np.inf, 2], "float32"), 0).without_gradient()
    yield s(np.array([1, np.nan, 2], "float32"), 0).without_gradient()
    yield s(s.array(), 0)
    yield s(s.array(0, 3), 1)
    yield s(s.array(2, 5, dtype="complex64"), 1).loosely(10)
    yield s(s.array(3, 2, dtype="complex128"), 0).loosely(10)


running_logsumexp.error(
    "IndexError", lambda s: s(s.array(2, 3), 2), contains=["logcumsumexp", "dim", "(2, 3)", "2"]
)
running_logsumexp.error(
    "DTypeError",
    lambda s: s(s.array(2, dtype="int64"), 0),
    contains=["logcumsumexp", "self", "int64"],
)


def _scan(name, text, reference, example):
    operator = Operator(
        f"{name}(Tensor self, int dim|axis, *, dtype? dtype=None) -> Tensor",
        doc=f"""
    {text} Bool and integers give int64; `dtype` is cast to first.

    Raises: IndexError for a `dim` out of range.

    >>> import plait_core as pc
    >>> pc.tensor([1, 2, 3]).{name}(0).tolist()
    {example}
    """,
        inplace=True,
        out=True,
        dtypes="any",
        kernel="in[0] has the dtype of the result.",
    )

    @operator.shape
    def _(self, dim, dtype):
        wrap_dim("dim", dim, self.shape)
        made = dtype if dtype is not None else accumulated(self.dtype)
        cast_argument("self", made)
        return made_like(self.shape, made)

    @operator.reference
    def _(self, dim, dtype=None):
        made = dtype or ("int64" if self.dtype.kind in "biu" else self.dtype)
        inner = "float32" if made == "float16" else made
        x = self.astype(inner).reshape(self.shape or (1,))
        return reference(x, axis=dim, dtype=inner).reshape(self.shape).astype(made)

    @operator.samples
    def _(s):
        yield s(s.array(5), 0)
        yield s(s.array(2, 3, 4), 1)
        yield s(s.strided(3, 4), -1)
        yield s(s.array(3, 4, dtype="uint8"), 0)
        yield s(s.array(3, dtype="bool"), 0)
        yield s(s.array(3, dtype="int32"), 0, dtype="float64")
        yield s(s.array(3, 4, dtype="float16"), 1).loosely(4)
        yield s(s.array(3, 4, dtype="complex64"), 0)
        yield s(s.array(3, 4, dtype="complex128"), 1)
        yield s(s.array(), 0)
        yield s(s.array(0, 3), 1)

    operator.error(
        "IndexError", lambda s: s(s.array(2, 3), 2), contains=[name, "dim", "(2, 3)", "2"]
    )
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
        return clone(self)
    shape = list(self.shape)
    shape[at] = 1
    one = ones(shape, dtype=self.dtype, device=self.device)
    if reverse:
        return flip(cumprod(cat([one, narrow(flip(self, [at]), at, 0, n - 1)], at), at), [at])
    return cumprod(cat([one, narrow(self, at, 0, n - 1)], at), at)


@exclusive_prod.reference
def _(self, dim, reverse):
    x = np.flip(self, dim) if reverse else self
    x = np.moveaxis(x, dim, 0)
    made = np.concatenate([np.ones_like(x[:1]), np.cumprod(x, axis=0, dtype=x.dtype)[:-1]])[
        : len(x)
    ]
    made = np.moveaxis(made, 0, dim)
    return np.flip(made, dim) if reverse else made


exclusive_prod.samples(
    lambda s: iter([s(s.array(2, 4), 1, False), s(s.array(2, 4), -2, True), s(s.array(5), 0, True)])
)
exclusive_prod.error(
    "IndexError", lambda s: s(s.array(2, 4), 2, False), contains=["exclusive_prod", "dim", "(2, 4)"]
)


cumsum_ = _scan(
    "cumsum", "The sum of all elements up to each one along `dim`.", np.cumsum, "[1, 3, 6]"
)
cumprod_ = _scan(
    "cumprod", "The product of all elements up to each one along `dim`.", np.cumprod, "[1, 2, 6]"
)


@cumsum_.vjp("self")
def _(g, self, dim):
    if self.ndim == 0:
        return to_dtype(g, self.dtype)
    return to_dtype(flip(cumsum(flip(g, [dim]), dim), [dim]), self.dtype)


@cumprod_.vjp("self")
def _(g, self, dim):
    return to_dtype(cumprod_backward(g, to_dtype(self, g.dtype), dim), self.dtype)


cumprod_backward = Composite(
    "cumprod_backward(Tensor grad, Tensor self, int dim) -> Tensor",
    doc="The derivative of `cumprod`, exact with zeros.",
    dtypes="inexact",
    internal=True,
)


@cumprod_backward.decompose
def _(grad, self, dim):
    check(
        grad.shape == self.shape,
        f"`grad` of shape {grad.shape} must have the shape of `self`, {self.shape}",
    )
    # d_i = before_i * r_i with r_i = g_i + x_(i+1) * r_(i+1): no division, so zeros need no care
    if self.ndim == 0:
        return clone(grad)
    factors = conjugate(self)
    return mul(exclusive_prod(factors, dim, False), linear_recurrence(factors, grad, dim, True))


@cumprod_backward.reference
def _(grad, self, dim):
    if self.ndim == 0:
        return grad
    g, x = np.moveaxis(grad, dim, 0), np.moveaxis(self, dim, 0)
    made = np.zeros_like(x)
    for i in range(len(x)):
        for k in range(i, len(x)):
            made[i] += g[k] * np.prod(np.delete(x[: k + 1], i, axis=0), axis=0)
    return np.moveaxis(made, 0, dim)


cumprod_backward.samples(
    lambda s: iter(
        [s(s.array(2, 4), s.array(2, 4), 1), s(s.array(3), np.array([2, 0, 3], "float32"), 0)]
    )
)
cumprod_backward.error(
    "ShapeError",
    lambda s: s(s.array(2), s.array(3), 0),
    contains=["cumprod_backward", "grad", "(2,)", "(3,)"],
)
