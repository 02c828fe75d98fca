"""Test data of views/flipping: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.views.flipping import flip, flip_view, fliplr, flipud, roll, roll_one, rot90


def _flip(self, dims):
    return np.flip(self, dims) if self.ndim and len(dims) else self


flip_view.reference(_flip)
flip.reference(_flip)
for each in (flip_view, flip):
    each.samples(
        lambda s: iter(
            [
                s(s.array(4), (0,)),
                s(s.array(2, 3), (0, -1)),
                s(s.array(2, 3), (1,)),
                s(s.strided(2, 3), (0,)),
                s(s.array(0, 2), (0,)),
            ]
        )
    )
    each.error(
        "IndexError", lambda s: s(s.array(2, 3), (2,)), contains=["flip", "dims", "(2, 3)", "2"]
    )
    each.error(
        "ValueError", lambda s: s(s.array(2, 3), (1, -1)), contains=["flip", "dims", "(1, -1)"]
    )


roll.reference(
    lambda self, shifts, dims=None: np.roll(self, shifts if dims is not None else shifts[0], dims)
)
roll_one.reference(lambda self, shift, dim: np.roll(self, shift, dim))
roll.samples(
    lambda s: iter(
        [
            s(s.array(5), (2,)),
            s(s.array(2, 3), (1, -1), (0, 1)),
            s(s.array(2, 3), (4,)),
            s(s.array(0), (1,), (0,)),
        ]
    )
)
roll_one.samples(lambda s: iter([s(s.array(5), 2, 0), s(s.array(2, 3), -1, -1)]))
roll.error(
    "ValueError",
    lambda s: s(s.array(2, 3), (1, 2), (0,)),
    contains=["roll", "shifts", "dims", "(1, 2)", "(0,)"],
)
roll_one.error("IndexError", lambda s: s(s.array(3), 1, 1), contains=["roll_one", "dims", "(3,)"])


def _flipped(operator, reference):
    name = operator.schema.base
    operator.reference(lambda self: reference(self))
    operator.samples(lambda s: iter([s(s.array(3, 4)), s(s.strided(2, 3, 4)), s(s.array(0, 3))]))
    operator.error("ShapeError", lambda s: s(s.array()), contains=[name, "self", "()"])


_flipped(fliplr, np.fliplr)
_flipped(flipud, np.flipud)
rot90.reference(lambda self, k=1, dims=(0, 1): np.rot90(self, k, dims))
rot90.samples(
    lambda s: iter(
        [*[s(s.array(2, 3), k) for k in (-1, 0, 1, 2, 3, 4)], s(s.array(2, 3, 4), 1, (2, 0))]
    )
)
rot90.error("ShapeError", lambda s: s(s.array(3)), contains=["rot90", "self", "(3,)"])
rot90.error(
    "ValueError", lambda s: s(s.array(2, 3), 1, (1, -1)), contains=["rot90", "dims", "(1, -1)"]
)
