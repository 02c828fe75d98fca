"""Test data of reduction/norms: references in NumPy, sample calls, errors."""

import math

import numpy as np

from plait_ops.specs.reduction.norms import logsumexp, norm, norm_name


def _axes(dim):
    if dim is None or (isinstance(dim, (tuple, list)) and not len(dim)):
        return None
    return tuple(dim) if isinstance(dim, (tuple, list)) else dim


@norm.reference
def _(self, p=2, dim=None, keepdim=False, dtype=None):
    x = np.abs(self.astype(dtype or self.dtype))
    over = {"axis": _axes(dim), "keepdims": keepdim}
    with np.errstate(all="ignore"):
        if p == 0:
            result = (x != 0).sum(**over)
        elif math.isinf(p):
            result = x.max(**over) if p > 0 else x.min(**over)
        else:
            result = (x.astype("float64") ** p).sum(**over) ** (1 / p)
    return np.asarray(result).astype(x.dtype)


@norm.samples
def _(s):
    for p in (2, 1, 0, 3, 2.5, 0.5, -1, math.inf, -math.inf):
        yield s(s.distinct(3, 4), p)
        yield s(s.distinct(3, 4), p, 1)
    yield s(s.array(2, 3, 4), 2, (0, -1), True)
    yield s(s.array(2, 3, dtype="float64"), 2.0, ())
    yield s(s.array(2, 3, dtype="int64"), 2, dtype="float32").without_gradient()
    yield s(s.strided(3, 4), 3, 0)
    yield s(s.array(0, 3), 2, 0).without_gradient()
    yield s(s.array(), 2)
    yield s(s.array(0), 1)
    for p in (2, 1, 0, 3, math.inf, -math.inf):
        yield s(s.array(3, 4, dtype="complex64"), p, 1)


norm.error("IndexError", lambda s: s(s.array(2, 3), 2, 2), contains=["norm", "dim", "(2, 3)", "2"])
norm.error(
    "ValueError", lambda s: s(s.array(2, 3), 2, (1, -1)), contains=["norm", "dim", "(1, -1)"]
)
norm.error("DTypeError", lambda s: s(s.array(2, dtype="int64")), contains=["norm", "self", "int64"])
norm.error(
    "DTypeError", lambda s: s(s.array(2), dtype="int64"), contains=["norm", "dtype", "int64"]
)
norm.error(
    "ShapeError",
    lambda s: s(s.array(0, 3), math.inf, 0),
    contains=["norm", "self", "(0, 3)", "inf"],
)


@norm_name.reference
def _(self, p, dim=None, keepdim=False, dtype=None):
    if p == "nuc":
        return np.linalg.norm(self, "nuc", _axes(dim), keepdim).astype(self.dtype)
    return norm(self, 2, dim, keepdim, dtype=dtype)


norm_name.samples(
    lambda s: iter(
        [
            s(s.array(3, 4), "fro"),
            s(s.array(2, 3, 4), "fro", (1, 2), True),
            s(s.array(3, 4), "nuc"),
            s(s.array(2, 3, 4), "nuc", (0, 2), True),
        ]
    )
)
norm_name.error("ValueError", lambda s: s(s.array(2), "max"), contains=["norm", "p", "max"])


for each in (logsumexp,):
    each.error(
        "IndexError", lambda s: s(s.array(2, 3), 2), contains=["logsumexp", "dim", "(2, 3)", "2"]
    )
    each.error(
        "ValueError", lambda s: s(s.array(2, 3), (1, -1)), contains=["logsumexp", "dim", "(1, -1)"]
    )


@logsumexp.reference
def _(self, dim, keepdim=False):
    if self.dtype.kind == "c":
        over = {"axis": _axes(dim) if self.ndim else None, "keepdims": keepdim}
        return np.asarray(np.log(np.exp(self.astype("complex128")).sum(**over))).astype(self.dtype)
    if self.dtype.kind in "bui":
        self = self.astype("float32")
    with np.errstate(all="ignore"):
        result = np.logaddexp.reduce(
            self.astype("float64").reshape(self.shape or (1,)), axis=_axes(dim), keepdims=keepdim
        )
    return np.asarray(result).reshape(() if not self.ndim else np.shape(result)).astype(self.dtype)


@logsumexp.samples
def _(s):
    yield s(s.array(3, 4, dtype="int64"), 1)
    yield s(s.array(3, 4, dtype="bool"), (0, 1), True)
    yield s(s.array(3, 4, dtype="complex64"), 1)
    yield s(s.array(), 0)
    yield s(s.array(2, 0), 1).without_gradient()
    yield s(s.distinct(6, 8)[::-2, ::2].T, (1,), keepdim=True)
    yield s(s.array(3, 4) + np.float32(500), 1)
    yield s(
        np.array([[-np.inf, -np.inf], [-np.inf, 0], [np.inf, 0]], "float32"), 1
    ).without_gradient()
    yield s(np.array([[np.nan, 1.0]], "float32"), 1).without_gradient()
    yield s(s.array(2, 3, 4), (0, 2))
    yield s(s.array(3, 4), ())
