"""Repeating, reversing and rolling."""

import numpy as np

from plait_ops.calls import cat, clone, dense, expand, narrow, reshape, unsqueeze
from plait_ops.spec import Composite, View
from plait_ops.words import (
    check,
    max_dims,
    reduce_dims,
    sizes,
    view,
    wrap_dim,
)

LARGEST = 2**31 - 1

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
        check(  # where another size is 0, nothing has bounded this one
            repeats[i] <= LARGEST,
            f"`repeats` must be at most {LARGEST}; got {repeats}",
            "ValueError",
        )
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
    "repeat_interleave(Tensor self, int repeats, int? dim|axis=None, *, int? output_size=None) -> Tensor",
    doc="""
    Each element of `self` along `dim` repeated `repeats` times in a row; `dim` None: of the flattened tensor.

    Raises: ValueError if `repeats` is negative, or `output_size` is given and not the size that follows.

    >>> import plait_core as pc
    >>> pc.repeat_interleave(pc.tensor([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """,
    dtypes="any",
)


@repeat_interleave.decompose
def _(self, repeats, dim, output_size):
    check(
        repeats >= 0 and repeats <= LARGEST,
        f"`repeats` must be in [0, {LARGEST}]; got {repeats}",
        "ValueError",
    )
    flat = reshape(self, [-1]) if dim is None else self
    at = wrap_dim("dim", dim if dim is not None else 0, flat.shape)
    if flat.ndim == 0:
        flat = reshape(flat, [1])
    shape = list(flat.shape)
    wide = unsqueeze(flat, at + 1)
    size = list(wide.shape)
    size[at + 1] = repeats
    sizes("repeats", size)
    shape[at] = shape[at] * repeats
    if output_size is not None:
        check(
            int(output_size) == shape[at],
            f"`output_size` must be {shape[at]} for `repeats` {repeats}; got {int(output_size)}",
            "ValueError",
        )
    return reshape(clone(expand(wide, size)), shape)


repeat_interleave.reference(lambda self, repeats, dim=None: np.repeat(self, repeats, dim))
repeat_interleave.samples(
    lambda s: iter(
        [
            s(s.array(2, 3), 2),
            s(s.array(2, 3), 3, 0, output_size=6),
            s(s.array(2, 3), 2, -1),
            s(s.array(2), 0),
        ]
    )
)
repeat_interleave.error(
    "ValueError", lambda s: s(s.array(2), -1), contains=["repeat_interleave", "repeats", "-1"]
)
repeat_interleave.error(
    "IndexError", lambda s: s(s.array(2), 2, 1), contains=["repeat_interleave", "dim", "(2,)"]
)
repeat_interleave.error(
    "ValueError",
    lambda s: s(s.array(2), 2, output_size=5),
    contains=["repeat_interleave", "output_size", "4", "5"],
)
