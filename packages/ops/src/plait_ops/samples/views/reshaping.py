"""Test data of views/reshaping: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.views.reshaping import (
    adjoint,
    expand_as,
    moveaxis,
    ravel,
    reshape_as,
    swapdims,
    unflatten,
    view_as,
)


def _view(operator, reference, samples):
    operator.reference(reference)
    operator.samples(samples)


_view(
    ravel,
    lambda self: self.reshape(-1),
    lambda s: iter([s(s.array(2, 3)), s(s.array()), s(s.strided(2, 3)), s(s.array(0, 2))]),
)

_view(
    expand_as,
    lambda self, other: np.broadcast_to(self, other.shape),
    lambda s: iter([s(s.array(3), s.array(2, 3)), s(s.array(2, 1), s.array(2, 4))]),
)

_view(
    view_as,
    lambda self, other: self.reshape(other.shape),
    lambda s: iter([s(s.array(6), s.array(2, 3)), s(s.array(2, 2), s.array(4))]),
)

_view(
    reshape_as,
    lambda self, other: self.reshape(other.shape),
    lambda s: iter([s(s.strided(2, 3), s.array(6)), s(s.array(2, 2), s.array(4))]),
)

_view(
    swapdims,
    lambda self, dim0, dim1: np.swapaxes(self, dim0, dim1),
    lambda s: iter([s(s.array(2, 3), 0, 1), s(s.array(2, 3, 4), -1, 0)]),
)

_view(
    moveaxis,
    lambda self, source, destination: np.moveaxis(self, source, destination),
    lambda s: iter([s(s.array(2, 3, 4), 0, -1), s(s.array(2, 3, 4), (0, 1), (2, 0))]),
)

_view(
    adjoint,
    lambda self: np.conj(np.swapaxes(self, -1, -2)),
    lambda s: iter([s(s.array(2, 3)), s(s.array(2, 3, 4)), s(s.array(2, 3, dtype="complex64"))]),
)

_view(
    unflatten,
    lambda self, dim, sizes: self.reshape(
        self.shape[: dim % self.ndim] + tuple(sizes) + self.shape[dim % self.ndim + 1 :]
    ),
    lambda s: iter(
        [s(s.array(4, 6), 1, (2, 3)), s(s.array(6), 0, (-1, 2)), s(s.strided(4, 3), -2, (2, 2))]
    ),
)


ravel.error("TypeError", lambda s: s("a"), contains=["ravel", "self"])
expand_as.error(
    "ShapeError", lambda s: s(s.array(3), s.array(2)), contains=["expand", "(2,)", "(3,)"]
)
view_as.error("ShapeError", lambda s: s(s.array(3), s.array(2)), contains=["view", "(2,)", "(3,)"])
reshape_as.error(
    "ShapeError", lambda s: s(s.array(3), s.array(2)), contains=["reshape", "(2,)", "(3,)"]
)
swapdims.error("IndexError", lambda s: s(s.array(3), 0, 1), contains=["transpose", "(3,)"])
moveaxis.error("IndexError", lambda s: s(s.array(3), 1, 0), contains=["movedim", "(3,)"])
adjoint.error("ShapeError", lambda s: s(s.array(3)), contains=["adjoint", "self", "(3,)"])
unflatten.error(
    "ShapeError", lambda s: s(s.array(6), 0, (4, 2)), contains=["unflatten", "sizes", "(4, 2)", "6"]
)
unflatten.error(
    "IndexError", lambda s: s(s.array(6), 1, (6,)), contains=["unflatten", "dim", "(6,)"]
)
