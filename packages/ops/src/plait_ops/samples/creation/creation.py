"""Test data of creation/creation: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.creation.creation import (
    empty,
    empty_like,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)


@empty.reference
def _(size, dtype=None, memory_format=None):
    return np.zeros(size, dtype or "float32")


@empty.samples
def _(s):
    yield s((2, 3))
    yield s(2, 3, dtype="int64")
    yield s(())
    yield s((0, 4), dtype="bool")
    yield s((2, 3, 2, 2), memory_format="channels_last")


empty.error(
    "ShapeError",
    lambda s: s((2, 3), memory_format="channels_last"),
    contains=["empty", "memory_format", "(2, 3)"],
)
empty.error("ShapeError", lambda s: s((2, -1)), contains=["empty", "size", "(2, -1)"])
empty.error("ShapeError", lambda s: s((2**40, 2**40)), contains=["empty", "size", "2**63"])
empty.error("ShapeError", lambda s: s((1,) * 65), contains=["empty", "size", "64", "65"])


@empty_like.reference
def _(self, dtype=None, memory_format=None):
    return np.empty_like(self, dtype=dtype)


@empty_like.samples
def _(s):
    yield s(s.array(2, 3))
    yield s(s.array(2, 3, 4).transpose(2, 0, 1), dtype="int32")
    yield s(s.array(0))


@full.reference
def _(size, value, dtype=None):
    return np.full(
        size,
        value,
        dtype
        or {"b": "bool", "i": "int64", "f": "float32", "c": "complex64"}[
            np.asarray(value).dtype.kind
        ],
    )


@full.samples
def _(s):
    yield s((2, 3), 1.5)
    yield s((4,), 7)
    yield s((), True)
    yield s((0, 2), 1)
    yield s((2,), 3, dtype="float64")
    yield s((3,), 1, dtype="uint8")


full.error("ShapeError", lambda s: s((2, -1), 0), contains=["full", "size", "(2, -1)"])
full.error("ShapeError", lambda s: s((2**62, 4), 0), contains=["full", "size", "2**63"])
full.error("ShapeError", lambda s: s((1,) * 65, 0), contains=["full", "size", "64", "65"])
full.error("TypeError", lambda s: s((2,), "x"), contains=["full", "value"])


@full_like.reference
def _(self, value, dtype=None, memory_format=None):
    return np.full_like(self, value, dtype=dtype)


@full_like.samples
def _(s):
    yield s(s.array(2, 3), 1.5)
    yield s(s.strided(2, 3), 4, dtype="int64")
    yield s(s.array(dtype="int32"), 2)


zeros.reference(lambda size, dtype=None: np.zeros(size, dtype or "float32"))
ones.reference(lambda size, dtype=None: np.ones(size, dtype or "float32"))
zeros_like.reference(lambda self, dtype=None, memory_format=None: np.zeros_like(self, dtype=dtype))
ones_like.reference(lambda self, dtype=None, memory_format=None: np.ones_like(self, dtype=dtype))


@zeros.samples
@ones.samples
def _(s):
    yield s((2, 3))
    yield s(2, 3, dtype="int64")
    yield s(())
    yield s((0, 4), dtype="bool")


@zeros_like.samples
@ones_like.samples
def _(s):
    yield s(s.array(2, 3))
    yield s(s.array(2, 3, 4).transpose(2, 0, 1), dtype="int32")
    yield s(s.backwards(3))


for each in (zeros, ones):
    each.error("ShapeError", lambda s: s((2, -1)), contains=[each.name, "size", "(2, -1)"])
    each.error("ShapeError", lambda s: s((2**40, 2**40)), contains=[each.name, "size", "2**63"])
    each.error("ShapeError", lambda s: s((1,) * 65), contains=[each.name, "size", "64", "65"])
for each in (zeros_like, ones_like, empty_like):
    each.error("TypeError", lambda s: s("x"), contains=[each.name, "self"])
full_like.error("TypeError", lambda s: s(s.array(2), "x"), contains=["full_like", "value"])
