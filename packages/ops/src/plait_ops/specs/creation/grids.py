"""Coordinates of a grid, Cartesian products and combinations."""

from plait_ops import calls as op
from plait_ops.spec import Composite
from plait_ops.words import bool_, check

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
        grid = op.expand(op.reshape(tensors[i], own), shape)
        if indexing == "xy" and len(tensors) > 1:
            made.append(op.transpose(grid, 0, 1))
        else:
            made.append(grid)
    return made


cartesian_prod = Composite(
    "cartesian_prod(Tensor[] tensors) -> Tensor",
    doc="""
    All combinations of one element of each of the `tensors`, as rows; one tensor alone is returned as it is.

    Args:
        tensors: Vectors, or 0-d tensors.

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
    grids = op.meshgrid(tensors)
    return op.stack([op.reshape(t, [-1]) for t in grids], 1)


combinations = Composite(
    "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor",
    doc="""
    All choices of `r` elements of a vector as rows, in the order of their places in the vector. With `with_replacement` an
    element may be chosen several times.

    Raises: ShapeError unless `self` is a vector, ValueError if `r` is negative.

    >>> import plait_core as pc
    >>> pc.combinations(pc.tensor([1, 2, 3])).tolist()
    [[1, 2], [1, 3], [2, 3]]
    """,
    dtypes="any",
)


@combinations.decompose
def _(self, r, with_replacement):
    check(self.ndim == 1, f"`self` must have 1 dimension; got shape {self.shape}")
    check(r >= 0 and r <= 64, f"`r` must be in [0, 64]; got {r}", "ValueError")
    if r == 0:
        return op.narrow(self, 0, 0, 0)
    n = self.shape[0]
    # a grid point counts if each of its coordinates is larger than the one before
    grid = [n] * r
    shape = list(grid)
    chosen = op.ones(shape, dtype=bool_, device=self.device)
    for i in range(r - 1):
        pair = op.triu(
            op.ones([n, n], dtype=bool_, device=self.device), 0 if with_replacement else 1
        )
        own = [1] * r
        own[i] = n
        own[i + 1] = n
        chosen = op.logical_and(chosen, op.reshape(pair, own))
    rows = op.nonzero(chosen)
    return op.stack([op.index_select(self, 0, op.select(rows, 1, i)) for i in range(r)], 1)
