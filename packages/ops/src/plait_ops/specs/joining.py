"""Joining, splitting, repeating and reversing."""

import numpy as np

from plait_ops.calls import clone, dense, expand, narrow, reshape, select, unsqueeze, zeros
from plait_ops.spec import Composite, Operator, View
from plait_ops.words import (
    cast_argument,
    check,
    max_dims,
    promote_all,
    reduce_dims,
    result,
    sizes,
    to_dtype,
    view,
    wrap_dim,
)

cat = Operator(
    "cat(Tensor[] tensors, int dim|axis=0) -> Tensor",
    doc="""
    The `tensors` one after the other along `dim`. They have the same sizes in all other dimensions; a 1-d tensor without
    elements fits everywhere and adds nothing. Dtypes are promoted.

    Raises: ValueError for an empty list, ShapeError if sizes differ, IndexError for a `dim` out of range.

    >>> import plait_core as pc
    >>> pc.cat([pc.tensor([1]), pc.tensor([2, 3])]).tolist()
    [1, 2, 3]
    """,
    out=True,
    dtypes="any",
    kernel="all tensors have the dtype of the result; those of shape (0,) among others are to be skipped.",
)


@cat.shape
def _(tensors, dim):
    check(
        len(tensors) > 0, "`tensors` must hold at least one tensor; got an empty list", "ValueError"
    )
    first = tensors[0]
    for t in tensors:
        if t.ndim != 1 or t.shape[0] != 0:
            first = t
            break
    at = wrap_dim("dim", dim, first.shape)
    check(first.ndim > 0, "`tensors` must have at least 1 dimension; got shape ()")
    total = 0
    for i in range(len(tensors)):
        t = tensors[i]
        if t.ndim != 1 or t.shape[0] != 0 or first.ndim == 1:
            check(
                t.ndim == first.ndim,
                f"`tensors` must have the same number of dimensions; got shape {first.shape} and, at {i}, {t.shape}",
            )
            for d in range(first.ndim):
                check(
                    d == at or t.shape[d] == first.shape[d],
                    f"`tensors` must have the same sizes except in dimension {at}; got shape {first.shape} and, at {i}, {t.shape}",
                )
            total += t.shape[at]
    dtype = promote_all("tensors", tensors)
    cast_argument("tensors", dtype)
    shape = list(first.shape)
    shape[at] = total
    return result(shape, dtype)


@cat.vjp("tensors", meta=["tensors"])
def _(g, tensors, dim):
    gradients = []
    offset = 0
    for t in tensors:
        if t.ndim == 1 and t.shape[0] == 0:
            gradients.append(zeros([0], dtype=t.dtype, device=g.device))
        else:
            gradients.append(to_dtype(narrow(g, dim, offset, t.shape[dim]), t.dtype))
            offset += t.shape[dim]
    return gradients


@cat.reference
def _(tensors, dim=0):
    kept = [t for t in tensors if t.shape != (0,)] or list(tensors)
    dtype = promoted(tensors)
    return np.concatenate([t.astype(dtype) for t in kept], axis=dim)


def promoted(tensors):
    """Return the NumPy dtype that the tensors promote to."""
    return np.dtype(promote_all("tensors", tensors))


@cat.samples
def _(s):
    yield s([s.array(2, 3), s.array(4, 3)])
    yield s([s.array(2, 3), s.array(2, 1), s.array(2, 0)], 1)
    yield s([s.strided(2, 3), s.backwards(2, 3)], -1)
    yield s([s.array(3, dtype="int64"), s.array(2, dtype="float32")])
    yield s([s.array(3, dtype="bool")])
    yield s([s.array(0), s.array(2, 3)], 1)
    yield s([s.array(2, 2, dtype="complex64"), s.array(1, 2, dtype="complex64")])
    yield s([s.array(1, 2, dtype="float16"), s.array(1, 2, dtype="float16")], 0)
    yield s([s.array(2, 2)] * 70, 0)


