"""Test data of indexing/scattering: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.samples.indexing.gathering import gather_errors
from plait_ops.specs.indexing.scattering import pad_end, scatter_, scatter_add_, scatter_value_


@pad_end.reference
def _(self, size):
    return np.pad(self, [(0, n - m) for n, m in zip(size, self.shape, strict=True)])


pad_end.samples(
    lambda s: iter([s(s.array(2, 3), (2, 5)), s(s.array(2, 3), (3, 3)), s(s.array(1), (4,))])
)
pad_end.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), (1, 3)),
    contains=["pad_end", "size", "(1, 3)", "(2, 3)"],
)


def _put(self, dim, index, src, add):
    result = self.copy()
    if not self.ndim:
        result[...] = result + src if add else src
        return result
    where = list(np.indices(index.shape))
    where[dim] = index
    values = src[tuple(slice(0, n) for n in index.shape)] if isinstance(src, np.ndarray) else src
    if add:
        np.add.at(result, tuple(where), values)
    else:
        result[tuple(where)] = values
    return result


scatter_.reference(lambda self, dim, index, src: _put(self, dim, index, src, False))
scatter_value_.reference(lambda self, dim, index, value: _put(self, dim, index, value, False))
scatter_add_.reference(lambda self, dim, index, src: _put(self, dim, index, src, True))


def _unique(s, rows, columns, n):
    """Draw indices along dim 1 that are all different in each row."""
    return np.stack([s.rng.permutation(n)[:columns] for _ in range(rows)])


@scatter_.samples
def _(s):
    yield s(s.array(3, 5), 1, _unique(s, 3, 2, 5), s.array(3, 2))
    yield s(s.array(3, 5), -1, _unique(s, 2, 5, 5), s.array(4, 6))
    yield s(s.strided(3, 5), 1, _unique(s, 3, 4, 5), s.strided(3, 4))
    yield s(s.array(5, dtype="int64"), 0, np.array([4, -5]), s.array(2, dtype="int64"))
    yield s(s.array(3, 5), 1, s.indices(5, 3, 0), s.array(3, 0))


@scatter_value_.samples
def _(s):
    yield s(s.array(3, 5), 1, s.indices(5, 3, 2), 1.5)
    yield s(s.array(3, 5, dtype="int64"), 0, s.indices(3, 2, 5), 7)


@scatter_add_.samples
def _(s):
    yield s(s.array(3, 5), 1, s.indices(5, 3, 8), s.array(3, 8))
    yield s(s.array(3, 5), 0, s.indices(3, 7, 2, negative=True), s.array(8, 4))
    yield s(s.strided(3, 5), 1, s.indices(5, 3, 4, dtype="int32"), s.strided(3, 4))
    yield s(s.array(5, dtype="int64"), 0, s.indices(5, 9), s.array(9, dtype="int64"))
    yield s(
        s.array(3, 5, dtype="complex64"), 1, s.indices(5, 3, 8), s.array(3, 8, dtype="complex64")
    )


gather_errors(scatter_, lambda s: s.array(2, 4))
gather_errors(scatter_add_, lambda s: s.array(2, 4))
gather_errors(scatter_value_, lambda s: 1.0)
for each in (scatter_, scatter_add_):
    each.error(
        "ShapeError",
        lambda s: s(s.array(2, 3), 0, s.indices(2, 2, 3), s.array(1, 3)),
        contains=["index", "src", "(2, 3)", "(1, 3)"],
    )
    each.error(
        "DTypeError",
        lambda s: s(s.array(2, 3), 0, s.indices(2, 2, 3), s.array(2, 3, dtype="int64")),
        contains=["self", "src", "float32", "int64"],
    )
