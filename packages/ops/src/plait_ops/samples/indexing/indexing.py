"""Test data of indexing/indexing: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.indexing.indexing import (
    index_,
    index_columns_,
    index_put_,
    index_put_tensors,
    index_tensors_,
    index_tensors_backward,
    unravel_index,
)


def _columns(self, indices):
    result = []
    for each in indices:
        if each is not None and each.dtype == bool:
            result.extend(np.nonzero(each))
        else:
            result.append(each)
    return result


index_columns_.reference(_columns)
index_columns_.samples(
    lambda s: iter(
        [
            s(s.array(3, 4), [s.array(3, 4, dtype="bool")]),
            s(s.array(3, 4), [s.indices(3, 2), s.array(4, dtype="bool")]),
        ]
    )
)
index_columns_.error(
    "IndexError",
    lambda s: s(s.array(3), [s.array(4, dtype="bool")]),
    contains=["mask", "(4,)", "(3,)"],
)


def _key(indices):
    return tuple(slice(None) if each is None else each for each in indices)


@index_tensors_backward.reference
def _(grad, indices, size):
    result = np.zeros(size, grad.dtype)
    np.add.at(result, _key(indices), grad)
    return result


index_.reference(lambda self, indices: np.array(self[_key(indices)]))
index_tensors_.reference(lambda self, indices: np.array(self[_key(indices)]))


@index_tensors_.samples
@index_.samples
def _(s):
    yield s(s.array(4, 5), [s.indices(4, 3)])
    yield s(s.array(4, 5), [None, s.indices(5, 3)])
    yield s(s.array(4, 5), [s.indices(4, 3, negative=True), s.indices(5, 3, negative=True)])
    yield s(s.array(4, 5, 6), [s.indices(4, 2, 1), s.indices(5, 3)])
    yield s(s.array(4, 5, 6), [s.indices(4, 2), None, s.indices(6, 2)])
    yield s(s.array(4, 5, 6), [None, s.indices(5, 2), s.indices(6, 2)])
    yield s(s.strided(4, 5), [s.indices(4, 2, 2, dtype="int32")])
    yield s(s.array(4, 5), [s.indices(4)])
    yield s(s.array(4, 5, dtype="int64"), [s.indices(4, 0)])
    yield s(s.backwards(6), [s.indices(6, 4)])
    yield s(s.array(3, dtype="complex64"), [s.indices(3, 4)])


@index_.samples
def _(s):
    yield s(s.array(4, 5), [s.indices(4, 3)])
    yield s(s.array(4, 5, 6), [s.indices(4, 2), None, s.indices(6, 2)])
    yield s(s.array(4, 5), [s.array(4, 5, dtype="bool")])
    yield s(s.array(4, 5), [None, s.array(5, dtype="bool")])
    yield s(s.array(3, 4, 2), [s.array(3, dtype="bool")])
    yield s(s.array(2, 5), [s.indices(2, 1), np.array([True, False, True, True, False])])


index_tensors_backward.samples(
    lambda s: iter(
        [
            s(s.array(3, 5), [s.indices(4, 3)], (4, 5)),
            s(s.array(2, 3), [s.indices(4, 2, 1), s.indices(5, 3)], (4, 5)),
        ]
    )
)
for each in (index_, index_tensors_):
    each.error(
        "IndexError",
        lambda s: s(s.array(3), [s.indices(3, 1), s.indices(3, 1)]),
        contains=["index", "self", "(3,)"],
    )
    each.error("IndexError", lambda s: s(s.array(3), [np.array([3])]), contains=["index", "3"])
    each.error(
        "IndexError", lambda s: s(s.array(3), [np.array([-4])]), contains=["index", "-4", "3"]
    )
    each.error(
        "DTypeError",
        lambda s: s(s.array(3), [s.array(2)]),
        contains=["index", "indices", "float32"],
    )
    each.error(
        "ShapeError",
        lambda s: s(s.array(3, 3), [s.indices(3, 2), s.indices(3, 4)]),
        contains=["index", "broadcast", "(2,)", "(4,)"],
    )
index_.error(
    "IndexError",
    lambda s: s(s.array(3), [s.array(4, dtype="bool")]),
    contains=["mask", "(4,)", "(3,)"],
)
index_tensors_backward.error(
    "ShapeError",
    lambda s: s(s.array(2, 5), [s.indices(4, 3)], (4, 5)),
    contains=["grad", "(2, 5)", "(3, 5)"],
)


@index_put_tensors.reference
@index_put_.reference
def _(self, indices, values, accumulate=False):
    values = np.asarray(values).astype(self.dtype)
    if accumulate:
        np.add.at(self, _key(indices), values)
    else:
        self[_key(indices)] = values
    return self


@index_put_tensors.samples
@index_put_.samples
def _(s):
    def distinct(n, k):
        return s.rng.permutation(n)[:k]

    yield s(s.array(4, 5), [distinct(4, 3)], s.array(3, 5))
    yield s(s.array(4, 5), [distinct(4, 3)], 2.5)
    yield s(s.array(4, 5), [None, distinct(5, 2)], s.array(2))
    yield s(s.array(4, 5), [s.indices(4, 9)], s.array(9, 5), True)
    yield s(s.array(4, 5, dtype="int64"), [s.indices(4, 3), s.indices(5, 3)], 1, True)
    yield s(s.array(4, dtype="complex64"), [s.indices(4, 9)], s.array(9, dtype="complex64"), True)
    yield s(s.array(4, dtype="bool"), [s.indices(4, 3)], s.array(3, dtype="bool"), True)
    yield s(s.strided(4, 5), [distinct(4, 2), distinct(5, 2)], s.array(2))


for each in (index_put_, index_put_tensors):
    each.error(
        "IndexError", lambda s: s(s.array(3), [np.array([3])], 1.0), contains=["index_put", "3"]
    )
    each.error(
        "ShapeError",
        lambda s: s(s.array(4, 5), [s.indices(4, 3)], s.array(2)),
        contains=["index_put", "values", "(2,)", "(3, 5)"],
    )


unravel_index.reference(
    lambda indices, shape: [np.asarray(x, "int64") for x in np.unravel_index(indices, shape)]
)
unravel_index.samples(
    lambda s: iter(
        [
            s(s.indices(12, 5), (3, 4)),
            s(s.indices(24, 2, 2, dtype="int32"), (2, 3, 4)),
            s(s.indices(4), (4,)),
        ]
    )
)
unravel_index.error(
    "IndexError",
    lambda s: s(np.array([6]), (2, 3)),
    contains=["unravel_index", "indices", "6", "(2, 3)"],
)
unravel_index.error(
    "DTypeError", lambda s: s(s.array(2), (2, 3)), contains=["unravel_index", "indices", "float32"]
)
