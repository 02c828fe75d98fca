"""Operators on the bits of integers."""

import numpy as np

from plait_ops.spec import Pointwise


def _binary(name, text, reference, example, dtypes="integral"):
    return Pointwise(
        f"{name}(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([5, 6]), 3).tolist()
    {example}
    """,
        dtypes=dtypes,
        reference=reference,
    )


def _shift(function):
    def shift(a, b):
        bits = a.dtype.itemsize * 8
        limit = np.clip(b, 0, bits - 1)
        made = function(a, limit)
        if function is np.left_shift:
            return np.where((b < 0) | (b >= bits), 0, made)
        return np.where((b < 0) | (b >= bits), np.where(a < 0, -1, 0), made)

    return shift


_binary(
    "bitwise_and",
    "The bits set in both; of bools, whether both are True.",
    np.bitwise_and,
    "[1, 2]",
)
_binary(
    "bitwise_or",
    "The bits set in one of them; of bools, whether one is True.",
    np.bitwise_or,
    "[7, 7]",
)
_binary("bitwise_xor", "The bits in which they differ.", np.bitwise_xor, "[6, 5]")
left = _binary(
    "bitwise_left_shift",
    "``self * 2 ** other``, wrapping around; 0 where `other` is negative or has no fewer than the bits of the dtype.",
    _shift(np.left_shift),
    "[40, 48]",
    "integer",
)
right = _binary(
    "bitwise_right_shift",
    "``self / 2 ** other`` rounded down; where `other` is negative or too large, 0, or -1 if `self` is negative.",
    _shift(np.right_shift),
    "[0, 0]",
    "integer",
)
bitwise_not = Pointwise(
    "bitwise_not(Tensor self) -> Tensor",
    doc="""
    All bits inverted: ``-self - 1`` for signed integers; of bools the opposite.

    >>> import plait_core as pc
    >>> pc.bitwise_not(pc.tensor([5, -1])).tolist()
    [-6, 0]
    """,
    dtypes="integral",
    reference=np.invert,
)


@left.samples
@right.samples
def _(s):
    yield s(s.array(12, dtype="int32", low=-20, high=20), s.array(12, dtype="int32", low=0, high=4))
    yield s(s.array(12, dtype="int8"), s.array(12, dtype="int8", low=-5, high=12))
