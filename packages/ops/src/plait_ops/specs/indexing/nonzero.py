"""Where elements are not 0."""

import numpy as np

from plait_ops.calls import count_nonzero, ne
from plait_ops.spec import Operator
from plait_ops.words import check, int64, is_complex, item, require, result

nonzero_ = Operator(
    "nonzero(Tensor self) -> Tensor",
    doc="""
    The indices of the elements that are not 0, one row each, in order: int64 of shape (count, ndim). The shape of the result
    depends on values, so that device meta is an error.

    >>> import plait_core as pc
    >>> pc.nonzero(pc.tensor([0, 5, 7])).tolist()
    [[1], [2]]
    """,
)
nonzero_rows = Operator(
    "nonzero_rows(Tensor self, int count) -> Tensor",
    doc="`nonzero` where the number of rows is known.",
    internal=True,
    kernel="writes at most in[1] rows; it is the number of elements that are not 0.",
)


@nonzero_.decompose
def _(self):
    if is_complex(self.dtype):
        found = ne(self, 0)
        return nonzero_rows(found, item(count_nonzero(found)))
    return nonzero_rows(self, item(count_nonzero(self)))


@nonzero_rows.shape
def _(self, count):
    check(count >= 0, f"`count` must not be negative; got {count}", "ValueError")
    require("self", self.dtype, "all")
    return result([count, self.ndim], int64)


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
