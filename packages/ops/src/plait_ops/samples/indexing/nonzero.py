"""Test data of indexing/nonzero: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.indexing.nonzero import (
    argwhere,
    nonzero_,
    nonzero_list,
    nonzero_rows,
    nonzero_static,
)

nonzero_.reference(
    lambda self: np.stack(np.nonzero(np.atleast_1d(self)), 1)[:, : self.ndim].astype("int64")
)
nonzero_rows.reference(
    lambda self, count: np.stack(np.nonzero(np.atleast_1d(self)), 1)[:, : self.ndim].astype("int64")
)
nonzero_.samples(
    lambda s: iter(
        [
            s(s.array(3, 4, dtype="bool")),
            s(s.array(5, dtype="int64")),
            s(s.strided(3, 2, dtype="bool")),
            s(s.array(dtype="bool")),
            s(s.array(0, 3)),
            s(np.array([0, 1j, 2], "complex64")),
        ]
    )
)
nonzero_rows.samples(
    lambda s: iter([s(np.array([[1, 0], [3, 4]]), 3), s(np.array([0.0, 2.0], "float32"), 1)])
)
nonzero_.error("TypeError", lambda s: s("a"), contains=["nonzero", "self"])
nonzero_rows.error(
    "ValueError", lambda s: s(s.array(2), -1), contains=["nonzero_rows", "count", "-1"]
)


argwhere.reference(
    lambda self: np.stack(np.nonzero(np.atleast_1d(self)), 1)[:, : self.ndim].astype("int64")
)
argwhere.samples(
    lambda s: iter(
        [s(s.array(3, 4, dtype="bool")), s(s.array(5, dtype="int64")), s(s.array(dtype="bool"))]
    )
)
argwhere.error("TypeError", lambda s: s("a"), contains=["argwhere", "self"])


@nonzero_static.reference
def _(self, size, fill_value=-1):
    rows = np.stack(np.nonzero(np.atleast_1d(self)), 1)[:, : self.ndim][:size]
    result = np.full((size, self.ndim), fill_value, "int64")
    result[: len(rows)] = rows
    return result


@nonzero_static.samples
def _(s):
    yield s(s.array(3, 4, dtype="bool"), size=20)
    yield s(s.array(3, 4, dtype="bool"), size=2, fill_value=7)
    yield s(s.strided(2, 3, 2), size=4)
    yield s(s.array(dtype="int64"), size=2)
    yield s(s.array(0, 3), size=2)
    yield s(s.array(5), size=0)


nonzero_static.error(
    "ValueError", lambda s: s(s.array(3), size=-1), contains=["nonzero_static", "size", "-1"]
)


nonzero_list.reference(lambda self: list(np.nonzero(np.atleast_1d(self))))
nonzero_list.samples(
    lambda s: iter(
        [
            s(s.array(3, 4, dtype="bool")),
            s(s.array(5, dtype="int64")),
            s(np.array(True)),
            s(s.array(0, 2)),
        ]
    )
)
nonzero_list.error("TypeError", lambda s: s("a"), contains=["self"])
