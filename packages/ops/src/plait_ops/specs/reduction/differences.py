"""Differences of neighbours."""

import numpy as np

from plait_ops.calls import bitwise_xor, cat, clone, narrow, sub
from plait_ops.spec import Composite
from plait_ops.words import bool_, check, wrap_dim

diff = Composite(
    "diff(Tensor self, int n=1, int dim|axis=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    doc="""
    Differences of neighbours along `dim`, ``self[i + 1] - self[i]``, taken `n` times; of bool: whether they differ. `prepend`
    and `append` are joined to `self` first.

    Raises: ValueError for a negative `n`, ShapeError for a 0-d tensor or parts that do not fit, IndexError for a `dim` out of
    range.

    >>> import plait_core as pc
    >>> pc.diff(pc.tensor([1, 3, 2])).tolist()
    [2, -1]
    """,
    dtypes="any",
    out=True,
)


@diff.decompose
def _(self, n, dim, prepend, append):
    check(n >= 0, f"`n` must not be negative; got {n}", "ValueError")
    check(self.ndim > 0, "`self` must have at least 1 dimension; got shape ()")
    at = wrap_dim("dim", dim, self.shape)
    if n == 0:
        return clone(self)
    parts = []
    if prepend is not None:
        parts.append(prepend)
    parts.append(self)
    if append is not None:
        parts.append(append)
    made = clone(self) if len(parts) == 1 else cat(parts, at)
    turns = min(n, made.shape[at])
    for _i in range(turns):
        m = max(made.shape[at] - 1, 0)
        after = narrow(made, at, made.shape[at] - m, m)
        before = narrow(made, at, 0, m)
        if made.dtype == bool_:
            made = bitwise_xor(after, before)
        else:
            made = sub(after, before)
    return made


@diff.reference
def _(self, n=1, dim=-1, prepend=None, append=None):
    if n == 0:
        return self.copy()
    parts = [x for x in (prepend, self, append) if x is not None]
    return np.diff(np.concatenate(parts, dim), n, dim)


diff.samples(
    lambda s: iter(
        [
            s(s.array(5)),
            s(s.array(3, 5), 2),
            s(s.strided(3, 5), 1, 0),
            s(s.array(3, 5), 1, 1, s.array(3, 1), s.array(3, 2)),
            s(s.array(6, dtype="bool")),
            s(s.array(6, dtype="int64"), 3),
            s(s.array(3), 5),
            s(s.array(3), 0, 0, s.array(1)),
            s(s.array(4), append=s.array(1)),
        ]
    )
)
diff.error("ValueError", lambda s: s(s.array(3), -1), contains=["diff", "n", "-1"])
diff.error("ShapeError", lambda s: s(s.array()), contains=["diff", "self", "()"])
diff.error("IndexError", lambda s: s(s.array(3), 1, 1), contains=["diff", "dim", "(3,)"])
