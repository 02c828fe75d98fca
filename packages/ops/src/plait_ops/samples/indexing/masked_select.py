"""Test data of indexing/masked_select: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.indexing.masked_select import masked_select

masked_select.reference(
    lambda self, mask: np.broadcast_arrays(self, mask)[0][np.broadcast_arrays(self, mask)[1]]
)
masked_select.samples(
    lambda s: iter(
        [
            s(s.array(3, 4), s.array(3, 4, dtype="bool")),
            s(s.array(3, 4), s.array(4, dtype="bool")),
            s(s.array(4), s.array(3, 1, dtype="bool")),
        ]
    )
)
masked_select.error(
    "DTypeError", lambda s: s(s.array(2), s.array(2)), contains=["masked_select", "mask", "float32"]
)
masked_select.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(4, dtype="bool")),
    contains=["masked_select", "broadcast", "(2, 3)", "(4,)"],
)
