"""Test data of creation/new_tensors: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.creation.new_tensors import (
    empty_strided,
    new_empty,
    new_empty_strided,
    new_full,
    new_ones,
    new_zeros,
    scalar_tensor,
)


@empty_strided.reference
def _(size, stride, dtype=None):
    kind = np.dtype(dtype or "float32")
    room = sum((n - 1) * step for n, step in zip(size, stride, strict=True)) + 1
    if 0 in size:
        return np.zeros(size, kind)
    strides = [step * kind.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(np.zeros(room, kind), size, strides)


@empty_strided.samples
def _(s):
    yield s((2, 3), (1, 2))
    yield s((2, 3), (10, 2), dtype="int64")
    yield s((), ())
    yield s((0, 3), (3, 1))


empty_strided.error("ShapeError", lambda s: s((2, 3), (1,)), contains=["stride", "(2, 3)", "(1,)"])
empty_strided.error(
    "ShapeError", lambda s: s((2, 3), (1, -1)), contains=["stride", "negative", "(1, -1)"]
)
empty_strided.error("ShapeError", lambda s: s((2, -1), (1, 1)), contains=["size", "(2, -1)"])


def _new(operator, *values):
    name = operator.schema.base

    @operator.samples
    def _(s):
        yield s(s.array(3), (2, 3), *values)
        yield s(s.array(3, dtype="int64"), (2,), *values)
        yield s(s.array(3, dtype="int64"), (2, 0), *values, dtype="float64")
        yield s(s.array(dtype="bool"), (), *values)

    operator.error(
        "ShapeError", lambda s: s(s.array(1), (2, -1), *values), contains=["size", "(2, -1)"]
    )
    operator.error("TypeError", lambda s: s("x", (2,), *values), contains=[name, "self"])


_new(new_empty)
_new(new_zeros)
_new(new_ones)
_new(new_full, 1)
new_empty.reference(lambda self, size, dtype=None: np.zeros(size, dtype or self.dtype))
new_zeros.reference(lambda self, size, dtype=None: np.zeros(size, dtype or self.dtype))
new_ones.reference(lambda self, size, dtype=None: np.ones(size, dtype or self.dtype))
new_full.reference(
    lambda self, size, fill_value, dtype=None: np.full(size, fill_value, dtype or self.dtype)
)
new_empty_strided.reference(
    lambda self, size, stride, dtype=None: empty_strided(size, stride, dtype=dtype or self.dtype)
)
new_empty_strided.samples(
    lambda s: iter([s(s.array(2), (2, 3), (1, 2)), s(s.array(2), (2,), (3,), dtype="int64")])
)
new_empty_strided.error(
    "ShapeError", lambda s: s(s.array(1), (2, 3), (1,)), contains=["stride", "(2, 3)", "(1,)"]
)


scalar_tensor.reference(lambda value, dtype=None: np.asarray(value, dtype or "float32"))
scalar_tensor.samples(lambda s: iter([s(3), s(2.5, dtype="float64"), s(True, dtype="bool")]))
scalar_tensor.error("TypeError", lambda s: s("x"), contains=["scalar_tensor", "value"])
