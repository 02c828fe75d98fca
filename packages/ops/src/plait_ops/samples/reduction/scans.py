"""Test data of reduction/scans: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.reduction.scans import (
    cummax,
    cummin,
    cumprod_,
    cumprod_backward,
    cumsum_,
    exclusive_prod,
    running_logsumexp,
)


def _extreme(operator, reference):
    name = operator.schema.base

    @operator.reference
    def _(self, dim):
        if self.ndim == 0:
            return self.copy(), np.zeros((), "int64")
        x = np.moveaxis(self, dim, 0)
        values, indices = x.copy(), np.zeros(x.shape, "int64")
        for i in range(1, len(x)):
            better = reference(x[i], values[i - 1]) | (x[i] != x[i]) | (x[i] == values[i - 1])
            values[i] = np.where(
                better & ((x[i] != x[i]) | (values[i - 1] == values[i - 1])), x[i], values[i - 1]
            )
            indices[i] = np.where(
                better & ((x[i] != x[i]) | (values[i - 1] == values[i - 1])), i, indices[i - 1]
            )
        return np.moveaxis(values, 0, dim), np.moveaxis(indices, 0, dim)

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


_extreme(cummax, np.greater)
_extreme(cummin, np.less)


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


def _scan(operator, reference):
    name = operator.schema.base

    @operator.reference
    def _(self, dim, dtype=None):
        result = dtype or ("int64" if self.dtype.kind in "biu" else self.dtype)
        inner = "float32" if result == "float16" else result
        x = self.astype(inner).reshape(self.shape or (1,))
        return reference(x, axis=dim, dtype=inner).reshape(self.shape).astype(result)

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


@exclusive_prod.reference
def _(self, dim, reverse):
    x = np.flip(self, dim) if reverse else self
    x = np.moveaxis(x, dim, 0)
    result = np.concatenate([np.ones_like(x[:1]), np.cumprod(x, axis=0, dtype=x.dtype)[:-1]])[
        : len(x)
    ]
    result = np.moveaxis(result, 0, dim)
    return np.flip(result, dim) if reverse else result


exclusive_prod.samples(
    lambda s: iter([s(s.array(2, 4), 1, False), s(s.array(2, 4), -2, True), s(s.array(5), 0, True)])
)
exclusive_prod.error(
    "IndexError", lambda s: s(s.array(2, 4), 2, False), contains=["exclusive_prod", "dim", "(2, 4)"]
)

_scan(cumsum_, np.cumsum)
_scan(cumprod_, np.cumprod)


@cumprod_backward.reference
def _(grad, self, dim):
    if self.ndim == 0:
        return grad
    g, x = np.moveaxis(grad, dim, 0), np.moveaxis(self, dim, 0)
    result = np.zeros_like(x)
    for i in range(len(x)):
        for k in range(i, len(x)):
            result[i] += g[k] * np.prod(np.delete(x[: k + 1], i, axis=0), axis=0)
    return np.moveaxis(result, 0, dim)


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
