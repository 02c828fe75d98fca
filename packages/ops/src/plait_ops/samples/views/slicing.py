"""Test data of views/slicing: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.views.slicing import narrow, select, select_backward, slice_, slice_backward


def _select(self, dim, index):
    return self[(slice(None),) * (dim % self.ndim) + (index,)]


@select_backward.reference
def _(grad, size, dim, index):
    result = np.zeros(size, grad.dtype)
    result[(slice(None),) * (dim % result.ndim) + (index,)] = grad
    return result


select.reference(lambda self, dim, index: _select(self, dim, index))
select.samples(
    lambda s: iter(
        [
            s(s.array(2, 3), 0, 1),
            s(s.array(2, 3), -1, -1),
            s(s.backwards(3, 2, 2), 1, 0),
            s(s.array(3), 0, 2),
        ]
    )
)
select_backward.samples(
    lambda s: iter(
        [s(s.array(3), (2, 3), 0, 1), s(s.array(2), (2, 3), -1, -3), s(s.array(), (3,), 0, 0)]
    )
)
select.error(
    "IndexError", lambda s: s(s.array(2, 3), 2, 0), contains=["select", "dim", "(2, 3)", "2"]
)
select.error("IndexError", lambda s: s(s.array(2, 3), 0, 2), contains=["select", "index", "2"])
select.error(
    "IndexError", lambda s: s(s.array(2, 3), 1, -4), contains=["select", "index", "-4", "3"]
)
select.error("IndexError", lambda s: s(s.array(), 0, 0), contains=["select", "self", "()"])
select_backward.error(
    "ShapeError", lambda s: s(s.array(2), (2, 3), 0, 1), contains=["grad", "(2,)", "(2, 3)"]
)


def slice_along(self, dim, start=None, end=None, step=1):
    return self[(slice(None),) * (dim % self.ndim) + (slice(start, end, step),)]


@slice_backward.reference
def _(grad, size, dim, start=None, end=None, step=1):
    result = np.zeros(size, grad.dtype)
    slice_along(result, dim, start, end, step)[...] = grad
    return result


slice_.reference(slice_along)


@slice_.samples
def _(s):
    yield s(s.array(5), 0, 1, 4)
    yield s(s.array(5, 2), 0, None, None, 2)
    yield s(s.array(2, 5), 1, None, None, -1)
    yield s(s.array(2, 5), -1, -2, None)
    yield s(s.array(5), 0, 3, 1)
    yield s(s.array(5), 0, 4, 0, -2)
    yield s(s.array(5), 0, -100, 100, 3)
    yield s(s.array(0, 2), 0)


slice_backward.samples(
    lambda s: iter([s(s.array(3), (5,), 0, 1, 4), s(s.array(2, 3), (2, 5), -1, None, None, -2)])
)
slice_.error("IndexError", lambda s: s(s.array(2, 3), 2), contains=["slice", "dim", "(2, 3)", "2"])
slice_.error("ValueError", lambda s: s(s.array(2, 3), 0, 0, 2, 0), contains=["slice", "step", "0"])
slice_backward.error(
    "ShapeError", lambda s: s(s.array(2), (5,), 0, 1, 4), contains=["grad", "(2,)", "(3,)"]
)


@narrow.reference
def _(self, dim, start, length):
    first = start % self.shape[dim] if start < 0 else start
    return slice_along(self, dim, first, first + length)


narrow.samples(
    lambda s: iter(
        [
            s(s.array(5), 0, 1, 3),
            s(s.array(2, 5), -1, -2, 2),
            s(s.backwards(4, 2), 0, 0, 4),
            s(s.array(3), 0, 3, 0),
        ]
    )
)
narrow.error(
    "IndexError", lambda s: s(s.array(2, 3), 2, 0, 1), contains=["narrow", "dim", "(2, 3)"]
)
narrow.error("IndexError", lambda s: s(s.array(2, 3), 0, 3, 0), contains=["narrow", "start", "3"])
narrow.error("ShapeError", lambda s: s(s.array(2, 3), 1, 1, 3), contains=["narrow", "length", "3"])
narrow.error(
    "ShapeError", lambda s: s(s.array(2, 3), 1, 1, -1), contains=["narrow", "length", "-1"]
)
