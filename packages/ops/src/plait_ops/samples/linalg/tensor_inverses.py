"""Test data of linalg/tensor_inverses: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.samples.matrices import regular
from plait_ops.specs.linalg.tensor_inverses import linalg_tensorinv, linalg_tensorsolve

linalg_tensorinv.reference(lambda A, ind=2: np.linalg.tensorinv(A, ind))
linalg_tensorinv.samples(
    lambda s: iter(
        [
            s(regular(s, 6, 6).reshape(2, 3, 6)).loosely(20),
            s(regular(s, 6, 6).reshape(6, 3, 2), 1).loosely(20),
        ]
    )
)
linalg_tensorinv.error(
    "ShapeError", lambda s: s(s.array(2, 3, 4)), contains=["linalg_tensorinv", "`A`", "(2, 3, 4)"]
)
linalg_tensorinv.error(
    "ValueError", lambda s: s(s.array(2, 2), 0), contains=["linalg_tensorinv", "ind", "0"]
)


linalg_tensorsolve.reference(
    lambda A, B, dims=None: np.linalg.tensorsolve(A, B, None if dims is None else tuple(dims))
)
linalg_tensorsolve.samples(
    lambda s: iter(
        [
            s(regular(s, 6, 6).reshape(2, 3, 6), s.array(2, 3)).loosely(20),
            s(regular(s, 6, 6).reshape(6, 2, 3).transpose(1, 0, 2), s.array(6), (0, 2)).loosely(20),
        ]
    )
)
linalg_tensorsolve.error(
    "ShapeError",
    lambda s: s(s.array(2, 3, 4), s.array(2)),
    contains=["linalg_tensorsolve", "`A`", "(2, 3, 4)", "(2,)"],
)
