"""Test data of views/permuting: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.views.permuting import movedim, permute, swapaxes, t, transpose

permute.reference(lambda self, dims: np.transpose(self, dims))


@permute.samples
def _(s):
    yield s(s.array(2, 3, 4), 2, 0, 1)
    yield s(s.array(2, 3), (-1, 0))
    yield s(s.backwards(2, 3), (1, 0))
    yield s(s.array(), ())
    yield s(s.array(0, 3), (1, 0))


permute.error(
    "ValueError", lambda s: s(s.array(2, 3), (0,)), contains=["permute", "dims", "(2, 3)", "(0,)"]
)
permute.error(
    "ValueError", lambda s: s(s.array(2, 3), (1, 1)), contains=["permute", "dims", "(1, 1)"]
)
permute.error(
    "IndexError", lambda s: s(s.array(2, 3), (0, 2)), contains=["permute", "dims", "(2, 3)", "2"]
)


transpose.reference(lambda self, dim0, dim1: np.swapaxes(self, dim0, dim1) if self.ndim else self)


@transpose.samples
def _(s):
    yield s(s.array(2, 3), 0, 1)
    yield s(s.array(2, 3, 4), -1, 0)
    yield s(s.array(2, 3), 1, 1)
    yield s(s.array(), 0, -1)


transpose.error(
    "IndexError", lambda s: s(s.array(2, 3), 0, 2), contains=["transpose", "dim1", "(2, 3)", "2"]
)
transpose.error(
    "IndexError", lambda s: s(s.array(2, 3), -3, 0), contains=["transpose", "dim0", "(2, 3)", "-3"]
)


swapaxes.reference(lambda self, axis0, axis1: np.swapaxes(self, axis0, axis1))
swapaxes.samples(lambda s: iter([s(s.array(2, 3), 0, 1), s(s.array(2, 3, 4), -1, 0)]))
swapaxes.error(
    "IndexError", lambda s: s(s.array(2, 3), 0, 2), contains=["transpose", "(2, 3)", "2"]
)


t.reference(lambda self: self.T)
t.samples(
    lambda s: iter(
        [s(s.array(2, 3)), s(s.array(3)), s(s.array()), s(s.backwards(2, 2)), s(s.array(0, 3))]
    )
)
t.error("ShapeError", lambda s: s(s.array(2, 3, 4)), contains=["t:", "self", "(2, 3, 4)"])
movedim.reference(lambda self, source, destination: np.moveaxis(self, source, destination))


@movedim.samples
def _(s):
    yield s(s.array(2, 3, 4), (0,), (-1,))
    yield s(s.array(2, 3, 4), (0, 1), (1, 0))
    yield s(s.array(2, 3, 4, 5), (-1, 0), (0, 2))
    yield s(s.array(2, 3, 4), (), ())


movedim.error(
    "ValueError",
    lambda s: s(s.array(2, 3), (0, 1), (0,)),
    contains=["movedim", "source", "destination"],
)
movedim.error(
    "ValueError",
    lambda s: s(s.array(2, 3), (0, 0), (0, 1)),
    contains=["movedim", "source", "(0, 0)"],
)
movedim.error(
    "IndexError", lambda s: s(s.array(2, 3), (2,), (0,)), contains=["movedim", "source", "(2, 3)"]
)
