"""Test data of creation/copies: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.creation.copies import (
    cast,
    clone,
    contiguous,
    copy_,
    dense,
    fill_,
    fill_tensor,
    zero_,
)

clone.reference(lambda self, memory_format=None: self.copy())


@clone.samples
def _(s):
    yield s(s.array(2, 3))
    yield s(s.strided(2, 3))
    yield s(s.backwards(4, dtype="int64"))
    yield s(s.expanded(3, 2))
    yield s(s.array(dtype="bool"))
    yield s(s.array(0, 2, dtype="complex64"))
    yield s(s.array(2, 3, 2, 2), memory_format="channels_last")
    yield s(s.array(2, 3, 2, 2).transpose(0, 2, 3, 1), memory_format="contiguous_format")


clone.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), memory_format="channels_last"),
    contains=["clone", "memory_format", "4 dimensions", "(2, 3)"],
)
clone.error("TypeError", lambda s: s(1), contains=["clone", "self"])


@contiguous.reference
def _(self, memory_format=None):
    return np.ascontiguousarray(self).reshape(self.shape)


dense.reference(lambda self: np.array(self, order="C"))


@contiguous.samples
@dense.samples
def _(s):
    yield s(s.array(2, 3))
    yield s(s.strided(2, 3))
    yield s(s.backwards(2, 2, dtype="int64"))
    yield s(s.array())
    yield s(s.array(2, 0))


contiguous.error("TypeError", lambda s: s("x"), contains=["contiguous", "self"])
dense.error("TypeError", lambda s: s("x"), contains=["dense", "self"])


@cast.reference
def _(self, dtype):
    with np.errstate(all="ignore"):
        return (
            self.real.astype(dtype)
            if self.dtype.kind == "c" and np.dtype(dtype).kind not in "cb"
            else self.astype(dtype)
        )


@cast.samples
def _(s):
    names = ["bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64"]
    for source in names:
        for target in names:
            yield s(s.array(3, 2, dtype=source, low=0.0), target)
    yield s(s.strided(2, 3), "float64")
    yield s(s.array(), "int16")
    yield s(s.array(0, 2), "int16")


cast.error("TypeError", lambda s: s(s.array(2), "float31"), contains=["cast", "dtype"])


@copy_.reference
def _(self, src, non_blocking):
    with np.errstate(all="ignore"):
        self[...] = src.astype(self.dtype)
    return self


@copy_.samples
def _(s):
    yield s(s.array(2, 3), s.array(2, 3))
    yield s(s.array(2, 3), s.array(3))
    yield s(s.array(2, 3), s.array())
    yield s(s.strided(2, 3), s.strided(2, 3))
    yield s(s.array(2, 3, dtype="int64"), s.array(2, 1))
    yield s(s.array(0, 3), s.array(1, 3))
    yield s(s.backwards(4), s.array(4, dtype="float64"))


copy_.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(4)),
    contains=["copy_", "src", "(4,)", "(2, 3)"],
)
copy_.error(
    "ShapeError",
    lambda s: s(s.array(3), s.array(2, 3)),
    contains=["copy_", "src", "(2, 3)", "(3,)"],
)


@fill_.reference
def _(self, value):
    self[...] = value
    return self


@fill_.samples
def _(s):
    yield s(s.array(2, 3), 1.5)
    yield s(s.strided(2, 3), 2)
    yield s(s.array(3, dtype="int64"), 7)
    yield s(s.array(dtype="bool"), True)
    yield s(s.array(0, 3), 1)


@fill_tensor.reference
def _(self, value):
    self[...] = value
    return self


@fill_tensor.samples
def _(s):
    yield s(s.array(2, 3), s.array())
    yield s(s.strided(2, 3), s.array(dtype="float64"))
    yield s(s.array(3, dtype="int64"), s.array(dtype="int32"))


fill_tensor.error(
    "ShapeError", lambda s: s(s.array(2), s.array(2)), contains=["fill_", "value", "(2,)"]
)


@zero_.reference
def _(self):
    self[...] = 0
    return self


@zero_.samples
def _(s):
    yield s(s.array(2, 3))
    yield s(s.strided(2, 3))
    yield s(s.array(3, dtype="int64"))


fill_.error("TypeError", lambda s: s(s.array(2), "x"), contains=["fill_", "value"])
zero_.error("TypeError", lambda s: s(3), contains=["zero_", "self"])