cat.error("ValueError", lambda s: s([]), contains=["cat", "tensors", "empty"])
cat.error(
    "ShapeError",
    lambda s: s([s.array(2, 3), s.array(2, 4)]),
    contains=["cat", "tensors", "(2, 3)", "(2, 4)"],
)
cat.error(
    "ShapeError",
    lambda s: s([s.array(2, 3), s.array(3)]),
    contains=["cat", "tensors", "(2, 3)", "(3,)"],
)
cat.error("ShapeError", lambda s: s([s.array(), s.array()]), contains=["cat", "tensors", "()"])
cat.error("IndexError", lambda s: s([s.array(2, 3)], 2), contains=["cat", "dim", "(2, 3)", "2"])
cat.error("TypeError", lambda s: s([s.array(2, 3), 1]), contains=["cat", "tensors"])


concat = Composite(
    "concat(Tensor[] tensors, int dim|axis=0) -> Tensor",
    doc="`cat` under the array API's name.",
    out=True,
    dtypes="any",
)


@concat.decompose
def _(tensors, dim):
    return cat(tensors, dim)


concat.reference(lambda tensors, dim=0: cat(tensors, dim))
concat.samples(
    lambda s: iter([s([s.array(2, 3), s.array(4, 3)]), s([s.array(2, 3), s.array(2, 1)], -1)])
)
concat.error("ValueError", lambda s: s([]), contains=["cat", "tensors"])


stack = Composite(
    "stack(Tensor[] tensors, int dim|axis=0) -> Tensor",
    doc="""
    The `tensors`, all of one shape, along a new dimension `dim`, which lies in ``[-ndim - 1, ndim]``.

    Raises: ValueError for an empty list, ShapeError if shapes differ, IndexError for a `dim` out of range.

    >>> import plait_core as pc
    >>> pc.stack([pc.tensor([1, 2]), pc.tensor([3, 4])], 1).tolist()
    [[1, 3], [2, 4]]
    """,
    out=True,
    dtypes="any",
)


@stack.decompose
def _(tensors, dim):
    check(
        len(tensors) > 0, "`tensors` must hold at least one tensor; got an empty list", "ValueError"
    )
    first = tensors[0]
    parts = []
    for i in range(len(tensors)):
        t = tensors[i]
        check(
            t.shape == first.shape,
            f"`tensors` must have one shape; got {first.shape} and, at {i}, {t.shape}",
        )
        parts.append(unsqueeze(t, dim))
    return cat(parts, dim)


stack.reference(
    lambda tensors, dim=0: np.stack([t.astype(promoted(tensors)) for t in tensors], axis=dim)
)


@stack.samples
def _(s):
    yield s([s.array(2, 3), s.array(2, 3)])
    yield s([s.array(2, 3), s.strided(2, 3)], -1)
    yield s([s.array(), s.array()])
    yield s([s.array(3, dtype="int64"), s.array(3)], 1)


stack.error("ValueError", lambda s: s([]), contains=["stack", "tensors", "empty"])
stack.error(
    "ShapeError",
    lambda s: s([s.array(2), s.array(3)]),
    contains=["stack", "tensors", "(2,)", "(3,)"],
)
stack.error("IndexError", lambda s: s([s.array(2)], 2), contains=["unsqueeze", "dim", "(2,)"])


# ---- splitting -----------------------------------------------------------------------------------------------------
split = Composite(
    "split(Tensor(a) self, int split_size, int dim|axis=0) -> Tensor(a)[]",
    doc="""
    Views of `split_size` elements each along `dim`; the last has what is left.

    Raises: ValueError if `split_size` is below 1 (0 is allowed for a dimension of size 0).

    >>> import plait_core as pc
    >>> [part.tolist() for part in pc.arange(5).split(2)]
    [[0, 1], [2, 3], [4]]
    """,
    dtypes="any",
)
split_sizes = Composite(
    "split.sizes(Tensor(a) self, int[] split_sizes, int dim|axis=0) -> Tensor(a)[]",
    doc="""
    Views of `split_sizes` elements along `dim`, one after the other.

    Raises: ValueError if the sizes are negative or do not add up to the size of the dimension.

    >>> import plait_core as pc
    >>> [part.tolist() for part in pc.arange(5).split([1, 4])]
    [[0], [1, 2, 3, 4]]
    """,
    dtypes="any",
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
        parts.append(narrow(self, at, i * split_size, min(split_size, n - i * split_size)))
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
        parts.append(narrow(self, at, offset, size))
        offset += size
    return parts


@split.reference
def _(self, split_size, dim=0):
    n = self.shape[dim]
    starts = range(0, max(n, 1), max(split_size, 1))
    return [np.take(self, range(i, min(i + split_size, n)), axis=dim) for i in starts]


@split_sizes.reference
def _(self, split_sizes, dim=0):
    return np.split(self, np.cumsum(split_sizes)[:-1], axis=dim)


split.samples(
    lambda s: iter(
        [s(s.array(5), 2), s(s.array(2, 6), 3, -1), s(s.array(2, 3), 5), s(s.array(0, 3), 2)]
    )
)
split_sizes.samples(
    lambda s: iter([s(s.array(5), (1, 4)), s(s.array(2, 6), (1, 2, 3), -1), s(s.array(3), (0, 3))])
)
split.error("ValueError", lambda s: s(s.array(3), 0), contains=["split", "split_size", "0", "3"])
split.error("ValueError", lambda s: s(s.array(3), -1), contains=["split", "split_size", "-1"])
split.error("IndexError", lambda s: s(s.array(3), 1, 1), contains=["split", "dim", "(3,)"])
split_sizes.error(
    "ValueError", lambda s: s(s.array(3), (1, 1)), contains=["split", "split_sizes", "(1, 1)", "3"]
)
split_sizes.error(
    "ValueError", lambda s: s(s.array(3), (4, -1)), contains=["split", "split_sizes", "(4, -1)"]
)


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
)


