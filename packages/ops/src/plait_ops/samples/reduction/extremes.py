"""Test data of reduction/extremes: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.reduction.extremes import (
    amax,
    amin,
    aminmax,
    argmax,
    argmin,
    extreme_backward,
    index_backward,
    max_,
    max_dim,
    max_other,
    min_,
    min_dim,
    min_other,
)


def _axes(dim):
    return tuple(dim) if dim else None


def _whole(operator, reference):
    operator.reference(lambda self: reference(self))


_whole(max_, np.max)
_whole(min_, np.min)


def _along(operator, reference, arg):
    name = operator.schema.base

    @operator.reference
    def _(self, dim, keepdim=False):
        if self.ndim == 0:
            return self, np.zeros((), "int64")
        return reference(self, axis=dim, keepdims=keepdim), arg(self, axis=dim, keepdims=keepdim)

    @operator.samples
    def _(s):
        yield s(s.distinct(3, 4), 1)
        yield s(s.distinct(3, 4), 0, True)
        yield s(s.array(4, 5, 6, dtype="int64"), -2)
        yield s(s.distinct(6, 4)[::2, ::-1].T, 0)
        yield s(s.array(3, 4, dtype="uint8"), 1)
        yield s(s.array(3, 4, dtype="bool"), 0)
        yield s(s.array(), 0)
        yield s(s.array(2, 0, 3)[:, :, :], 2)
        yield s(np.array([[1, np.nan, 3], [2, 2, 1]], "float32"), 1).without_gradient()

    operator.error(
        "IndexError", lambda s: s(s.array(2, 3), 2), contains=[name, "dim", "(2, 3)", "2"]
    )
    operator.error("IndexError", lambda s: s(s.array(2, 0), 1), contains=[name, "self", "(2, 0)"])
    operator.error(
        "DTypeError",
        lambda s: s(s.array(2, dtype="complex64"), 0),
        contains=[name, "self", "complex64"],
    )


@index_backward.reference
def _(grad, index, size, dim, keepdim):
    result = np.zeros(size, grad.dtype)
    at = dim % len(size)
    if not keepdim:
        index, grad = np.expand_dims(index, at), np.expand_dims(grad, at)
    np.put_along_axis(result, index, grad, at)
    return result


index_backward.samples(
    lambda s: iter(
        [
            s(s.array(3), s.indices(4, 3), (3, 4), 1, False),
            s(s.array(1, 4), s.indices(3, 1, 4), (3, 4), 0, True),
        ]
    )
)
index_backward.error(
    "ShapeError",
    lambda s: s(s.array(2), s.indices(4, 3), (3, 4), 1, False),
    contains=["index_backward", "grad", "(3,)", "(2,)"],
)


def _other(operator, calls):
    operator.reference(lambda self, other: calls(self, other))
    operator.samples(
        lambda s: iter(
            [s(s.array(2, 3), s.array(3)), s(s.array(3, dtype="int64"), s.array(3, dtype="int64"))]
        )
    )
    operator.error(
        "ShapeError",
        lambda s: s(s.array(2, 3), s.array(4)),
        contains=["broadcast", "(2, 3)", "(4,)"],
    )


_other(max_other, np.maximum)
_other(min_other, np.minimum)
_along(max_dim, np.max, np.argmax)
_along(min_dim, np.min, np.argmin)


def _extreme(operator, reference):
    operator.reference(
        lambda self, dim=(), keepdim=False: reference(self, axis=_axes(dim), keepdims=keepdim)
    )


_extreme(amax, np.max)
_extreme(amin, np.min)


@extreme_backward.reference
def _(grad, self, result):
    hits = (self == result).astype(grad.dtype)
    dims = tuple(i for i in range(self.ndim) if result.shape[i] == 1)
    return hits * (grad / hits.sum(dims, keepdims=True)) if dims else hits * grad


extreme_backward.samples(
    lambda s: iter(
        [
            s(
                s.array(2, 1),
                np.array([[1, 3, 3], [4, 4, 4]], "float32"),
                np.array([[3], [4]], "float32"),
            )
        ]
    )
)
extreme_backward.error(
    "ShapeError",
    lambda s: s(s.array(2), s.array(2, 3), s.array(2, 1)),
    contains=["grad", "(2,)", "(2, 1)"],
)


def _arg(operator, reference):
    name = operator.schema.base

    operator.reference(
        lambda self, dim=None, keepdim=False: np.asarray(
            reference(self, axis=dim if self.ndim else None, keepdims=keepdim and self.ndim > 0)
        )
    )

    @operator.samples
    def _(s):
        yield s(s.array(3, 4))
        yield s(s.array(3, 4), 1)
        yield s(s.array(3, 4), 0, True)
        yield s(s.array(3, 4), keepdim=True)
        yield s(s.array(4, 300, dtype="int64"), -1)
        yield s(s.strided(3, 4), -1)
        yield s(s.array(5, dtype="bool"))
        yield s(s.array(), 0)
        yield s(np.array([1, np.nan, np.nan, 3], "float32"))

    operator.error(
        "IndexError", lambda s: s(s.array(2, 3), 2), contains=[name, "dim", "(2, 3)", "2"]
    )
    operator.error("IndexError", lambda s: s(s.array(0, 3)), contains=[name, "self", "(0, 3)"])
    operator.error(
        "DTypeError",
        lambda s: s(s.array(2, dtype="complex64")),
        contains=[name, "self", "complex64"],
    )


_arg(argmax, np.argmax)
_arg(argmin, np.argmin)


@aminmax.reference
def _(self, dim=None, keepdim=False):
    at = dim if self.ndim else None
    return tuple(np.asarray(each(self, axis=at, keepdims=keepdim)) for each in (np.min, np.max))


aminmax.samples(
    lambda s: iter(
        [
            s(s.distinct(3, 4)),
            s(s.distinct(3, 4), dim=1),
            s(s.distinct(3, 4), dim=0, keepdim=True),
            s(s.distinct(3, 4), keepdim=True),
            s(s.array(5, dtype="int64")),
            s(s.array(), dim=0),
        ]
    )
)
aminmax.error("IndexError", lambda s: s(s.array(0, 3)), contains=["aminmax", "self", "(0, 3)"])
aminmax.error(
    "IndexError", lambda s: s(s.array(2), dim=1), contains=["aminmax", "dim", "(2,)", "1"]
)
