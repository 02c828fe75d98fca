"""Test data of views/view_writes: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.views.view_writes import (
    as_strided_scatter,
    diagonal_scatter_,
    fill_diagonal,
    select_scatter_,
    slice_scatter_,
)


@select_scatter_.reference
def _(self, src, dim, index):
    result = self.copy()
    result[(slice(None),) * (dim % self.ndim) + (index,)] = src
    return result


@slice_scatter_.reference
def _(self, src, dim=0, start=None, end=None, step=1):
    result = self.copy()
    result[(slice(None),) * (dim % self.ndim) + (slice(start, end, step),)] = src
    return result


@diagonal_scatter_.reference
def _(self, src, offset=0, dim1=0, dim2=1):
    result = self.copy()
    line = np.diagonal(result, offset, dim1, dim2)
    line.setflags(write=True)
    line[...] = src
    return result


@select_scatter_.samples
def _(s):
    yield s(s.array(3, 4), s.array(4), 0, 1)
    yield s(s.array(3, 4), s.array(3), -1, -2)
    yield s(s.strided(2, 3, 4), s.strided(2, 4), 1, 0)
    yield s(s.array(3, dtype="int64"), s.array(dtype="int64"), 0, 2)
    yield s(s.array(3, 4), s.array(4, dtype="float64"), 0, 1)


@slice_scatter_.samples
def _(s):
    yield s(s.array(5), s.array(2), 0, 1, 3)
    yield s(s.array(2, 5), s.array(2, 3), -1, None, None, 2)
    yield s(s.array(5, 2), s.array(5, 2), 0, None, None, -1)
    yield s(s.strided(4, 3), s.strided(2, 3), end=2)
    yield s(s.array(4), s.array(0), 0, 3, 1)
    yield s(s.array(5, dtype="float64"), s.array(2), 0, 1, 3)


@diagonal_scatter_.samples
def _(s):
    yield s(s.array(3, 4), s.array(3))
    yield s(s.array(3, 4), s.array(2), -1)
    yield s(s.strided(3, 4, 2), s.array(4, 2), 0, 0, -1)
    yield s(s.array(3, 4), s.array(3, dtype="int64"))


select_scatter_.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(2), 0, 1),
    contains=["select_scatter", "src", "(3,)", "(2,)"],
)
select_scatter_.error(
    "IndexError",
    lambda s: s(s.array(2, 3), s.array(3), 0, 2),
    contains=["select_scatter", "index", "2"],
)
slice_scatter_.error(
    "ShapeError",
    lambda s: s(s.array(5), s.array(3), 0, 1, 3),
    contains=["slice_scatter", "src", "(2,)", "(3,)"],
)
slice_scatter_.error(
    "ValueError",
    lambda s: s(s.array(5), s.array(5), 0, 0, 2, 0),
    contains=["slice_scatter", "step"],
)
diagonal_scatter_.error(
    "ShapeError",
    lambda s: s(s.array(3, 4), s.array(4)),
    contains=["diagonal_scatter", "src", "(3,)", "(4,)"],
)
diagonal_scatter_.error(
    "ShapeError", lambda s: s(s.array(3), s.array(1)), contains=["diagonal_scatter", "self", "(3,)"]
)


@as_strided_scatter.reference
def _(self, src, size, stride, storage_offset=None):
    result = np.array(self, order="C")
    step = [n * result.itemsize for n in stride]
    flat = result.reshape(-1)[storage_offset or 0 :]
    np.lib.stride_tricks.as_strided(flat, size, step)[...] = src
    return result


@as_strided_scatter.samples
def _(s):
    yield s(s.array(4), s.array(2), (2,), (2,))
    yield s(s.array(3, 4), s.array(2, 2), (2, 2), (4, 1), 1)
    yield s(s.array(4), s.array(2, dtype="float64"), (2,), (2,))


as_strided_scatter.error(
    "ShapeError",
    lambda s: s(s.array(4), s.array(3), (2,), (2,)),
    contains=["as_strided_scatter", "src", "(2,)", "(3,)"],
)


@fill_diagonal.reference
def _(self, fill_value, wrap=False):
    np.fill_diagonal(self, fill_value, wrap)
    return self


@fill_diagonal.samples
def _(s):
    yield s(s.array(3, 4), 7)
    yield s(s.array(7, 2), 1.5, True)
    yield s(s.array(7, 2), 1.5)
    yield s(s.array(3, 3, 3), 2)


fill_diagonal.error(
    "ShapeError", lambda s: s(s.array(3), 1), contains=["fill_diagonal_", "self", "(3,)"]
)
