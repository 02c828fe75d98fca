"""Test data of indexing/gathering: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.indexing.gathering import (
    gather_,
    index_add_,
    index_select_,
    take,
    take_along_dim,
)

index_select_.reference(
    lambda self, dim, index: np.take(self, np.atleast_1d(index), axis=dim) if self.ndim else self
)


@index_select_.samples
def _(s):
    yield s(s.array(4, 5), 0, s.indices(4, 3))
    yield s(s.array(4, 5), -1, s.indices(5, 7, negative=True))
    yield s(s.strided(3, 4, 2), 1, s.indices(4, 2, dtype="int32"))
    yield s(s.array(4, dtype="bool"), 0, s.indices(4, 0))
    yield s(s.array(4, 2), 0, s.indices(4))
    yield s(s.array(4, 3, dtype="complex64"), 0, s.indices(4, 2))


index_select_.error(
    "IndexError",
    lambda s: s(s.array(2, 3), 2, s.indices(2, 1)),
    contains=["index_select", "dim", "(2, 3)"],
)
index_select_.error(
    "IndexError", lambda s: s(s.array(2, 3), 0, np.array([2])), contains=["index_select", "2"]
)
index_select_.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), 0, s.indices(2, 1, 1)),
    contains=["index_select", "index", "(1, 1)"],
)
index_select_.error(
    "DTypeError",
    lambda s: s(s.array(2, 3), 0, s.array(1)),
    contains=["index_select", "index", "float32"],
)


@index_add_.reference
def _(self, dim, index, source, alpha=1):
    result = self.copy()
    if not self.ndim:
        return result + alpha * source
    np.add.at(
        np.moveaxis(result, dim, 0),
        np.atleast_1d(index),
        np.moveaxis((alpha * source).astype(self.dtype), dim, 0),
    )
    return result


@index_add_.samples
def _(s):
    yield s(s.array(4, 5), 0, s.indices(4, 3), s.array(3, 5))
    yield s(s.array(4, 5), -1, s.indices(5, 7, negative=True), s.array(4, 7), alpha=0.5)
    yield s(s.strided(4, 5), 0, s.indices(4, 9, dtype="int32"), s.strided(9, 5))
    yield s(s.array(4, dtype="int64"), 0, s.indices(4, 6), s.array(6, dtype="int64"), alpha=2)
    yield s(
        s.array(4, 2, dtype="complex64"),
        0,
        s.indices(4, 6),
        s.array(6, 2, dtype="complex64"),
        alpha=1j,
    )
    yield s(s.array(4, dtype="bool"), 0, s.indices(4, 6), s.array(6, dtype="bool"))


index_add_.error(
    "IndexError",
    lambda s: s(s.array(2), 1, s.indices(2, 1), s.array(1)),
    contains=["index_add", "dim", "(2,)"],
)
index_add_.error(
    "IndexError", lambda s: s(s.array(2), 0, np.array([2]), s.array(1)), contains=["index_add", "2"]
)
index_add_.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), 0, s.indices(2, 1), s.array(2, 3)),
    contains=["index_add", "source", "(1, 3)", "(2, 3)"],
)
index_add_.error(
    "DTypeError",
    lambda s: s(s.array(2), 0, s.indices(2, 1), s.array(1, dtype="float64")),
    contains=["index_add", "source", "float32", "float64"],
)


def _crop(array, dim, index):
    return array[
        tuple(
            slice(None) if i == dim % array.ndim else slice(0, n) for i, n in enumerate(index.shape)
        )
    ]


@gather_.reference
def _(self, dim, index):
    if not index.size:
        return np.zeros(index.shape, self.dtype)
    if not self.ndim:
        return np.full(index.shape, self)
    return np.take_along_axis(_crop(self, dim, index), index, dim)


@gather_.samples
def _(s):
    yield s(s.array(3, 4), 1, s.indices(4, 3, 2))
    yield s(s.array(3, 4), 0, s.indices(3, 5, 4))
    yield s(s.array(3, 4), -1, s.indices(4, 2, 6, negative=True))
    yield s(s.strided(3, 4, 2), 1, s.indices(4, 3, 1, 2, dtype="int32"))
    yield s(s.array(5, dtype="int64"), 0, s.indices(5, 3))
    yield s(s.array(), 0, np.array(0))
    yield s(s.array(3, 4), 1, s.indices(4, 3, 0))
    yield s(s.array(5), 0, s.indices(5, 2, 0))
    yield s(s.array(), 0, s.indices(1, 3))
    yield s(s.array(3, 4, dtype="float16"), 1, s.indices(4, 3, 2))


def gather_errors(operator, *rest):
    def call(*shape, dim=0, index=None):
        def draw(s):
            at = s.indices(1, *shape) if index is None else index(s)
            return s(s.array(2, 3), dim, at, *[each(s) for each in rest])

        return draw

    name = operator.schema.base
    operator.error("IndexError", call(2, 3, dim=2), contains=[name, "dim", "(2, 3)", "2"])
    operator.error("ShapeError", call(2), contains=[name, "index", "(2,)", "(2, 3)"])
    operator.error("ShapeError", call(2, 4), contains=[name, "index", "(2, 4)", "(2, 3)"])
    operator.error(
        "DTypeError", call(index=lambda s: s.array(2, 3)), contains=[name, "index", "float32"]
    )
    operator.error("IndexError", call(index=lambda s: np.full((2, 3), 2)), contains=[name, "2"])
    operator.error("IndexError", call(index=lambda s: np.full((2, 3), -3)), contains=[name, "-3"])


gather_errors(gather_)


@take_along_dim.reference
def _(self, indices, dim=None):
    if dim is None:
        return self.reshape(-1)[indices.reshape(-1)]
    return np.take_along_axis(self, indices, dim) if self.ndim else self.copy()


@take_along_dim.samples
def _(s):
    yield s(s.array(3, 4), s.indices(4, 3, 2), 1)
    yield s(s.array(3, 4), s.indices(4, 1, 2), -1)
    yield s(s.array(1, 4), s.indices(4, 3, 2, negative=True), 1)
    yield s(s.array(3, 4), s.indices(12, 2, 2))
    yield s(s.array(), np.array(0), 0)


take_along_dim.error(
    "ShapeError",
    lambda s: s(s.array(3, 4), s.indices(3, 3), 0),
    contains=["take_along_dim", "indices", "(3,)", "(3, 4)"],
)
take_along_dim.error(
    "DTypeError", lambda s: s(s.array(3), s.array(3), 0), contains=["take_along_dim", "indices"]
)


take.reference(lambda self, index: np.take(self, index))
take.samples(
    lambda s: iter(
        [
            s(s.array(3, 4), s.indices(12, 5)),
            s(s.strided(3, 4), s.indices(12, 2, 2, negative=True)),
            s(s.array(3), s.indices(3)),
        ]
    )
)
take.error("DTypeError", lambda s: s(s.array(2), s.array(2)), contains=["take", "index", "float32"])
take.error("IndexError", lambda s: s(s.array(2), np.array([2])), contains=["index", "2"])
