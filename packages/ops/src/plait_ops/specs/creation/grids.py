"""Coordinates of a grid, Cartesian products and combinations."""

import numpy as np

from plait_ops.calls import (
    expand,
    index_select,
    logical_and,
    meshgrid,
    narrow,
    nonzero,
    ones,
    reshape,
    select,
    stack,
    transpose,
    triu,
)
from plait_ops.spec import Composite
from plait_ops.words import bool_, check, promote_all


def promoted(tensors):
    """Return the NumPy dtype that the tensors promote to."""
    return np.dtype(promote_all("tensors", tensors))


meshgrid_ = Composite(
    'meshgrid(Tensor[] tensors, *, str indexing="ij") -> Tensor[]',
    doc="""
    The coordinates of a grid: tensor `i` of the result has shape ``(n0, n1, ...)`` and holds ``tensors[i]`` along dimension `i`.
    With `indexing` "xy" the first two dimensions are swapped, as NumPy does by default. The results are views that must not
    be written.

    Raises: ShapeError unless all have at most 1 dimension, ValueError for another `indexing`.

    >>> import plait_core as pc
    >>> [x.tolist() for x in pc.meshgrid([pc.tensor([1, 2]), pc.tensor([3, 4, 5])])]
    [[[1, 1, 1], [2, 2, 2]], [[3, 4, 5], [3, 4, 5]]]
    """,
    dtypes="any",
)


@meshgrid_.decompose
def _(tensors, indexing):
    check(
        indexing == "ij" or indexing == "xy",
        f'`indexing` must be "ij" or "xy"; got "{indexing}"',
        "ValueError",
    )
    check(
        len(tensors) > 0, "`tensors` must hold at least one tensor; got an empty list", "ValueError"
    )
    shape = [1] * len(tensors)
    for i in range(len(tensors)):
        t = tensors[i]
        check(t.ndim <= 1, f"`tensors` must have at most 1 dimension; got, at {i}, shape {t.shape}")
        if t.ndim == 1:
            shape[i] = t.shape[0]
    made = []
    for i in range(len(tensors)):
        own = [1] * len(tensors)
        own[i] = shape[i]
        grid = expand(reshape(tensors[i], own), shape)
        if indexing == "xy" and len(tensors) > 1:
            made.append(transpose(grid, 0, 1))
        else:
            made.append(grid)
    return made


meshgrid_.reference(
    lambda tensors, indexing="ij": [np.array(x) for x in np.meshgrid(*tensors, indexing=indexing)]
)
meshgrid_.samples(
    lambda s: iter(
        [
            s([s.array(2), s.array(3)]),
            s([s.array(2), s.array(3), s.array(4)], indexing="xy"),
            s([s.array(2), s.array()]),
            s([s.array(3)], indexing="xy"),
        ]
    )
)
meshgrid_.error(
    "ShapeError", lambda s: s([s.array(2, 3)]), contains=["meshgrid", "tensors", "(2, 3)"]
)
meshgrid_.error(
    "ValueError", lambda s: s([s.array(2)], indexing="ji"), contains=["meshgrid", "indexing", "ji"]
)

cartesian_prod = Composite(
    "cartesian_prod(Tensor[] tensors) -> Tensor",
    doc="""
    All combinations of one element of each of the `tensors`, as rows; one tensor alone is returned as it is.

    Raises: ShapeError unless all are vectors, ValueError for an empty list.

    >>> import plait_core as pc
    >>> pc.cartesian_prod([pc.tensor([1, 2]), pc.tensor([3, 4])]).tolist()
    [[1, 3], [1, 4], [2, 3], [2, 4]]
    """,
    dtypes="any",
)


@cartesian_prod.decompose
def _(tensors):
    check(
        len(tensors) > 0, "`tensors` must hold at least one tensor; got an empty list", "ValueError"
    )
    for i in range(len(tensors)):
        t = tensors[i]
        check(t.ndim == 1, f"`tensors` must be vectors; got, at {i}, shape {t.shape}")
    if len(tensors) == 1:
        return tensors[0]
    grids = meshgrid(tensors)
    return stack([reshape(t, [-1]) for t in grids], 1)


@cartesian_prod.reference
def _(tensors):
    if len(tensors) == 1:
        return tensors[0]
    return np.stack(
        [x.reshape(-1).astype(promoted(tensors)) for x in np.meshgrid(*tensors, indexing="ij")], 1
    )


cartesian_prod.samples(
    lambda s: iter(
        [s([s.array(2), s.array(3)]), s([s.array(3)]), s([s.array(2), s.array(1), s.array(2)])]
    )
)
cartesian_prod.error(
    "ShapeError", lambda s: s([s.array(2, 3)]), contains=["cartesian_prod", "tensors", "(2, 3)"]
)

combinations = Composite(
    "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
    doc="""
    All choices of `r` elements of a vector as rows, in the order of their places; with `with_replacement` an element may be
    chosen again.

    Raises: ShapeError unless `self` is a vector, ValueError if `r` is negative.

    >>> import plait_core as pc
    >>> pc.combinations(pc.tensor([1, 2, 3])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """,
    dtypes="any",
    method=False,
)


@combinations.decompose
def _(self, r, with_replacement):
    check(self.ndim == 1, f"`self` must have 1 dimension; got shape {self.shape}")
    check(r >= 0 and r <= 64, f"`r` must be in [0, 64]; got {r}", "ValueError")
    if r == 0:
        return narrow(self, 0, 0, 0)
    n = self.shape[0]
    # a place of the grid counts if each of its coordinates is larger than the one before
    grid = [n] * r
    shape = list(grid)
    chosen = ones(shape, dtype=bool_, device=self.device)
    for i in range(r - 1):
        pair = triu(ones([n, n], dtype=bool_, device=self.device), 0 if with_replacement else 1)
        own = [1] * r
        own[i] = n
        own[i + 1] = n
        chosen = logical_and(chosen, reshape(pair, own))
    rows = nonzero(chosen)
    return stack([index_select(self, 0, select(rows, 1, i)) for i in range(r)], 1)


@combinations.reference
def _(self, r=2, with_replacement=False):
    import itertools

    if r == 0:
        return self[:0]
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(self.tolist(), r))
    return np.array(rows, self.dtype).reshape(len(rows), r)


combinations.samples(
    lambda s: iter(
        [
            s(s.array(4)),
            s(s.array(4), 3),
            s(s.array(3), 2, True),
            s(s.array(3, dtype="int64"), 1),
            s(s.array(2), 3),
            s(s.array(3), 0),
            s(s.array(0)),
        ]
    )
)
combinations.error(
    "ShapeError", lambda s: s(s.array(2, 3)), contains=["combinations", "self", "(2, 3)"]
)
combinations.error("ValueError", lambda s: s(s.array(3), -1), contains=["combinations", "r", "-1"])
