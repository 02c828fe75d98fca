"""Test data of creation/triangles: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.creation.triangles import tril, tril_indices, triu, triu_indices


def _triangle(operator, reference):
    name = operator.schema.base

    operator.reference(
        lambda self, diagonal=0: reference(self, int(np.clip(diagonal, -(2**31), 2**31)))
    )

    @operator.samples
    def _(s):
        yield s(s.array(3, 3))
        yield s(s.array(3, 4), 1)
        yield s(s.array(4, 3), -2)
        yield s(s.array(2, 3, 3), 10)
        yield s(s.strided(3, 4), -10)
        yield s(s.backwards(2, 3, 4), 1)
        yield s(s.array(3, 3, dtype="int64"))
        yield s(s.array(3, 3, dtype="bool"))
        yield s(s.array(3, 3, dtype="complex64"))
        yield s(s.array(2, 0, 3))
        yield s(s.array(3, 3), 2**62)

    operator.error(
        "ShapeError", lambda s: s(s.array(3)), contains=[name, "self", "2 dimensions", "(3,)"]
    )
    operator.error("TypeError", lambda s: s(s.array(3, 3), 0.5), contains=[name, "diagonal"])


_triangle(tril, np.tril)
_triangle(triu, np.triu)


def _triangle_indices(operator, reference):
    name = operator.schema.base
    operator.reference(
        lambda row, col, offset=0, dtype="int64": np.stack(reference(row, offset, col)).astype(
            dtype
        )
    )
    operator.samples(
        lambda s: iter(
            [s(3, 3), s(3, 4, 1), s(4, 3, -1, dtype="int32"), s(0, 3), s(2, 2, 5), s(2, 2, -5)]
        )
    )
    operator.error("ValueError", lambda s: s(-1, 3), contains=[name, "row", "-1"])
    operator.error(
        "DTypeError", lambda s: s(2, 3, dtype="float32"), contains=[name, "dtype", "float32"]
    )


_triangle_indices(tril_indices, np.tril_indices)
_triangle_indices(triu_indices, np.triu_indices)
