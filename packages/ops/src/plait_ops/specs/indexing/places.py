"""Where elements are: conditions as lists of places, repetition by counts, rows in order."""

import numpy as np

from plait_ops.calls import (
    amin,
    arange,
    bitwise_and,
    copy_,
    cumsum,
    expand,
    floor_divide,
    full,
    index_select,
    lt,
    narrow,
    ne,
    nonzero,
    remainder,
    repeat_interleave_counts,
    reshape,
    scatter,
    search_sorted,
    select,
    where,
)
from plait_ops.spec import Composite, Operator
from plait_ops.specs.joining import repeating  # noqa: F401, these stand before their overloads
from plait_ops.specs.pointwise import selection  # noqa: F401, these stand before their overloads
from plait_ops.words import check, int64, item, numel, require, result, to_dtype, wrap_dim

argwhere = Composite(
    "argwhere(Tensor self) -> Tensor",
    doc="""
    The indices of the elements that are not 0, one row each: `nonzero` under NumPy's name.

    >>> import plait_core as pc
    >>> pc.argwhere(pc.tensor([0, 5, 7])).tolist()
    [[1], [2]]
    """,
)


@argwhere.decompose
def _(self):
    return nonzero(self)


argwhere.reference(
    lambda self: np.stack(np.nonzero(np.atleast_1d(self)), 1)[:, : self.ndim].astype("int64")
)
argwhere.samples(
    lambda s: iter(
        [s(s.array(3, 4, dtype="bool")), s(s.array(5, dtype="int64")), s(s.array(dtype="bool"))]
    )
)
argwhere.error("TypeError", lambda s: s("a"), contains=["argwhere", "self"])

nonzero_static = Composite(
    "nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor",
    doc="""
    The indices of the first `size` elements that are not 0, one row each, then rows of `fill_value`: `nonzero` with a shape
    that does not depend on the elements.

    Shape: (size, ndim). Dtype: int64. Raises: ValueError if `size` is negative.

    >>> import plait_core as pc
    >>> pc.nonzero_static(pc.tensor([0, 5, 7]), size=3).tolist()
    [[1], [2], [-1]]
    """,
    dtypes="any",
)


@nonzero_static.decompose
def _(self, size, fill_value):
    check(size >= 0, f"`size` must not be negative; got {size}", "ValueError")
    n = numel(self.shape)
    found = reshape(ne(self, 0), [n])
    before = cumsum(found, 0) - 1
    # what is not wanted falls on one more place, which is dropped
    rows = where(bitwise_and(found, lt(before, size)), before, size)
    empty = full([size + 1], -1, dtype=int64, device=self.device)
    flat = narrow(scatter(empty, 0, rows, arange(n, device=self.device)), 0, 0, size)
    missing = lt(flat, 0)
    made = full([size, self.ndim], fill_value, dtype=int64, device=self.device)
    step = n
    for d in range(self.ndim):
        step = step // max(self.shape[d], 1)
        place = remainder(floor_divide(flat, max(step, 1)), max(self.shape[d], 1))
        copy_(select(made, 1, d), where(missing, fill_value, place))
    return made


@nonzero_static.reference
def _(self, size, fill_value=-1):
    rows = np.stack(np.nonzero(np.atleast_1d(self)), 1)[:, : self.ndim][:size]
    made = np.full((size, self.ndim), fill_value, "int64")
    made[: len(rows)] = rows
    return made


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


nonzero_list = Composite(
    "nonzero_list(Tensor self) -> Tensor[]",
    doc="`nonzero` as one int64 vector for each dimension: what indexes `self`. A 0-d tensor counts as a vector.",
    internal=True,
)
where_condition = Composite(
    "where.condition(Tensor condition) -> Tensor[]",
    doc="""
    Where `condition` is not 0: one int64 vector for each dimension, as ``nonzero(condition, as_tuple=True)``.

    >>> import plait_core as pc
    >>> [x.tolist() for x in pc.where(pc.tensor([[False, True], [True, True]]))]
    [[0, 1, 1], [1, 0, 1]]
    """,
    method=False,
)


@nonzero_list.decompose
def _(self):
    x = self if self.ndim > 0 else reshape(self, [1])
    rows = nonzero(x)
    return [select(rows, 1, d) for d in range(x.ndim)]


@where_condition.decompose
def _(condition):
    x = condition if condition.ndim > 0 else reshape(condition, [1])
    rows = nonzero(x)
    return [select(rows, 1, d) for d in range(x.ndim)]


nonzero_list.reference(lambda self: list(np.nonzero(np.atleast_1d(self))))
where_condition.reference(lambda condition: list(np.nonzero(np.atleast_1d(condition))))
for each in (nonzero_list, where_condition):
    each.samples(
        lambda s: iter(
            [
                s(s.array(3, 4, dtype="bool")),
                s(s.array(5, dtype="int64")),
                s(np.array(True)),
                s(s.array(0, 2)),
            ]
        )
    )
    each.error(
        "TypeError", lambda s: s("a"), contains=["self" if each is nonzero_list else "condition"]
    )

argsort_rows = Operator(
    "argsort_rows(Tensor self) -> Tensor",
    doc="The places of the rows of a matrix in ascending order, compared from their first element on; equal rows keep theirs.",
    internal=True,
    kernel="the result is int64; nan is the largest number.",
)


