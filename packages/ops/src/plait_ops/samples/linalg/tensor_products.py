"""Test data of linalg/tensor_products: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.linalg.tensor_products import kron, tensordot_, tensordot_over_

kron.reference(lambda self, other: np.asarray(np.kron(self, other)))
kron.samples(
    lambda s: iter(
        [
            s(s.array(2, 3), s.array(2, 2)),
            s(s.array(3), s.array(2, 2)),
            s(s.array(2, dtype="int64"), s.array(3, dtype="int64")),
            s(s.array(0, 2), s.array(2, 2)),
            s(s.strided(2, 2), s.backwards(2)),
        ]
    )
)
kron.error("TypeError", lambda s: s(s.array(2), 3), contains=["kron", "other"])
tensordot_.reference(lambda self, other, dims=2: np.asarray(np.tensordot(self, other, dims)))


@tensordot_over_.reference
def _(self, other, dims_self, dims_other):
    for i, j in zip(dims_self, dims_other, strict=True):  # a size of 1 broadcasts
        if self.shape[i] == 1:
            other = other.sum(j, keepdims=True)
        elif other.shape[j] == 1:
            self = self.sum(i, keepdims=True)
    return np.asarray(np.tensordot(self, other, (list(dims_self), list(dims_other))))


tensordot_.samples(
    lambda s: iter(
        [
            s(s.array(2, 3, 4), s.array(3, 4, 2)).loosely(4),
            s(s.array(2, 3), s.array(3, 2), 1),
            s(s.array(2), s.array(3), 0),
            s(s.array(2, 0), s.array(0, 3), 1),
        ]
    )
)
tensordot_over_.samples(
    lambda s: iter(
        [
            s(s.array(2, 3, 4), s.array(4, 3, 2), [1, 2], [1, 0]).loosely(4),
            s(s.strided(2, 3), s.array(2, 4), [0], [-2]),
            s(s.array(1, 3), s.array(2, 1), [0, 1], [0, 1]).loosely(4),
        ]
    )
)
tensordot_.error(
    "ValueError", lambda s: s(s.array(2), s.array(2), 2), contains=["tensordot", "dims", "2"]
)
tensordot_over_.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(2, 3), [0], [1]),
    contains=["tensordot", "(2, 3)"],
)
