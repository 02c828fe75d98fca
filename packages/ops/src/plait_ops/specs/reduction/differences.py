"""Differences of neighbours."""

from plait_ops import calls as op
from plait_ops.spec import Composite
from plait_ops.words import bool_, check, wrap_dim

diff = Composite(
    "diff(Tensor self, int n=1, int dim|axis=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    doc="""
    Differences of neighbours along `dim`, ``self[i + 1] - self[i]``, taken `n` times; for bool, whether the neighbours
    differ. `prepend` and `append` are first joined to `self`.

    Args:
        n: How often the difference is taken.

    Raises: ValueError for a negative `n`, ShapeError for a 0-d tensor or if `prepend` or `append` do not fit, IndexError
    for a `dim` out of range.

    >>> import plait_core as pc
    >>> pc.diff(pc.tensor([1, 3, 2])).tolist()
    [2, -1]
    """,
    dtypes="any",
    variants="function method",
)


@diff.decompose
def _(self, n, dim, prepend, append):
    check(n >= 0, f"`n` must not be negative; got {n}", "ValueError")
    check(self.ndim > 0, "`self` must have at least 1 dimension; got shape ()")
    at = wrap_dim("dim", dim, self.shape)
    if n == 0:
        return op.clone(self)
    parts = []
    if prepend is not None:
        parts.append(prepend)
    parts.append(self)
    if append is not None:
        parts.append(append)
    made = op.cat(parts, at) if len(parts) > 1 else op.narrow(self, at, 0, self.shape[at])
    turns = min(n, made.shape[at])
    if turns == 0:
        return op.clone(made)
    for _i in range(turns):
        m = max(made.shape[at] - 1, 0)
        after = op.narrow(made, at, made.shape[at] - m, m)
        before = op.narrow(made, at, 0, m)
        if made.dtype == bool_:
            made = op.bitwise_xor(after, before)
        else:
            made = op.sub(after, before)
    return made
