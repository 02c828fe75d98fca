"""Test data of normalization/softmax: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.normalization.softmax import (
    log_softmax,
    log_softmax_backward,
    softmax,
    softmax_backward,
    softmin,
)


def _softmax(self, dim, dtype=None):
    x = self.astype(dtype or self.dtype).reshape(self.shape or (1,))
    e = np.exp(x - x.max(axis=dim, keepdims=True, initial=-np.inf))
    return (e / e.sum(axis=dim, keepdims=True)).reshape(self.shape)


def _log_softmax(self, dim, dtype=None):
    x = self.astype(dtype or self.dtype).reshape(self.shape or (1,))
    y = x - x.max(axis=dim, keepdims=True, initial=-np.inf)
    return (y - np.log(np.exp(y).sum(axis=dim, keepdims=True))).reshape(self.shape)


softmax.reference(_softmax)
log_softmax.reference(_log_softmax)


softmax_backward.reference(
    lambda grad, result, dim: result * (grad - (grad * result).sum(dim, keepdims=True))
)
log_softmax_backward.reference(
    lambda grad, result, dim: grad - np.exp(result) * grad.sum(dim, keepdims=True)
)


@softmax.samples
@log_softmax.samples
def _(s):
    yield s(s.array(2, 3), 1)
    yield s(s.array(4), 0)
    yield s(s.array(2, 3, 4), 1)
    yield s(s.array(2, 3, 4), -3)
    yield s(s.strided(3, 5), 1)
    yield s(s.array(6, 4)[::2, ::-1].T, 0)
    yield s(s.array(3, 4, dtype="float64"), -1)
    yield s(s.array(2, 40, low=-200.0, high=200.0), 1).without_gradient()
    yield s(s.array(3, 1000), 1)
    yield s(s.array(), 0)
    yield s(s.array(0, 3), 1)
    yield s(s.array(2, 3, dtype="int64"), 1, dtype="float32")


@softmax_backward.samples
@log_softmax_backward.samples
def _(s):
    yield s(s.array(2, 3), s.array(2, 3), 1)
    yield s(s.strided(2, 3), s.array(2, 3), 0)
    yield s(s.array(2, 3, 4, dtype="float64"), s.array(2, 3, 4, dtype="float64"), -2)


for each in (softmax, log_softmax):
    each.error(
        "IndexError", lambda s: s(s.array(2, 3), 2), contains=[each.name, "dim", "(2, 3)", "2"]
    )
    each.error(
        "IndexError", lambda s: s(s.array(2, 3), -3), contains=[each.name, "dim", "(2, 3)", "-3"]
    )
    each.error(
        "DTypeError",
        lambda s: s(s.array(2, 3, dtype="int64"), 1),
        contains=[each.name, "self", "int64"],
    )
    each.error(
        "DTypeError",
        lambda s: s(s.array(2, dtype="complex64"), 0),
        contains=[each.name, "self", "complex64"],
    )
for each in (softmax_backward, log_softmax_backward):
    each.error(
        "ShapeError",
        lambda s: s(s.array(2), s.array(3), 0),
        contains=[each.name, "grad", "(2,)", "(3,)"],
    )


softmin.reference(lambda self, dim, dtype=None: softmax(-self, dim, dtype=dtype))
softmin.samples(lambda s: iter([s(s.array(2, 3), 1), s(s.array(4), 0), s(s.strided(2, 3), -2)]))
softmin.error("IndexError", lambda s: s(s.array(2, 3), 2), contains=["dim", "(2, 3)", "2"])
