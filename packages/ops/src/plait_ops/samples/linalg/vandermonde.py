"""Test data of linalg/vandermonde: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.linalg.vandermonde import linalg_vander_, vander


@linalg_vander_.reference
def _(x, N=None):
    x = x.reshape(x.shape or (1,))
    count = x.shape[-1] if N is None else N
    return (
        x[..., None] ** np.arange(count, dtype=x.dtype if x.dtype.kind in "iu" else "int64")
    ).astype(x.dtype)


vander.reference(lambda x, N=None, increasing=False: np.vander(x, N, increasing).astype(x.dtype))
linalg_vander_.samples(
    lambda s: iter(
        [
            s(s.array(3)).loosely(4),
            s(s.array(2, 3), N=4).loosely(4),
            s(s.array(3, dtype="int64"), N=2),
            s(s.array(3), N=0),
            s(s.array(0)),
            s(s.array(), N=3),
        ]
    )
)
vander.samples(
    lambda s: iter(
        [s(s.array(3)).loosely(4), s(s.array(3, dtype="int64"), 4), s(s.array(3), 2, True)]
    )
)
linalg_vander_.error(
    "ValueError", lambda s: s(s.array(2), N=-1), contains=["linalg_vander", "`N`", "-1"]
)
vander.error("ShapeError", lambda s: s(s.array(2, 2)), contains=["vander", "`x`", "(2, 2)"])
