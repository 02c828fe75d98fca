"""Test data of linalg/linear: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.linalg.linear import addbmm, addmm, addmv, addr, baddbmm, linear

addmm.reference(
    lambda self, mat1, mat2, beta=1, alpha=1: (beta * self + alpha * (mat1 @ mat2)).astype(
        self.dtype
    )
)


@addmm.samples
def _(s):
    yield s(s.array(3, 5), s.array(3, 4), s.array(4, 5))
    yield s(s.array(5), s.array(3, 4), s.array(4, 5), beta=0.5, alpha=2)
    yield s(s.array(), s.strided(3, 4), s.array(5, 4).T)
    yield s(
        s.array(3, 1, dtype="int64"),
        s.array(3, 4, dtype="int64"),
        s.array(4, 5, dtype="int64"),
        beta=2,
    )
    yield s(s.array(3, 5), s.array(3, 0), s.array(0, 5))
    z = [s.array(*shape, dtype="complex64") for shape in ((3, 5), (3, 4), (4, 5))]
    yield s(*z)
    yield s(*z, beta=1j, alpha=0.5 - 2j)


addmm.error(
    "ShapeError",
    lambda s: s(s.array(2, 2), s.array(2, 3), s.array(2, 2)),
    contains=["addmm", "mat1", "mat2", "(2, 3)", "(2, 2)"],
)
addmm.error(
    "ShapeError",
    lambda s: s(s.array(3), s.array(2, 3), s.array(3, 2)),
    contains=["addmm", "self", "(3,)", "(2, 2)"],
)
addmm.error(
    "DTypeError",
    lambda s: s(s.array(2), s.array(2, 3), s.array(3, 2), alpha=1j),
    contains=["addmm", "alpha", "real", "float32"],
)
addmm.error(
    "DTypeError",
    lambda s: s(s.array(2), s.array(2, 3, dtype="float64"), s.array(3, 2)),
    contains=["addmm", "self", "mat1", "float32", "float64"],
)


@baddbmm.reference
def _(self, batch1, batch2, beta=1, alpha=1):
    if self.dtype.kind in "iu":
        beta, alpha = int(beta), int(alpha)
    return (beta * self + alpha * (batch1 @ batch2)).astype(self.dtype)


baddbmm.samples(
    lambda s: iter(
        [
            s(s.array(2, 3, 5), s.array(2, 3, 4), s.array(2, 4, 5)),
            s(s.array(5), s.array(2, 3, 4), s.array(2, 4, 5), beta=0.5, alpha=2),
            s(s.array(5), s.array(2, 3, 4), s.array(2, 4, 5), beta=0),
            s(*[s.array(*n, dtype="int64") for n in ((2,), (2, 1, 3), (2, 3, 2))], beta=1.5),
        ]
    )
)
baddbmm.error(
    "ShapeError",
    lambda s: s(s.array(1), s.array(2, 3, 4), s.array(2, 3, 5)),
    contains=["bmm", "(2, 3, 4)", "(2, 3, 5)"],
)


linear.reference(lambda input, weight, bias=None: input @ weight.T + (0 if bias is None else bias))


@linear.samples
def _(s):
    yield s(s.array(3, 4), s.array(5, 4), s.array(5))
    yield s(s.array(3, 4), s.array(5, 4))
    yield s(s.array(4), s.array(5, 4), s.array(5))
    yield s(s.array(2, 3, 4), s.array(5, 4), s.array(5))
    yield s(s.strided(3, 4), s.strided(5, 4), s.strided(5))
    yield s(
        s.array(3, 4, dtype="float64"), s.array(5, 4, dtype="float64"), s.array(5, dtype="float64")
    )
    yield s(s.array(0, 4), s.array(5, 4), s.array(5))
    yield s(s.array(3, 0), s.array(5, 0), s.array(5))
    yield s(s.array(33, 100), s.array(65, 100), s.array(65)).loosely(4)
    yield s(*[s.array(*n, dtype="int64") for n in ((2, 3), (4, 3), (4,))])


linear.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(4, 2)),
    contains=["linear", "input", "weight", "(2, 3)", "(4, 2)"],
)
linear.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(4, 3), s.array(3)),
    contains=["linear", "bias", "(4,)", "(3,)"],
)
linear.error(
    "ShapeError", lambda s: s(s.array(), s.array(4, 3)), contains=["linear", "input", "()"]
)
linear.error(
    "ShapeError", lambda s: s(s.array(3), s.array(3)), contains=["linear", "weight", "(3,)"]
)
linear.error(
    "DTypeError",
    lambda s: s(s.array(2, 3), s.array(4, 3, dtype="float64")),
    contains=["linear", "weight", "float32", "float64"],
)
linear.error(
    "DTypeError",
    lambda s: s(s.array(2, 3, dtype="bool"), s.array(4, 3, dtype="bool")),
    contains=["linear", "input", "bool"],
)


def _added(self, product, beta, alpha):
    if self.dtype.kind in "biu":
        beta, alpha = int(beta), int(alpha)
    result = (alpha * product).astype(self.dtype)
    return result if beta == 0 else (beta * self + result).astype(self.dtype)


addmv.reference(
    lambda self, mat, vec, beta=1, alpha=1: _added(self, np.matmul(mat, vec), beta, alpha)
)
addr.reference(
    lambda self, vec1, vec2, beta=1, alpha=1: _added(self, np.outer(vec1, vec2), beta, alpha)
)
addbmm.reference(
    lambda self, batch1, batch2, beta=1, alpha=1: _added(
        self, np.matmul(batch1, batch2).sum(0), beta, alpha
    )
)
addmv.samples(
    lambda s: iter(
        [
            s(s.array(3), s.array(3, 2), s.array(2)),
            s(s.array(3), s.array(3, 2), s.array(2), beta=0.5, alpha=2.0),
            s(s.np.full(3, s.np.nan, "float32"), s.array(3, 2), s.array(2), beta=0),
            s(
                s.array(2, dtype="int64"),
                s.array(2, 2, dtype="int64"),
                s.array(2, dtype="int64"),
                beta=2,
            ),
            s(*[s.array(*n, dtype="int64") for n in ((2,), (2, 2), (2,))], beta=0.5, alpha=2.7),
        ]
    )
)
addr.samples(
    lambda s: iter(
        [
            s(s.array(3, 2), s.array(3), s.array(2)),
            s(s.array(3, 2), s.array(3), s.array(2), beta=0.5, alpha=2.0),
            s(s.array(2), s.array(3), s.array(2), beta=0.5),
            s(*[s.array(*n, dtype="bool") for n in ((3, 2), (3,), (2,))], beta=3, alpha=2),
            s(
                *[s.array(*n, dtype="complex64") for n in ((3, 2), (3,), (2,))],
                beta=0.4 + 0.6j,
                alpha=2j,
            ),
        ]
    )
)
addbmm.samples(
    lambda s: iter(
        [
            s(s.array(3, 2), s.array(2, 3, 4), s.array(2, 4, 2)).loosely(4),
            s(s.array(3, 2), s.array(2, 3, 4), s.array(2, 4, 2), beta=0.5, alpha=2.0).loosely(4),
            s(s.array(3, 2), s.array(0, 3, 4), s.array(0, 4, 2)),
            s(*[s.array(*n, dtype="int64") for n in ((3, 2), (2, 3, 4), (2, 4, 2))], alpha=1.5),
        ]
    )
)
addmv.error(
    "ShapeError", lambda s: s(s.array(3), s.array(3, 2), s.array(3)), contains=["(3, 2)", "(3,)"]
)
addr.error("ShapeError", lambda s: s(s.array(3, 2), s.array(3, 1), s.array(2)), contains=["(3, 1)"])
addbmm.error(
    "ShapeError",
    lambda s: s(s.array(3, 2), s.array(2, 3, 4), s.array(2, 3, 2)),
    contains=["(2, 3, 4)", "(2, 3, 2)"],
)
