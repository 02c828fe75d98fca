"""Test data of views/views: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.views.views import as_strided, flatten, reshape, view

view.reference(lambda self, size: np.reshape(self, size))


@view.samples
def _(s):
    yield s(s.array(2, 3), (3, 2))
    yield s(s.array(2, 3), 6)
    yield s(s.array(2, 3, 4), -1, 4)
    yield s(s.array(4, 6)[:, ::2], (2, 2, 3))
    yield s(s.array(), (1, 1))
    yield s(s.array(0, 3), (3, 0, 2))
    yield s(s.array(1), ())


view.error(
    "ShapeError", lambda s: s(s.array(2, 3), (4,)), contains=["view", "size", "(4,)", "(2, 3)"]
)
view.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), (-1, 4)),
    contains=["view", "size", "(-1, 4)", "(2, 3)"],
)
view.error("ShapeError", lambda s: s(s.array(2, 3), (-1, -1)), contains=["view", "size", "-1"])
view.error("ShapeError", lambda s: s(s.array(2, 3), (-2, 3)), contains=["view", "size", "(-2, 3)"])
view.error(
    "ShapeError", lambda s: s(s.array(2, 3).T, (6,)), contains=["view", "size", "(3, 2)", "reshape"]
)
view.error("ShapeError", lambda s: s(s.array(1), (1,) * 65), contains=["view", "size", "65", "64"])
view.error(
    "ShapeError", lambda s: s(s.array(2, 3), (2**62, 2**62)), contains=["view", "size", "(2, 3)"]
)


reshape.reference(lambda self, shape: np.reshape(self, shape))


@reshape.samples
def _(s):
    yield s(s.array(2, 3), (3, 2))
    yield s(s.array(2, 3).T, 6)
    yield s(s.strided(2, 3, 4), -1, 4)
    yield s(s.backwards(4), 2, 2)
    yield s(s.array(), (1, 1))
    yield s(s.array(0, 3), (3, 0))


reshape.error(
    "ShapeError", lambda s: s(s.array(2, 3), (4,)), contains=["reshape", "shape", "(4,)", "(2, 3)"]
)
reshape.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), (-1, 4)),
    contains=["reshape", "shape", "(-1, 4)", "(2, 3)"],
)
reshape.error(
    "ShapeError",
    lambda s: s(s.array(0, 3), (-1, 0)),
    contains=["reshape", "shape", "(-1, 0)", "(0, 3)"],
)


@flatten.reference
def _(self, start_dim=0, end_dim=-1):
    if self.ndim == 0:
        return self.reshape(1)
    first, last = start_dim % self.ndim, end_dim % self.ndim
    n = int(np.prod(self.shape[first : last + 1]))
    return self.reshape((*self.shape[:first], n, *self.shape[last + 1 :]))


@flatten.samples
def _(s):
    yield s(s.array(2, 3, 4))
    yield s(s.array(2, 3, 4), 1)
    yield s(s.strided(2, 3, 4), 0, 1)
    yield s(s.array(2, 3, 4), -2, -1)
    yield s(s.array())
    yield s(s.array(0, 3, 2), 1)


flatten.error(
    "IndexError", lambda s: s(s.array(2, 3), 2), contains=["flatten", "start_dim", "(2, 3)", "2"]
)
flatten.error(
    "ValueError", lambda s: s(s.array(2, 3), 1, 0), contains=["flatten", "start_dim", "end_dim"]
)


@as_strided.reference
def _(self, size, stride, offset=0):
    flat = np.ascontiguousarray(self).reshape(-1)[offset:]
    return np.lib.stride_tricks.as_strided(
        flat, size, [step * flat.itemsize for step in stride]
    ).copy()


as_strided.samples(
    lambda s: iter(
        [
            s(s.array(6), (2, 3), (3, 1)),
            s(s.array(6), (2, 2), (1, 1), 2),
            s(s.array(2, 3), (3,), (2,), 1),
            s(s.array(3), (), (), 1),
        ]
    )
)
as_strided.error(
    "ShapeError",
    lambda s: s(s.array(6), (2, 3), (1,)),
    contains=["as_strided", "size", "stride", "(2, 3)", "(1,)"],
)
as_strided.error(
    "ShapeError", lambda s: s(s.array(6), (7,), (1,)), contains=["as_strided", "(7,)", "outside"]
)
as_strided.error(
    "ShapeError", lambda s: s(s.array(6), (2,), (1,), 2**62), contains=["as_strided", "outside"]
)
as_strided.error(
    "ShapeError", lambda s: s(s.array(6), (2,), (1,), -1), contains=["as_strided", "outside"]
)
as_strided.error(
    "ShapeError", lambda s: s(s.array(6), (2,), (2**62,)), contains=["as_strided", "outside"]
)
as_strided.error(
    "ShapeError", lambda s: s(s.array(6), (-1,), (1,)), contains=["as_strided", "size", "(-1,)"]
)
