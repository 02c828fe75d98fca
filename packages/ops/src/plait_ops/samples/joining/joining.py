"""Test data of joining/joining: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.joining.joining import cat, concat, concatenate
from plait_ops.words import promote_all


@cat.reference
def _(tensors, dim=0):
    non_empty = [t for t in tensors if t.shape != (0,)] or list(tensors)
    dtype = promoted(tensors)
    return np.concatenate([t.astype(dtype) for t in non_empty], axis=dim)


def promoted(tensors):
    """Return the NumPy dtype that the tensors promote to."""
    return np.dtype(promote_all("tensors", tensors))


@cat.samples
def _(s):
    yield s([s.array(2, 3), s.array(4, 3)])
    yield s([s.array(2, 3), s.array(2, 1), s.array(2, 0)], 1)
    yield s([s.strided(2, 3), s.backwards(2, 3)], -1)
    yield s([s.array(3, dtype="int64"), s.array(2, dtype="float32")])
    yield s([s.array(3, dtype="bool")])
    yield s([s.array(0), s.array(2, 3)], 1)
    yield s([s.array(2, 2, dtype="complex64"), s.array(1, 2, dtype="complex64")])
    yield s([s.array(1, 2, dtype="float16"), s.array(1, 2, dtype="float16")], 0)
    yield s([s.array(2, 2)] * 70, 0)


cat.error("ValueError", lambda s: s([]), contains=["cat", "tensors", "empty"])
cat.error(
    "ShapeError",
    lambda s: s([s.array(2, 3), s.array(2, 4)]),
    contains=["cat", "tensors", "(2, 3)", "(2, 4)"],
)
cat.error(
    "ShapeError",
    lambda s: s([s.array(2, 3), s.array(3)]),
    contains=["cat", "tensors", "(2, 3)", "(3,)"],
)
cat.error("ShapeError", lambda s: s([s.array(), s.array()]), contains=["cat", "tensors", "()"])
cat.error("IndexError", lambda s: s([s.array(2, 3)], 2), contains=["cat", "dim", "(2, 3)", "2"])
cat.error("TypeError", lambda s: s([s.array(2, 3), 1]), contains=["cat", "tensors"])
concat.reference(lambda tensors, dim=0: cat(tensors, dim))
concat.samples(
    lambda s: iter([s([s.array(2, 3), s.array(4, 3)]), s([s.array(2, 3), s.array(2, 1)], -1)])
)
concat.error("ValueError", lambda s: s([]), contains=["cat", "tensors"])


concatenate.reference(
    lambda tensors, dim=0: np.concatenate([t.astype(promoted(tensors)) for t in tensors], dim)
)
concatenate.samples(
    lambda s: iter([s([s.array(2, 3), s.array(4, 3)]), s([s.array(2, 3), s.array(2, 1)], -1)])
)
concatenate.error("ValueError", lambda s: s([]), contains=["cat", "tensors"])
