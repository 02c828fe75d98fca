"""Test data of views/splitting: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.views.splitting import chunk, split, split_sizes, unbind


@split.reference
def _(self, split_size, dim=0):
    n = self.shape[dim]
    starts = range(0, max(n, 1), max(split_size, 1))
    return [np.take(self, range(i, min(i + split_size, n)), axis=dim) for i in starts]


@split_sizes.reference
def _(self, split_sizes, dim=0):
    return np.split(self, np.cumsum(split_sizes)[:-1], axis=dim)


split.samples(
    lambda s: iter(
        [s(s.array(5), 2), s(s.array(2, 6), 3, -1), s(s.array(2, 3), 5), s(s.array(0, 3), 2)]
    )
)
split_sizes.samples(
    lambda s: iter([s(s.array(5), (1, 4)), s(s.array(2, 6), (1, 2, 3), -1), s(s.array(3), (0, 3))])
)
split.error("ValueError", lambda s: s(s.array(3), 0), contains=["split", "split_size", "0", "3"])
split.error("ValueError", lambda s: s(s.array(3), -1), contains=["split", "split_size", "-1"])
split.error("IndexError", lambda s: s(s.array(3), 1, 1), contains=["split", "dim", "(3,)"])
split_sizes.error(
    "ValueError", lambda s: s(s.array(3), (1, 1)), contains=["split", "split_sizes", "(1, 1)", "3"]
)
split_sizes.error(
    "ValueError", lambda s: s(s.array(3), (4, -1)), contains=["split", "split_sizes", "(4, -1)"]
)


@chunk.reference
def _(self, chunks, dim=0):
    n = self.shape[dim]
    size = -(-n // chunks)
    return [
        np.take(self, range(i, min(i + size, n)), axis=dim)
        for i in range(0, max(n, 1), max(size, 1))
    ]


chunk.samples(lambda s: iter([s(s.array(5), 2), s(s.array(2, 6), 3, 1), s(s.array(2), 4)]))
chunk.error("ValueError", lambda s: s(s.array(3), 0), contains=["chunk", "chunks", "0"])
unbind.reference(lambda self, dim=0: [np.take(self, i, axis=dim) for i in range(self.shape[dim])])
unbind.samples(lambda s: iter([s(s.array(3)), s(s.array(2, 3), -1), s(s.array(0, 2))]))
unbind.error("IndexError", lambda s: s(s.array()), contains=["unbind", "self", "()"])
unbind.error("IndexError", lambda s: s(s.array(2), 1), contains=["unbind", "dim", "(2,)"])
