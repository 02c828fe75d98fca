"""Test data of linalg/products: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.linalg.products import (
    bilinear,
    cross,
    ger,
    inner,
    linalg_cross_,
    linalg_vecdot_,
    trace,
    vdot,
)

inner.reference(lambda self, other: np.asarray(np.inner(self, other)))
inner.samples(
    lambda s: iter(
        [
            s(s.array(3), s.array(3)),
            s(s.array(2, 3), s.array(4, 5, 3)),
            s(s.array(), s.array(2)),
            s(s.strided(2, 3), s.array(3)),
            s(s.array(2, 0), s.array(3, 0)),
        ]
    )
)
inner.error("ShapeError", lambda s: s(s.array(2), s.array(3)), contains=["inner", "(2,)", "(3,)"])
vdot.reference(lambda self, other: np.asarray(np.vdot(self, other)))
vdot.samples(
    lambda s: iter(
        [
            s(s.array(3), s.array(3)),
            s(s.array(3, dtype="complex64"), s.array(3, dtype="complex64")),
            s(s.array(3, dtype="int64"), s.array(3, dtype="int64")),
        ]
    )
)
vdot.error("ShapeError", lambda s: s(s.array(2), s.array(3)), contains=["(2,)", "(3,)"])
ger.reference(lambda self, vec2: np.outer(self, vec2))
ger.samples(lambda s: iter([s(s.array(3), s.array(2))]))
ger.error("ShapeError", lambda s: s(s.array(2, 2), s.array(2)), contains=["(2, 2)"])
trace.reference(lambda self: np.asarray(np.trace(self)).astype(np.sum(self[:1]).dtype))
trace.samples(
    lambda s: iter(
        [s(s.array(3, 3)), s(s.array(2, 4, dtype="int32")), s(s.strided(3, 2)), s(s.array(0, 2))]
    )
)
trace.error("ShapeError", lambda s: s(s.array(3)), contains=["trace", "`self`", "(3,)"])


@bilinear.reference
def _(input1, input2, weight, bias=None):
    result = np.einsum("...i,kij,...j->...k", input1, weight, input2)
    return (result if bias is None else result + bias).astype(input1.dtype)


bilinear.samples(
    lambda s: iter(
        [
            s(s.array(2, 3), s.array(2, 2), s.array(4, 3, 2), s.array(4)).loosely(4),
            s(s.array(3), s.array(2), s.array(4, 3, 2)).loosely(4),
            s(s.array(0, 3), s.array(0, 2), s.array(4, 3, 2)),
        ]
    )
)
bilinear.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(3, 2), s.array(4, 3, 2)),
    contains=["bilinear", "input1", "(2, 3)", "(3, 2)", "(4, 3, 2)"],
)


@linalg_cross_.reference
def _(self, other, dim=-1):
    return np.cross(self, other, axis=dim).astype(np.result_type(self, other))


@cross.reference
def _(self, other, dim=None):
    at = self.shape.index(3) if dim is None else dim
    return np.cross(self, other, axis=at)


@linalg_cross_.samples
def _(s):
    yield s(s.array(3), s.array(3))
    yield s(s.array(2, 3), s.array(2, 3))
    yield s(s.array(3, 4), s.strided(3, 4), dim=0)
    yield s(s.array(2, 3, dtype="int64"), s.array(2, 3, dtype="int64"))
    yield s(s.array(2, 1, 3), s.array(1, 4, 3))
    yield s(s.array(0, 3), s.array(0, 3))


cross.samples(
    lambda s: iter(
        [s(s.array(2, 3, 3), s.array(2, 3, 3)), s(s.array(3, 2, 3), s.array(3, 2, 3), -1)]
    )
)
linalg_cross_.error(
    "ShapeError",
    lambda s: s(s.array(2, 2), s.array(2, 2)),
    contains=["linalg_cross", "3 elements", "(2, 2)"],
)
linalg_cross_.error(
    "ShapeError",
    lambda s: s(s.array(3), s.array(1, 3)),
    contains=["linalg_cross", "dimensions", "(3,)", "(1, 3)"],
)
cross.error("ShapeError", lambda s: s(s.array(2), s.array(2)), contains=["cross", "`self`", "(2,)"])


@linalg_vecdot_.reference
def _(x, y, dim=-1):
    return np.asarray((np.moveaxis(x.conj(), dim, -1) * np.moveaxis(y, dim, -1)).sum(-1)).astype(
        x.dtype
    )


@linalg_vecdot_.samples
def _(s):
    yield s(s.array(4), s.array(4))
    yield s(s.array(2, 3), s.array(2, 3), dim=0)
    yield s(s.array(2, 1, 3), s.array(4, 3))
    yield s(s.array(2, 3, dtype="int32"), s.array(3, dtype="int32"))
    yield s(s.strided(2, 3), s.backwards(2, 3))
    yield s(s.array(3, dtype="complex64"), s.array(3, dtype="complex64"))
    yield s(s.array(2, 0), s.array(2, 0))


linalg_vecdot_.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(2)),
    contains=["linalg_vecdot", "dim", "(2, 3)", "(2,)"],
)
