"""Running extremes and log-sum-exps, and differences."""

import numpy as np

from plait_ops.calls import (
    bitwise_xor,
    cat,
    clone,
    conj,
    eq,
    exp,
    flip,
    log,
    logcumsumexp,
    narrow,
    neg,
    scatter_add,
    sub,
    where,
    zeros,
)
from plait_ops.spec import Composite, Operator
from plait_ops.words import bool_, check, int64, is_complex, require, result, wrap_dim


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

diff = Composite(
    "diff(Tensor self, int n=1, int dim|axis=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    doc="""
    Differences of neighbours along `dim`, ``self[i + 1] - self[i]``, taken `n` times; of bool: whether they differ. `prepend`
    and `append` are joined to `self` first.

    Raises: ValueError for a negative `n`, ShapeError for a 0-d tensor or parts that do not fit, IndexError for a `dim` out of
    range.

    >>> import plait_core as pc
    >>> pc.diff(pc.tensor([1, 3, 2])).tolist()
    [2, -1]
    """,
    dtypes="any",
    out=True,
)


@diff.decompose
def _(self, n, dim, prepend, append):
    check(n >= 0, f"`n` must not be negative; got {n}", "ValueError")
    check(self.ndim > 0, "`self` must have at least 1 dimension; got shape ()")
    at = wrap_dim("dim", dim, self.shape)
    if n == 0:
        return clone(self)
    parts = []
    if prepend is not None:
        parts.append(prepend)
    parts.append(self)
    if append is not None:
        parts.append(append)
    made = clone(self) if len(parts) == 1 else cat(parts, at)
    turns = min(n, made.shape[at])
    for _i in range(turns):
        m = max(made.shape[at] - 1, 0)
        after = narrow(made, at, made.shape[at] - m, m)
        before = narrow(made, at, 0, m)
        if made.dtype == bool_:
            made = bitwise_xor(after, before)
        else:
            made = sub(after, before)
    return made


@diff.reference
def _(self, n=1, dim=-1, prepend=None, append=None):
    if n == 0:
        return self.copy()
    parts = [x for x in (prepend, self, append) if x is not None]
    return np.diff(np.concatenate(parts, dim), n, dim)


diff.samples(
    lambda s: iter(
        [
            s(s.array(5)),
            s(s.array(3, 5), 2),
            s(s.strided(3, 5), 1, 0),
            s(s.array(3, 5), 1, 1, s.array(3, 1), s.array(3, 2)),
            s(s.array(6, dtype="bool")),
            s(s.array(6, dtype="int64"), 3),
            s(s.array(3), 5),
            s(s.array(3), 0, 0, s.array(1)),
            s(s.array(4), append=s.array(1)),
        ]
    )
)
diff.error("ValueError", lambda s: s(s.array(3), -1), contains=["diff", "n", "-1"])
diff.error("ShapeError", lambda s: s(s.array()), contains=["diff", "self", "()"])
diff.error("IndexError", lambda s: s(s.array(3), 1, 1), contains=["diff", "dim", "(3,)"])
