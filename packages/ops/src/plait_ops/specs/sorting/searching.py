"""Where values belong: binary search and membership."""

import numpy as np

from plait_ops.calls import (
    bitwise_not,
    cast,
    clamp,
    eq,
    full,
    gather,
    index_select,
    reshape,
    search_sorted,
    searchsorted,
    sort,
)
from plait_ops.spec import Composite, Operator
from plait_ops.words import (
    bool_,
    cast_argument,
    check,
    int32,
    int64,
    is_tensor,
    numel,
    require,
    require_common,
    result,
    to_dtype,
)

search_sorted_ = Operator(
    "search_sorted(Tensor sorted_sequence, Tensor input, bool right) -> Tensor",
    doc="`searchsorted` of two tensors of one dtype; int64.",
    internal=True,
    kernel="the sequences lie along the last dimension; one sequence serves all inputs, else there is one for each row.",
)


@search_sorted_.shape
def _(sorted_sequence, input, right):
    check(
        sorted_sequence.ndim > 0,
        f"`sorted_sequence` must have at least 1 dimension; got shape {sorted_sequence.shape}",
    )
    check(
        sorted_sequence.ndim == 1
        or (input.ndim == sorted_sequence.ndim and input.shape[:-1] == sorted_sequence.shape[:-1]),
        f"`sorted_sequence` of shape {sorted_sequence.shape} must be a vector or have the sizes of `input` of shape {input.shape}"
        " but for the last",
    )
    dtype = require_common("sorted_sequence", sorted_sequence, "input", input)
    require("sorted_sequence", dtype, "all")
    cast_argument("sorted_sequence", dtype)
    cast_argument("input", dtype)
    return result(input.shape, int64)


@search_sorted_.reference
def _(sorted_sequence, input, right):
    side = "right" if right else "left"
    if sorted_sequence.ndim == 1:
        return np.asarray(np.searchsorted(sorted_sequence, input, side), "int64")
    made = np.empty(input.shape, "int64")
    for i in np.ndindex(input.shape[:-1]):
        made[i] = np.searchsorted(sorted_sequence[i], input[i], side)
    return made


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

searchsorted_ = Composite(
    "searchsorted(Tensor sorted_sequence, Tensor|Scalar input|self, *, bool out_int32=False, bool right=False,"
    " str? side=None, Tensor? sorter=None) -> Tensor",
    doc="""
    The places in which the elements of `input` would have to be inserted into `sorted_sequence`, ascending along its last
    dimension, for it to stay sorted: before equal elements, or after them with `right` or `side` "right". `sorter` holds the
    places that sort it, where it is not. nan is the largest number.

    Shape: that of `input`; `sorted_sequence` is a vector, or has its sizes but for the last. Dtype: int64, or int32 with
    `out_int32`.
    Raises: ShapeError for other shapes, ValueError for another `side`, DTypeError for complex numbers.

    >>> import plait_core as pc
    >>> pc.searchsorted(pc.tensor([1, 3, 5]), pc.tensor([3, 6])).tolist()
    [1, 3]
    """,
    method=False,
    out=True,
)
bucketize_ = Composite(
    "bucketize(Tensor|Scalar self|input, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    doc="""
    The numbers of the buckets into which the elements of `self` fall: bucket `i` ends at ``boundaries[i]``, which it holds, or
    with `right` doesn't. `searchsorted` with the arguments turned round.

    Raises: ShapeError unless `boundaries` is a vector, DTypeError for complex numbers.

    >>> import plait_core as pc
    >>> pc.bucketize(pc.tensor([3, 6]), pc.tensor([1, 3, 5])).tolist()
    [1, 3]
    """,
    method=False,
    out=True,
)


@searchsorted_.decompose
def _(sorted_sequence, input, out_int32, right, side, sorter):
    after = right
    if side is not None:
        check(
            side == "left" or side == "right",
            f'`side` must be "left" or "right"; got "{side}"',
            "ValueError",
        )
        check(
            side == "right" or not right,
            f'`side` "{side}" contradicts `right` {right}',
            "ValueError",
        )
        after = side == "right"
    ordered = sorted_sequence
    if sorter is not None:
        check(
            sorter.shape == sorted_sequence.shape,
            f"`sorter` of shape {sorter.shape} must have the shape of `sorted_sequence`, {sorted_sequence.shape}",
        )
        require("sorter", sorter.dtype, "integer")
        ordered = gather(sorted_sequence, -1, sorter)
    if is_tensor(input):
        made = search_sorted(ordered, input, after)
    else:
        dtype = require_common("sorted_sequence", ordered, "input", input)
        made = search_sorted(ordered, full([], input, dtype=dtype, device=ordered.device), after)
    return cast(made, int32) if out_int32 else made


@bucketize_.decompose
def _(self, boundaries, out_int32, right):
    check(boundaries.ndim == 1, f"`boundaries` must have 1 dimension; got shape {boundaries.shape}")
    return searchsorted(boundaries, self, out_int32=out_int32, right=right)


@searchsorted_.reference
def _(sorted_sequence, input, out_int32=False, right=False, side=None, sorter=None):
    x = sorted_sequence if sorter is None else np.take_along_axis(sorted_sequence, sorter, -1)
    made = search_sorted_(x, np.asarray(input), right or side == "right")
    return made.astype("int32") if out_int32 else made


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

isin = Composite(
    "isin(Tensor|Scalar elements, Tensor|Scalar test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
    doc="""
    Whether each of `elements` is one of `test_elements` (with `invert`: none of them), as bool in the shape of `elements`. nan is
    in nothing. `assume_unique` changes nothing.

    Raises: DTypeError for complex numbers.

    >>> import plait_core as pc
    >>> pc.isin(pc.tensor([1, 2, 3]), pc.tensor([2, 5])).tolist()
    [False, True, False]
    """,
    method=False,
    out=True,
)


@isin.decompose
def _(elements, test_elements, assume_unique, invert):
    dtype = require_common("elements", elements, "test_elements", test_elements)
    x = to_dtype(elements, dtype) if is_tensor(elements) else full([], elements, dtype=dtype)
    tests = (
        to_dtype(test_elements, dtype)
        if is_tensor(test_elements)
        else full([1], test_elements, dtype=dtype)
    )
    n = numel(tests.shape)
    if n == 0:
        return full(x.shape, invert, dtype=bool_, device=x.device)
    ordered, _places = sort(reshape(tests, [-1]), 0)
    at = clamp(search_sorted(ordered, x, False), 0, n - 1)
    found = eq(reshape(index_select(ordered, 0, reshape(at, [-1])), x.shape), x)
    return bitwise_not(found) if invert else found


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
