"""Operators on the bits of integers."""

from plait_ops.spec import Pointwise


def _binary(name, text, example, dtypes="integral", exact=False):
    return Pointwise(
        f"{name}(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
        doc=f"""
    {text}

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([5, 6]), 3).tolist()
    {example}
    """,
        dtypes=dtypes,
        exact=exact,
        variants="function method",
    )


bitwise_and = _binary(
    "bitwise_and", "The bits that are set in both; of bools, whether both are True.", "[1, 2]"
)
bitwise_or = _binary(
    "bitwise_or",
    "The bits that are set in at least one of the two; of bools, whether at least one is True.",
    "[7, 7]",
)
bitwise_xor = _binary("bitwise_xor", "The bits in which the two differ.", "[6, 5]")
left = _binary(
    "bitwise_left_shift",
    "``self * 2 ** other``, wrapping around; 0 where `other` is negative, or is not less than the number of bits of the dtype.",
    "[40, 48]",
    "integer",
    exact=True,
)
right = _binary(
    "bitwise_right_shift",
    "``self / 2 ** other`` rounded down; where `other` is negative or too large, 0, or -1 if `self` is negative.",
    "[0, 0]",
    "integer",
    exact=True,
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
    variants="function method",
)