@argsort_rows.shape
def _(self):
    check(self.ndim == 2, f"`self` must have 2 dimensions; got shape {self.shape}")
    require("self", self.dtype, "all")
    return result([self.shape[0]], int64)


@argsort_rows.reference
def _(self):
    if self.shape[1] == 0:
        return np.arange(len(self))
    return np.lexsort(self.T[::-1]).astype("int64")


argsort_rows.samples(
    lambda s: iter(
        [
            s(s.array(40, 3, dtype="int8") % 3),
            s(s.distinct(5, 2)),
            s(s.array(300, 2, dtype="bool")),
            s(s.array(0, 3)),
            s(s.array(3, 0)),
            s(s.strided(9, 2)),
        ]
    )
)
argsort_rows.error("ShapeError", lambda s: s(s.array(3)), contains=["argsort_rows", "self", "(3,)"])

# ---- repetition --------------------------------------------------------------------------------
repeat_each = Composite(
    "repeat_interleave.tensor(Tensor self, Tensor repeats, int? dim|axis=None, *, int? output_size=None) -> Tensor",
    doc="""
    Element `i` of `self` along `dim` repeated ``repeats[i]`` times; `dim` None: of the flattened tensor. `repeats` of one element
    serve all.

    Raises: DTypeError unless `repeats` holds integers, ShapeError unless it has as many as the dimension, ValueError for a
    negative one or an `output_size` that is not their sum.

    >>> import plait_core as pc
    >>> pc.repeat_interleave(pc.tensor([5, 6]), pc.tensor([1, 3])).tolist()
    [5, 6, 6, 6]
    """,
    dtypes="any",
)
repeat_counts = Composite(
    "repeat_interleave.counts(Tensor repeats, *, int? output_size=None) -> Tensor",
    doc="""
    ``[0] * repeats[0] + [1] * repeats[1] + ...`` as int64.

    >>> import plait_core as pc
    >>> pc.repeat_interleave(pc.tensor([1, 3])).tolist()
    [0, 1, 1, 1]
    """,
    method=False,
)


@repeat_counts.decompose
def _(repeats, output_size):
    require("repeats", repeats.dtype, "integer")
    check(repeats.ndim == 1, f"`repeats` must have 1 dimension; got shape {repeats.shape}")
    n = repeats.shape[0]
    ends = cumsum(to_dtype(repeats, int64), 0)
    total = item(select(ends, 0, n - 1)) if n > 0 else 0
    least = item(to_dtype(amin(repeats), int64)) if n > 0 else 0
    check(least >= 0, f"`repeats` must not be negative; got {least}", "ValueError")
    if output_size is not None:
        check(
            int(output_size) == total,
            f"`output_size` must be the sum of `repeats`, {total}; got {int(output_size)}",
            "ValueError",
        )
    # element j belongs to the first one that ends behind it
    return search_sorted(ends, arange(total, dtype=int64, device=repeats.device), True)


@repeat_each.decompose
def _(self, repeats, dim, output_size):
    require("repeats", repeats.dtype, "integer")
    flat = reshape(self, [-1]) if dim is None or self.ndim == 0 else self
    at = wrap_dim(
        "dim", dim if dim is not None else 0, self.shape if dim is not None else flat.shape
    )
    n = flat.shape[at]
    check(
        repeats.ndim <= 1 and (numel(repeats.shape) == 1 or numel(repeats.shape) == n),
        f"`repeats` of shape {repeats.shape} must have 1 or {n} elements for `self` of shape {self.shape}",
    )
    counts = reshape(repeats, [-1])
    if n != 1 and counts.shape[0] == 1:
        counts = expand(counts, [n])
    places = repeat_interleave_counts(counts, output_size=output_size)
    return index_select(flat, at, places)


@repeat_each.reference
def _(self, repeats, dim=None):
    return np.repeat(self, repeats.reshape(-1), dim if self.ndim else None)


repeat_counts.reference(lambda repeats: np.repeat(np.arange(len(repeats)), repeats))
repeat_each.samples(
    lambda s: iter(
        [
            s(s.array(3), np.array([2, 0, 1])),
            s(s.array(2, 3), np.array([2, 1, 3]), 1),
            s(s.array(2, 3), np.array([2]), 0),
            s(s.array(2, 2), np.array([1, 2, 0, 1])),
            s(s.array(2), np.array([1, 2], "int32"), 0, output_size=3),
        ]
    )
)
repeat_counts.samples(
    lambda s: iter([s(np.array([1, 0, 3])), s(s.indices(3, 0)), s(np.array([2]), output_size=2)])
)
repeat_each.error(
    "ShapeError",
    lambda s: s(s.array(3), s.indices(3, 2)),
    contains=["repeat_interleave", "repeats", "(2,)", "(3,)"],
)
repeat_each.error(
    "ValueError",
    lambda s: s(s.array(2), np.array([1, -1])),
    contains=["repeat_interleave", "repeats", "-1"],
)
repeat_counts.error(
    "ValueError",
    lambda s: s(np.array([1, 2]), output_size=4),
    contains=["repeat_interleave", "output_size", "3", "4"],
)
repeat_counts.error(
    "DTypeError", lambda s: s(s.array(2)), contains=["repeat_interleave", "repeats", "float32"]
)
