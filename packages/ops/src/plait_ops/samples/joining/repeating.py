"""Test data of joining/repeating: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.joining.repeating import (
    repeat,
    repeat_counts,
    repeat_each,
    repeat_interleave,
    tile,
)

repeat.reference(lambda self, repeats: np.tile(self, repeats))
tile.reference(lambda self, dims: np.tile(self, dims))
repeat.samples(
    lambda s: iter(
        [
            s(s.array(2, 3), 2, 1),
            s(s.array(2), (3, 2)),
            s(s.array(), (2,)),
            s(s.array(2, 3), (0, 1)),
        ]
    )
)
tile.samples(
    lambda s: iter([s(s.array(2, 3), 2), s(s.array(2), (3, 2)), s(s.array(2, 2), (2, 1, 2))])
)
repeat.error(
    "ShapeError", lambda s: s(s.array(2, 3), (2,)), contains=["repeat", "repeats", "(2,)", "(2, 3)"]
)
repeat.error("ValueError", lambda s: s(s.array(2), (-1,)), contains=["repeat", "repeats", "(-1,)"])
repeat.error(
    "ShapeError", lambda s: s(s.array(1), (2**62, 4)), contains=["repeat", "repeats", "2**63"]
)
tile.error("ValueError", lambda s: s(s.array(2), (-1,)), contains=["repeat", "(-1,)"])
repeat_interleave.reference(lambda self, repeats, dim=None: np.repeat(self, repeats, dim))
repeat_interleave.samples(
    lambda s: iter(
        [
            s(s.array(2, 3), 2),
            s(s.array(2, 3), 3, 0, output_size=6),
            s(s.array(2, 3), 2, -1),
            s(s.array(2), 0),
        ]
    )
)
repeat_interleave.error(
    "ValueError", lambda s: s(s.array(2), -1), contains=["repeat_interleave", "repeats", "-1"]
)
repeat_interleave.error(
    "IndexError", lambda s: s(s.array(2), 2, 1), contains=["repeat_interleave", "dim", "(2,)"]
)
repeat_interleave.error(
    "ValueError",
    lambda s: s(s.array(2), 2, output_size=5),
    contains=["repeat_interleave", "output_size", "4", "5"],
)


@repeat_each.reference
def _(self, repeats, dim=None):
    return np.repeat(self, repeats.reshape(-1), dim if self.ndim else None)


repeat_counts.reference(lambda repeats: np.repeat(np.arange(len(repeats)), repeats))
repeat_each.samples(
    lambda s: iter(
        [
            s(s.array(3), np.array([2, 0, 1])),
            s(s.array(2, 3), np.array([2, 1, 3]), 1),
            s(s.array(2, 3), np.array([2]), 0),
            s(s.array(2, 2), np.array([1, 2, 0, 1])),
            s(s.array(2), np.array([1, 2], "int32"), 0, output_size=3),
        ]
    )
)
repeat_counts.samples(
    lambda s: iter([s(np.array([1, 0, 3])), s(s.indices(3, 0)), s(np.array([2]), output_size=2)])
)
repeat_each.error(
    "ShapeError",
    lambda s: s(s.array(3), s.indices(3, 2)),
    contains=["repeat_interleave", "repeats", "(2,)", "(3,)"],
)
repeat_each.error(
    "ValueError",
    lambda s: s(s.array(2), np.array([1, -1])),
    contains=["repeat_interleave", "repeats", "-1"],
)
repeat_counts.error(
    "ValueError",
    lambda s: s(np.array([1, 2]), output_size=4),
    contains=["repeat_interleave", "output_size", "3", "4"],
)
repeat_counts.error(
    "DTypeError", lambda s: s(s.array(2)), contains=["repeat_interleave", "repeats", "float32"]
)
