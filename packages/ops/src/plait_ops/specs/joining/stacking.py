"""Joining with dimensions added first, broadcasting of several tensors, and grids."""

import numpy as np

from plait_ops.alias import under_another_name
from plait_ops.calls import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    cat,
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
    unsqueeze,
)
from plait_ops.spec import Composite
from plait_ops.specs.joining.joining import cat as cat_spec
from plait_ops.specs.joining.joining import promoted
from plait_ops.words import bool_, broadcast, check


def _of_list(name, text, reference, example, samples):
    """An operator on a list of tensors that gives one."""
    operator = Composite(
        f"{name}(Tensor[] tensors) -> Tensor",
        doc=f"""
    {text}

    Raises: ValueError for an empty list, ShapeError if sizes do not fit.

    >>> import plait_core as pc
    >>> pc.{name}([pc.tensor([1, 2]), pc.tensor([3, 4])]).tolist()
    {example}
    """,
        out=True,
        dtypes="any",
    )
    operator.reference(
        lambda tensors: np.ascontiguousarray(
            reference([t.astype(promoted(tensors)) for t in tensors])
        )
    )
    operator.samples(samples)
    operator.error("ValueError", lambda s: s([]), contains=[name, "tensors"])
    return operator


def _same(s):
    yield s([s.array(2, 3), s.array(2, 3)])
    yield s([s.array(3), s.array(3, dtype="int64")])
    yield s([s.array(), s.array()])
    yield s([s.strided(2, 3, 4), s.backwards(2, 3, 4), s.array(2, 3, 4)])


hstack = _of_list(
    "hstack",
    "The `tensors` joined along dimension 1, vectors along dimension 0; 0-d tensors count as vectors.",
    np.hstack,
    "[1, 2, 3, 4]",
    _same,
)
vstack = _of_list(
    "vstack",
    "The `tensors` joined along dimension 0; a vector counts as a row.",
    np.vstack,
    "[[1, 2], [3, 4]]",
    _same,
)
row_stack = _of_list(
    "row_stack", "`vstack` under its other name.", np.vstack, "[[1, 2], [3, 4]]", _same
)
dstack = _of_list(
    "dstack",
    "The `tensors` joined along dimension 2; a matrix counts as one of depth 1, a vector as a row of that.",
    np.dstack,
    "[[[1, 3], [2, 4]]]",
    _same,
)
column_stack = _of_list(
    "column_stack",
    "The `tensors` joined along dimension 1; a vector counts as a column.",
    np.column_stack,
    "[[1, 3], [2, 4]]",
    _same,
)


@hstack.decompose
def _(tensors):
    check(
        len(tensors) > 0, "`tensors` must hold at least one tensor; got an empty list", "ValueError"
    )
    parts = [atleast_1d(t) for t in tensors]
    first = parts[0]
    return cat(parts, 0 if first.ndim == 1 else 1)


@vstack.decompose
@row_stack.decompose
def _(tensors):
    check(
        len(tensors) > 0, "`tensors` must hold at least one tensor; got an empty list", "ValueError"
    )
    return cat([atleast_2d(t) for t in tensors], 0)


@dstack.decompose
def _(tensors):
    check(
        len(tensors) > 0, "`tensors` must hold at least one tensor; got an empty list", "ValueError"
    )
    return cat([atleast_3d(t) for t in tensors], 2)


@column_stack.decompose
def _(tensors):
    check(
        len(tensors) > 0, "`tensors` must hold at least one tensor; got an empty list", "ValueError"
    )
    parts = []
    for t in tensors:
        if t.ndim <= 1:
            parts.append(reshape(t, [-1, 1]))
        else:
            parts.append(t)
    return cat(parts, 1)


hstack.error(
    "ShapeError", lambda s: s([s.array(2, 3), s.array(3, 3)]), contains=["cat", "(2, 3)", "(3, 3)"]
)

concatenate = Composite(
    "concatenate(Tensor[] tensors, int dim|axis=0) -> Tensor",
    doc=under_another_name("`cat` under NumPy's name.", "concatenate", cat_spec),
    out=True,
    dtypes="any",
)


@concatenate.decompose
def _(tensors, dim):
    return cat(tensors, dim)


concatenate.reference(
    lambda tensors, dim=0: np.concatenate([t.astype(promoted(tensors)) for t in tensors], dim)
)
concatenate.samples(
    lambda s: iter([s([s.array(2, 3), s.array(4, 3)]), s([s.array(2, 3), s.array(2, 1)], -1)])
)
concatenate.error("ValueError", lambda s: s([]), contains=["cat", "tensors"])


# ---- dimensions added where there are too few --------------------------------------------------
def _atleast(n, text, reference, example):
    operator = Composite(
        f"atleast_{n}d(Tensor(a) self) -> Tensor(a)",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> pc.atleast_{n}d(pc.tensor([1, 2])).tolist()
    {example}
    """,
        dtypes="any",
        method=False,
    )
    operator.reference(reference)
    operator.samples(
        lambda s: iter([s(s.array()), s(s.array(3)), s(s.array(2, 3)), s(s.array(2, 3, 4))])
    )
    operator.error("TypeError", lambda s: s("a"), contains=[f"atleast_{n}d", "self"])
    return operator


atleast_1d_ = _atleast(
    1, "`self` as a view, a 0-d tensor as a vector.", lambda self: np.atleast_1d(self), "[1, 2]"
)
atleast_2d_ = _atleast(
    2, "`self` as a view, a vector as a row.", lambda self: np.atleast_2d(self), "[[1, 2]]"
)
atleast_3d_ = _atleast(
    3,
    "`self` as a view, a matrix as one of depth 1, a vector as a row of that.",
    lambda self: np.atleast_3d(self),
    "[[[1], [2]]]",
)


@atleast_1d_.decompose
def _(self):
    return unsqueeze(self, 0) if self.ndim == 0 else self


@atleast_2d_.decompose
def _(self):
    if self.ndim >= 2:
        return self
    return unsqueeze(atleast_1d(self), 0)


@atleast_3d_.decompose
def _(self):
    if self.ndim >= 3:
        return self
    return unsqueeze(atleast_2d(self), 2)


# ---- several tensors ---------------------------------------------------------------------------
broadcast_tensors_ = Composite(
    "broadcast_tensors(Tensor[] tensors) -> Tensor[]",
    doc="""
    Views of the `tensors` in the shape to which they all broadcast; they must not be written.

    Raises: ShapeError if they do not broadcast.

    >>> import plait_core as pc
    >>> [x.tolist() for x in pc.broadcast_tensors([pc.tensor([1, 2]), pc.tensor([[3], [4]])])]
    [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """,
    dtypes="any",
)


@broadcast_tensors_.decompose
def _(tensors):
    shape = [1] * 0
    for t in tensors:
        shape = broadcast("tensors", shape, "tensors", t.shape)
    return [expand(t, shape) for t in tensors]


broadcast_tensors_.reference(lambda tensors: [np.array(x) for x in np.broadcast_arrays(*tensors)])
broadcast_tensors_.samples(
    lambda s: iter(
        [
            s([s.array(2, 1), s.array(3)]),
            s([s.array()]),
            s([s.array(1, 2), s.array(), s.array(4, 1)]),
        ]
    )
)
broadcast_tensors_.error(
    "ShapeError",
    lambda s: s([s.array(2), s.array(3)]),
    contains=["broadcast_tensors", "tensors", "(2,)", "(3,)"],
)

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
