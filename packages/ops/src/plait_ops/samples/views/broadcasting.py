"""Test data of views/broadcasting: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.views.broadcasting import broadcast_tensors_, broadcast_to, expand, sum_to_size


@expand.reference
def _(self, size):
    lead = len(size) - self.ndim
    return np.broadcast_to(
        self, [self.shape[i - lead] if n == -1 else n for i, n in enumerate(size)]
    )


@expand.samples
def _(s):
    yield s(s.array(3, 1), 3, 4)
    yield s(s.array(3), (2, 3))
    yield s(s.array(), (2, 2))
    yield s(s.array(2, 1), (-1, 3))
    yield s(s.array(1), (0,))
    yield s(s.array(2, 3), (4, 2, 3))


expand.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), (2, 4)),
    contains=["expand", "size", "(2, 4)", "(2, 3)"],
)
expand.error(
    "ShapeError", lambda s: s(s.array(2, 3), (3,)), contains=["expand", "size", "(3,)", "(2, 3)"]
)
expand.error(
    "ShapeError", lambda s: s(s.array(3), (-1, 3)), contains=["expand", "size", "(-1, 3)", "(3,)"]
)
expand.error(
    "ShapeError", lambda s: s(s.array(1), (2**62, 4)), contains=["expand", "size", "2**63"]
)
expand.error(
    "ShapeError", lambda s: s(s.array(1), (1,) * 65), contains=["expand", "size", "65", "64"]
)


broadcast_to.reference(lambda self, size: np.broadcast_to(self, size))
broadcast_to.samples(lambda s: iter([s(s.array(3), (2, 3)), s(s.array(), (2,))]))
broadcast_to.error(
    "ShapeError", lambda s: s(s.array(2, 3), (2, 4)), contains=["expand", "(2, 4)", "(2, 3)"]
)


@sum_to_size.reference
def _(self, size):
    lead = self.ndim - len(size)
    dims = tuple(
        i for i in range(self.ndim) if i < lead or (size[i - lead] == 1 and self.shape[i] != 1)
    )
    if not len(size) and self.dtype.kind in "biu":
        return np.asarray(self.sum(dtype="int64"))
    return (self.sum(dims, keepdims=True, dtype=self.dtype) if dims else self).reshape(size)


sum_to_size.samples(
    lambda s: iter(
        [
            s(s.array(2, 3), 1, 3),
            s(s.array(2, 3), (3,)),
            s(s.array(2, 3), 2, 3),
            s(s.array(2), ()),
            s(s.array(2, dtype="bool"), ()),
        ]
    )
)
sum_to_size.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), (2,)),
    contains=["sum_to_size", "size", "(2,)", "(2, 3)"],
)


broadcast_tensors_.reference(lambda tensors: [np.array(x) for x in np.broadcast_arrays(*tensors)])
broadcast_tensors_.samples(
    lambda s: iter(
        [
            s([s.array(2, 1), s.array(3)]),
            s([s.array()]),
            s([s.array(1, 2), s.array(), s.array(4, 1)]),
        ]
    )
)
broadcast_tensors_.error(
    "ShapeError",
    lambda s: s([s.array(2), s.array(3)]),
    contains=["broadcast_tensors", "tensors", "(2,)", "(3,)"],
)
