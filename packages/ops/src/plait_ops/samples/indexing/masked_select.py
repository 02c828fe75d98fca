"""Test data of indexing/masked_select: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.indexing.masked_select import masked_select, values, write

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


values.reference(lambda self, mask, count: self[mask])


@values.samples
def _(s):
    for x in (s.array(3, 4), s.strided(5, 3), s.array(700), s.array(4, dtype="complex64")):
        mask = s.array(*x.shape, dtype="bool")
        yield s(x, mask, int(mask.sum()))
    yield s(s.array(4, dtype="int64"), np.zeros(4, "bool"), 0)
    yield s(s.array(), np.array(True), 1)


values.error(
    "ValueError",
    lambda s: s(s.array(2), s.array(2, dtype="bool"), -1),
    contains=["masked_values", "count", "-1"],
)
values.error(
    "ShapeError",
    lambda s: s(s.array(2), s.array(3, dtype="bool"), 1),
    contains=["masked_values", "mask", "(2,)", "(3,)"],
)


@write.reference
def _(self, mask, source):
    self[mask] = source
    return self


@write.samples
def _(s):
    for x in (s.array(3, 4), s.strided(5, 3), s.array(700), s.array(4, dtype="complex64")):
        mask = s.array(*x.shape, dtype="bool")
        yield s(x, mask, s.array(int(mask.sum()), dtype=str(x.dtype)))
    yield s(s.array(), np.array(True), s.array(1))


write.error(
    "ShapeError",
    lambda s: s(s.array(2), s.array(2, dtype="bool"), s.array(1, 1)),
    contains=["masked_write_", "source", "(1, 1)"],
)
write.error(
    "DTypeError",
    lambda s: s(s.array(2), s.array(2, dtype="bool"), s.array(2, dtype="int64")),
    contains=["masked_write_", "source", "int64"],
)