@chunk.decompose
def _(self, chunks, dim):
    check(chunks >= 1, f"`chunks` must be at least 1; got {chunks}", "ValueError")
    check(self.ndim > 0, "`self` must have at least 1 dimension; got shape ()")
    at = wrap_dim("dim", dim, self.shape)
    return split(
        self, max((self.shape[at] + chunks - 1) // chunks, 1 if self.shape[at] > 0 else 0), at
    )


@chunk.reference
def _(self, chunks, dim=0):
    n = self.shape[dim]
    size = -(-n // chunks)
    return [
        np.take(self, range(i, min(i + size, n)), axis=dim)
        for i in range(0, max(n, 1), max(size, 1))
    ]


chunk.samples(lambda s: iter([s(s.array(5), 2), s(s.array(2, 6), 3, 1), s(s.array(2), 4)]))
chunk.error("ValueError", lambda s: s(s.array(3), 0), contains=["chunk", "chunks", "0"])


unbind = Composite(
    "unbind(Tensor(a) self, int dim|axis=0) -> Tensor(a)[]",
    doc="""
    The slices of `self` along `dim`, without that dimension.

    Raises: ShapeError for a 0-d tensor, IndexError for a `dim` out of range.

    >>> import plait_core as pc
    >>> [row.tolist() for row in pc.tensor([[1, 2], [3, 4]]).unbind()]
    [[1, 2], [3, 4]]
    """,
    dtypes="any",
)


@unbind.decompose
def _(self, dim):
    check(self.ndim > 0, "`self` must have at least 1 dimension; got shape ()")
    at = wrap_dim("dim", dim, self.shape)
    return [select(self, at, i) for i in range(self.shape[at])]


unbind.reference(lambda self, dim=0: [np.take(self, i, axis=dim) for i in range(self.shape[dim])])
unbind.samples(lambda s: iter([s(s.array(3)), s(s.array(2, 3), -1), s(s.array(0, 2))]))
unbind.error("ShapeError", lambda s: s(s.array()), contains=["unbind", "self", "()"])
unbind.error("IndexError", lambda s: s(s.array(2), 1), contains=["unbind", "dim", "(2,)"])


# ---- repeating and reversing ---------------------------------------------------------------------------------------
flip = View(
    "flip_view(Tensor(a) self, int[] dims) -> Tensor(a)",
    doc="`self` with the order of elements along `dims` reversed, as a view with negative strides.",
    internal=True,
)


@flip.shape
def _(self, dims):
    strides = list(self.strides)
    offset = 0
    if len(dims) > 0:
        for at in reduce_dims("dims", dims, self.shape):
            if self.ndim > 0 and self.shape[at] > 0:
                strides[at] = -self.strides[at]
                offset += (self.shape[at] - 1) * self.strides[at]
    return view(self, self.shape, strides, offset)


@flip.vjp("self")
def _(g, dims):
    return flip(g, dims)


flip_copy = Composite(
    "flip(Tensor self, int[]* dims|axis) -> Tensor",
    doc="""
    A copy of `self` with the order of elements along `dims` reversed.

    Raises: IndexError for a dim out of range, ValueError for a repeated one.

    >>> import plait_core as pc
    >>> pc.flip(pc.tensor([1, 2, 3]), 0).tolist()
    [3, 2, 1]
    """,
    dtypes="any",
)


@flip_copy.decompose
def _(self, dims):
    return dense(flip(self, dims))


def _flip(self, dims):
    return np.flip(self, dims) if self.ndim and len(dims) else self


flip.reference(_flip)
flip_copy.reference(_flip)
for each in (flip, flip_copy):
    each.samples(
        lambda s: iter(
            [
                s(s.array(4), (0,)),
                s(s.array(2, 3), (0, -1)),
                s(s.array(2, 3), (1,)),
                s(s.strided(2, 3), (0,)),
                s(s.array(0, 2), (0,)),
            ]
        )
    )
    each.error(
        "IndexError", lambda s: s(s.array(2, 3), (2,)), contains=["flip", "dims", "(2, 3)", "2"]
    )
    each.error(
        "ValueError", lambda s: s(s.array(2, 3), (1, -1)), contains=["flip", "dims", "(1, -1)"]
    )


roll = Composite(
    "roll(Tensor self, int[] shifts, int[]? dims|axis=None) -> Tensor",
    doc="""
    The elements of `self` moved by `shifts` places along `dims`, those that fall off come in again at the other end.
    `dims` None: of the flattened tensor.

    Raises: ValueError if the two lists differ in length, IndexError for a dim out of range.

    >>> import plait_core as pc
    >>> pc.roll(pc.tensor([1, 2, 3, 4]), 1).tolist()
    [4, 1, 2, 3]
    """,
    dtypes="any",
)


@roll.decompose
def _(self, shifts, dims):
    if dims is None:
        check(
            len(shifts) == 1,
            f"`shifts` must be one number where `dims` is None; got {shifts}",
            "ValueError",
        )
        return reshape(roll_one(reshape(self, [-1]), shifts[0], 0), self.shape)
    check(
        len(shifts) == len(dims),
        f"`shifts` {shifts} and `dims` {dims} must be of one length",
        "ValueError",
    )
    made = clone(self)
    for shift, dim in zip(shifts, dims, strict=True):
        made = roll_one(made, shift, dim)
    return made


roll_one = Composite(
    "roll_one(Tensor self, int shift, int dim) -> Tensor",
    doc="`roll` along one dimension.",
    dtypes="any",
    internal=True,
)


@roll_one.decompose
def _(self, shift, dim):
    at = wrap_dim("dims", dim, self.shape)
    if self.ndim == 0 or self.shape[at] == 0:
        return clone(self)
    k = shift % self.shape[at]
    return cat(
        [narrow(self, at, self.shape[at] - k, k), narrow(self, at, 0, self.shape[at] - k)], at
    )


roll.reference(
    lambda self, shifts, dims=None: np.roll(self, shifts if dims is not None else shifts[0], dims)
)
roll_one.reference(lambda self, shift, dim: np.roll(self, shift, dim))
roll.samples(
    lambda s: iter(
        [
            s(s.array(5), (2,)),
            s(s.array(2, 3), (1, -1), (0, 1)),
            s(s.array(2, 3), (4,)),
            s(s.array(0), (1,), (0,)),
        ]
    )
)
roll_one.samples(lambda s: iter([s(s.array(5), 2, 0), s(s.array(2, 3), -1, -1)]))
roll.error(
    "ValueError",
    lambda s: s(s.array(2, 3), (1, 2), (0,)),
    contains=["roll", "shifts", "dims", "(1, 2)", "(0,)"],
)
roll_one.error("IndexError", lambda s: s(s.array(3), 1, 1), contains=["roll_one", "dims", "(3,)"])


tile = Composite(
    "tile(Tensor self, int[]* dims) -> Tensor",
    doc="""
    `self` repeated `dims` times along each dimension, as NumPy's ``tile``: the shorter of shape and `dims` is filled up with 1
    in front.

    Raises: ValueError for a negative number.

    >>> import plait_core as pc
    >>> pc.tile(pc.tensor([1, 2]), 2).tolist()
    [1, 2, 1, 2]
    """,
    dtypes="any",
)
repeat = Composite(
    "repeat(Tensor self, int[]* repeats) -> Tensor",
    doc="""
    `self` repeated `repeats` times along each dimension; there must be one number for each, more make new dimensions in front.

    Raises: ShapeError if there are fewer numbers than dimensions, ValueError for a negative one.

    >>> import plait_core as pc
    >>> pc.tensor([1, 2]).repeat(2, 1).tolist()
    [[1, 2], [1, 2]]
    """,
    dtypes="any",
)


@repeat.decompose
def _(self, repeats):
    lead = len(repeats) - self.ndim
    check(
        lead >= 0,
        f"`repeats` {repeats} must have a number for each dimension of shape {self.shape}",
    )
    max_dims("repeats", 2 * len(repeats))
    wide = []
    apart = []
    joined = []
    for i in range(len(repeats)):
        check(repeats[i] >= 0, f"`repeats` must not be negative; got {repeats}", "ValueError")
        n = self.shape[i - lead] if i >= lead else 1
        apart.append(1)
        apart.append(n)
        wide.append(repeats[i])
        wide.append(n)
    sizes("repeats", wide)
    for i in range(len(repeats)):
        joined.append(wide[2 * i] * wide[2 * i + 1])
    return reshape(clone(expand(reshape(self, apart), wide)), joined)


@tile.decompose
def _(self, dims):
    times = list(dims)
    if len(dims) < self.ndim:
        times = [1] * (self.ndim - len(dims)) + list(dims)
    return repeat(self, times)


repeat.reference(lambda self, repeats: np.tile(self, repeats))
tile.reference(lambda self, dims: np.tile(self, dims))
repeat.samples(
    lambda s: iter(
        [
            s(s.array(2, 3), 2, 1),
            s(s.array(2), (3, 2)),
            s(s.array(), (2,)),
            s(s.array(2, 3), (0, 1)),
        ]
    )
)
tile.samples(
    lambda s: iter([s(s.array(2, 3), 2), s(s.array(2), (3, 2)), s(s.array(2, 2), (2, 1, 2))])
)
repeat.error(
    "ShapeError", lambda s: s(s.array(2, 3), (2,)), contains=["repeat", "repeats", "(2,)", "(2, 3)"]
)
repeat.error("ValueError", lambda s: s(s.array(2), (-1,)), contains=["repeat", "repeats", "(-1,)"])
repeat.error(
    "ShapeError", lambda s: s(s.array(1), (2**62, 4)), contains=["repeat", "repeats", "2**63"]
)
tile.error("ValueError", lambda s: s(s.array(2), (-1,)), contains=["repeat", "(-1,)"])


repeat_interleave = Composite(
    "repeat_interleave(Tensor self, int repeats, int? dim=None) -> Tensor",
    doc="""
    Each element of `self` along `dim` repeated `repeats` times in a row; `dim` None: of the flattened tensor.

    Raises: ValueError if `repeats` is negative.

    >>> import plait_core as pc
    >>> pc.repeat_interleave(pc.tensor([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """,
    dtypes="any",
)


@repeat_interleave.decompose
def _(self, repeats, dim):
    check(repeats >= 0, f"`repeats` must not be negative; got {repeats}", "ValueError")
    flat = reshape(self, [-1]) if dim is None else self
    at = wrap_dim("dim", dim if dim is not None else 0, flat.shape)
    if flat.ndim == 0:
        flat = reshape(flat, [1])
    shape = list(flat.shape)
    wide = unsqueeze(flat, at + 1)
    size = list(wide.shape)
    size[at + 1] = repeats
    shape[at] = shape[at] * repeats
    return reshape(clone(expand(wide, size)), shape)


repeat_interleave.reference(lambda self, repeats, dim=None: np.repeat(self, repeats, dim))
repeat_interleave.samples(
    lambda s: iter(
        [s(s.array(2, 3), 2), s(s.array(2, 3), 3, 0), s(s.array(2, 3), 2, -1), s(s.array(2), 0)]
    )
)
repeat_interleave.error(
    "ValueError", lambda s: s(s.array(2), -1), contains=["repeat_interleave", "repeats", "-1"]
)
repeat_interleave.error(
    "IndexError", lambda s: s(s.array(2), 2, 1), contains=["repeat_interleave", "dim", "(2,)"]
)
