"""Class numbers as rows of 0 and 1."""

import numpy as np

from plait_ops.calls import max, min, scatter, unsqueeze, zeros
from plait_ops.spec import Composite
from plait_ops.words import check, int64, item, numel, require, to_dtype

one_hot = Composite(
    "one_hot(Tensor input, int num_classes=-1) -> Tensor",
    doc="""
    For each class number k a row of `num_classes` zeros with a 1 at place k, as int64; -1: one more than the largest number.

    Shape: that of `input`, and `num_classes` behind it.
    Raises: DTypeError if `input` holds no integers, IndexError if a class number is negative or not below `num_classes`,
    ShapeError if `num_classes` is 0, or -1 for an empty `input`.

    >>> import plait_core as pc
    >>> pc.one_hot(pc.tensor([0, 2])).tolist()
    [[1, 0, 0], [0, 0, 1]]
    """,
    dtypes="integer",
    method=False,
)


@one_hot.decompose
def _(input, num_classes):
    require("input", input.dtype, "integer")
    check(num_classes > 0 or num_classes == -1, f"`num_classes` must be -1 or at least 1; got {num_classes}")
    check(
        num_classes > 0 or numel(input) > 0,
        f"`num_classes` must be given for an empty `input`, of shape {input.shape}; got {num_classes}",
    )
    n = num_classes
    if numel(input) > 0:
        lowest = item(to_dtype(min(input), int64))
        highest = item(to_dtype(max(input), int64))
        check(lowest >= 0, f"`input` must hold no negative class numbers; got {lowest}", "IndexError")
        check(
            num_classes == -1 or highest < num_classes,
            f"`input` must hold class numbers below `num_classes` {num_classes}; got {highest}",
            "IndexError",
        )
        n = highest + 1 if num_classes == -1 else num_classes
    rows = zeros(list(input.shape) + [n], dtype=int64, device=input.device)
    return scatter(rows, -1, unsqueeze(input, -1), 1)


@one_hot.reference
def _(input, num_classes=-1):
    return np.eye(num_classes if num_classes > 0 else int(input.max()) + 1, dtype="int64")[input]


@one_hot.samples
def _(s):
    yield s(s.indices(4, 5))
    yield s(s.indices(4, 2, 3), 6)
    yield s(s.indices(4, 7, dtype="int32")[::-2], 4)
    yield s(s.indices(4, dtype="uint8"), 4)
    yield s(np.zeros((0, 2), "int64"), 3)


one_hot.error("DTypeError", lambda s: s(s.array(3)), contains=["one_hot", "input", "float32"])
one_hot.error("IndexError", lambda s: s(np.array([0, -1])), contains=["one_hot", "input", "-1"])
one_hot.error("IndexError", lambda s: s(np.array([0, 5]), 5), contains=["one_hot", "input", "num_classes", "5"])
one_hot.error("ShapeError", lambda s: s(np.array([0]), 0), contains=["one_hot", "num_classes", "0"])
one_hot.error("ShapeError", lambda s: s(np.zeros(0, "int64")), contains=["one_hot", "num_classes", "(0,)", "-1"])
