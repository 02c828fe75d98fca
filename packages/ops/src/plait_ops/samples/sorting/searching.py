"""Test data of sorting/searching: references in NumPy, sample calls, errors."""

import numpy as np

from plait_ops.specs.sorting.searching import bucketize_, isin, search_sorted_, searchsorted_


@search_sorted_.reference
def _(sorted_sequence, input, right):
    side = "right" if right else "left"
    if sorted_sequence.ndim == 1:
        return np.asarray(np.searchsorted(sorted_sequence, input, side), "int64")
    result = np.empty(input.shape, "int64")
    for i in np.ndindex(input.shape[:-1]):
        result[i] = np.searchsorted(sorted_sequence[i], input[i], side)
    return result


def _sequences(s):
    return np.sort(s.array(6)), np.sort(s.array(2, 5), -1)


@search_sorted_.samples
def _(s):
    one, many = _sequences(s)
    for right in (False, True):
        yield s(one, s.array(3, 4), right)
        yield s(many, s.array(2, 7), right)
        yield s(np.array([1, 2, 2, 5]), np.array([0, 1, 2, 3, 5, 9]), right)
        yield s(np.array([0.0, 1.0, np.nan], "float32"), np.array([np.nan, 0.5], "float32"), right)
    yield s(np.sort(s.array(9, dtype="int8")), s.array(30, dtype="int8"), False)
    yield s(one, s.array(), True)
    yield s(s.array(0), s.array(3), True)


search_sorted_.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(3, 3), False),
    contains=["search_sorted", "sorted_sequence", "(2, 3)", "(3, 3)"],
)


@searchsorted_.reference
def _(sorted_sequence, input, out_int32=False, right=False, side=None, sorter=None):
    x = sorted_sequence if sorter is None else np.take_along_axis(sorted_sequence, sorter, -1)
    result = search_sorted_(x, np.asarray(input), right or side == "right")
    return result.astype("int32") if out_int32 else result


bucketize_.reference(
    lambda self, boundaries, out_int32=False, right=False: searchsorted_(
        boundaries, self, out_int32=out_int32, right=right
    )
)


@searchsorted_.samples
def _(s):
    one, many = _sequences(s)
    yield s(one, s.array(3, 4))
    yield s(one, 0.5, right=True)
    yield s(many, s.array(2, 7), side="right", out_int32=True)
    x = s.distinct(7)
    yield s(x, s.array(4), sorter=np.argsort(x))
    yield s(np.array([1, 2, 2, 5]), np.array([1.5, 2.0], "float32"), side="left")


@bucketize_.samples
def _(s):
    one, _ = _sequences(s)
    yield s(s.array(3, 4), one)
    yield s(0.5, one, right=True)
    yield s(s.array(5), one, out_int32=True)


searchsorted_.error(
    "ShapeError",
    lambda s: s(s.array(2, 3), s.array(3, 3)),
    contains=["sorted_sequence", "(2, 3)", "(3, 3)"],
)
searchsorted_.error(
    "ValueError",
    lambda s: s(s.array(3), s.array(3), side="middle"),
    contains=["searchsorted", "side", "middle"],
)
searchsorted_.error(
    "ValueError",
    lambda s: s(s.array(3), s.array(3), side="left", right=True),
    contains=["searchsorted", "side", "left", "right"],
)
bucketize_.error(
    "ShapeError",
    lambda s: s(s.array(3), s.array(1, 3)),
    contains=["bucketize", "boundaries", "(1, 3)"],
)


@isin.reference
def _(elements, test_elements, assume_unique=False, invert=False):
    return np.asarray(np.isin(elements, test_elements, invert=invert))


isin.samples(
    lambda s: iter(
        [
            s(s.array(4, 5, dtype="int64"), s.array(3, dtype="int64")),
            s(s.array(4, 5, dtype="int64"), s.array(3, 2, dtype="int32"), invert=True),
            s(s.array(20, dtype="int8"), 2),
            s(3, s.array(20, dtype="int8")),
            s(s.array(3, dtype="bool"), np.array([True])),
            s(np.array([1, np.nan], "float32"), np.array([np.nan, 1], "float32")),
            s(s.array(3), s.array(0)),
        ]
    )
)
isin.error(
    "DTypeError",
    lambda s: s(s.array(2, dtype="complex64"), s.array(2, dtype="complex64")),
    contains=["complex64"],
)
