"""Splitting into views."""

from plait_ops import calls as op
from plait_ops.spec import Composite
from plait_ops.words import check, wrap_dim

split = Composite(
    "split(Tensor(a) self|tensor, int split_size|split_size_or_sections, int dim|axis=0) -> Tensor(a)[]",
    doc="""
    Views of `split_size` elements each along `dim`; the last one has the remaining elements.

    Raises: ValueError if `split_size` is below 1 (0 is allowed for a dimension of size 0).

    >>> import plait_core as pc
    >>> [part.tolist() for part in pc.arange(5).split(2)]
    [[0, 1], [2, 3], [4]]
    """,
    dtypes="any",
    variants="function method",
)
split_sizes = Composite(
    "split.sizes(Tensor(a) self|tensor, int[] split_sizes|split_size_or_sections, int dim|axis=0) -> Tensor(a)[]",
    doc="""
    Views of `split_sizes` elements along `dim`, one after the other.

    Raises: ValueError if the sizes are negative or do not add up to the size of the dimension.

    >>> import plait_core as pc
    >>> [part.tolist() for part in pc.arange(5).split([1, 4])]
    [[0], [1, 2, 3, 4]]
    """,
    dtypes="any",
    variants="function method",
)


@split.decompose
def _(self, split_size, dim):
    check(self.ndim > 0, "`self` must have at least 1 dimension; got shape ()")
    at = wrap_dim("dim", dim, self.shape)
    n = self.shape[at]
    check(
        split_size > 0 or (split_size == 0 and n == 0),
        f"`split_size` must be at least 1; got {split_size} for a dimension of size {n}",
        "ValueError",
    )
    parts = []
    count = max((n + split_size - 1) // max(split_size, 1), 1)
    for i in range(count):
        parts.append(op.narrow(self, at, i * split_size, min(split_size, n - i * split_size)))
    return parts


@split_sizes.decompose
def _(self, split_sizes, dim):
    check(self.ndim > 0, "`self` must have at least 1 dimension; got shape ()")
    at = wrap_dim("dim", dim, self.shape)
    left = self.shape[at]
    for size in split_sizes:
        check(size >= 0, f"`split_sizes` must not be negative; got {split_sizes}", "ValueError")
        check(
            size <= left,
            f"`split_sizes` {split_sizes} must add up to {self.shape[at]}, the size of dimension {at}",
            "ValueError",
        )
        left -= size
    check(
        left == 0,
        f"`split_sizes` {split_sizes} must add up to {self.shape[at]}, the size of dimension {at}",
        "ValueError",
    )
    parts = []
    offset = 0
    for size in split_sizes:
        parts.append(op.narrow(self, at, offset, size))
        offset += size
    return parts


chunk = Composite(
    "chunk(Tensor(a) self, int chunks, int dim|axis=0) -> Tensor(a)[]",
    doc="""
    Up to `chunks` views of equal size along `dim`; the last may be smaller.

    Raises: ValueError if `chunks` is below 1.

    >>> import plait_core as pc
    >>> [part.tolist() for part in pc.arange(5).chunk(2)]
    [[0, 1, 2], [3, 4]]
    """,
    dtypes="any",
    variants="function method",
)


@chunk.decompose
def _(self, chunks, dim):
    check(chunks >= 1, f"`chunks` must be at least 1; got {chunks}", "ValueError")
    check(self.ndim > 0, "`self` must have at least 1 dimension; got shape ()")
    at = wrap_dim("dim", dim, self.shape)
    if self.shape[at] == 0:
        return split_sizes(self, [0] * chunks, at)
    size = self.shape[at] // chunks
    if self.shape[at] % chunks != 0:
        size = size + 1
    return split(self, size, at)


unbind = Composite(
    "unbind(Tensor(a) self, int dim|axis=0) -> Tensor(a)[]",
    doc="""
    The slices of `self` along `dim`, without that dimension.

    Raises: IndexError for a 0-d tensor or a `dim` out of range.

    >>> import plait_core as pc
    >>> [row.tolist() for row in pc.tensor([[1, 2], [3, 4]]).unbind()]
    [[1, 2], [3, 4]]
    """,
    dtypes="any",
    variants="function method",
)


@unbind.decompose
def _(self, dim):
    check(self.ndim > 0, "`self` must have at least 1 dimension; got shape ()", "IndexError")
    at = wrap_dim("dim", dim, self.shape)
    return [op.select(self, at, i) for i in range(self.shape[at])]
