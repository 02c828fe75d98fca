"""Test data of views/diagonals: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.views.diagonals import (
    diag,
    diag_embed_,
    diagflat,
    diagonal,
    diagonal_backward,
    linalg_diagonal,
)


@diag_embed_.reference
def _(self, offset=0, dim1=-2, dim2=-1):
    n = self.shape[-1] + abs(offset)
    result = np.zeros((*self.shape[:-1], n, n), self.dtype)
    line = np.diagonal(result, offset, -2, -1)
    line.setflags(write=True)
    line[...] = self
    return np.moveaxis(result, (-2, -1), (dim1, dim2))


@diag_embed_.samples
def _(s):
    yield s(s.array(3))
    yield s(s.array(2, 3), 1)
    yield s(s.array(2, 3), -2, 0, 2)
    yield s(s.strided(2, 3), 0, -1, 0)
    yield s(s.array(3, dtype="complex64"))
    yield s(s.array(0))


diag_embed_.error("ShapeError", lambda s: s(s.array()), contains=["diag_embed", "self", "()"])
diag_embed_.error(
    "ValueError", lambda s: s(s.array(3), 0, 1, -1), contains=["diag_embed", "dim1", "dim2"]
)
diag_embed_.error(
    "IndexError", lambda s: s(s.array(3), 0, 0, 2), contains=["diag_embed", "dim2", "2"]
)


diag.reference(lambda self, diagonal=0: np.diag(self, diagonal))
diagflat.reference(lambda self, offset=0: np.diagflat(self, offset))
diag.samples(
    lambda s: iter([s(s.array(3)), s(s.array(3, 4), 1), s(s.array(3, 4), -1), s(s.array(2), -2)])
)
diagflat.samples(lambda s: iter([s(s.array(2, 2)), s(s.array(), 1), s(s.array(3), -1)]))
diag.error("ShapeError", lambda s: s(s.array(2, 2, 2)), contains=["diag", "self", "(2, 2, 2)"])
diagflat.error(
    "ValueError", lambda s: s(s.array(2), 2**40), contains=["diag_embed", "offset", str(2**40)]
)


@diagonal_backward.reference
def _(grad, size, offset, dim1, dim2):
    result = np.zeros(size, grad.dtype)
    d = np.diagonal(result, offset, dim1, dim2)
    d.setflags(write=True)
    d[...] = grad
    return result


diagonal.reference(lambda self, offset=0, dim1=0, dim2=1: np.diagonal(self, offset, dim1, dim2))
diagonal.samples(
    lambda s: iter(
        [
            s(s.array(3, 4)),
            s(s.array(3, 4), 1),
            s(s.array(3, 4), -2),
            s(s.array(2, 3, 4), 0, -1, 0),
            s(s.array(2, 2), 5),
        ]
    )
)
diagonal_backward.samples(
    lambda s: iter([s(s.array(3), (3, 4), 0, 0, 1), s(s.array(2), (3, 4), 2, 0, 1)])
)
diagonal.error("ShapeError", lambda s: s(s.array(3)), contains=["diagonal", "self", "(3,)"])
diagonal.error(
    "ValueError", lambda s: s(s.array(3, 4), 0, 1, -1), contains=["diagonal", "dim1", "dim2"]
)
diagonal.error(
    "IndexError", lambda s: s(s.array(3, 4), 0, 0, 2), contains=["diagonal", "dim2", "(3, 4)", "2"]
)
diagonal_backward.error(
    "ShapeError", lambda s: s(s.array(3), (-1, 3), 0, 0, 1), contains=["diagonal_backward", "-1"]
)


linalg_diagonal.reference(lambda A, offset=0, dim1=-2, dim2=-1: np.diagonal(A, offset, dim1, dim2))
linalg_diagonal.samples(
    lambda s: iter([s(s.array(2, 3, 4)), s(s.array(2, 3, 4), offset=1, dim1=0, dim2=2)])
)
linalg_diagonal.error("ShapeError", lambda s: s(s.array(3)), contains=["diagonal", "(3,)"])
