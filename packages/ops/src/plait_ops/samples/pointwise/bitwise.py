"""Test data of pointwise/bitwise: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.pointwise.bitwise import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    left,
    right,
)


def _shift(function):
    def shift(a, b):
        bits = a.dtype.itemsize * 8
        limit = np.clip(b, 0, bits - 1)
        result = function(a, limit)
        if function is np.left_shift:
            return np.where((b < 0) | (b >= bits), 0, result)
        return np.where((b < 0) | (b >= bits), np.where(a < 0, -1, 0), result)

    return shift


bitwise_and.reference(np.bitwise_and)
bitwise_or.reference(np.bitwise_or)
bitwise_xor.reference(np.bitwise_xor)
left.reference(_shift(np.left_shift))
right.reference(_shift(np.right_shift))
bitwise_not.reference(np.invert)


@left.samples
@right.samples
def _(s):
    yield s(s.array(12, dtype="int32", low=-20, high=20), s.array(12, dtype="int32", low=0, high=4))
    yield s(s.array(12, dtype="int8"), s.array(12, dtype="int8", low=-5, high=12))
