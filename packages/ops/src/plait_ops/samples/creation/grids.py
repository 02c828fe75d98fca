"""Test data of creation/grids: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.samples.joining.joining import promoted
from plait_ops.specs.creation.grids import cartesian_prod, combinations, meshgrid_

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
