"""Binary search and membership."""

from plait_ops import calls as op
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
    kernel="the sequences lie along the last dimension; there is one sequence for all inputs, or one for each row.",
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


searchsorted_ = Composite(
    "searchsorted(Tensor sorted_sequence, Tensor|Scalar input|self, *, bool out_int32=False, bool right=False,"
    " str? side=None, Tensor? sorter=None) -> Tensor",
    doc="""
    The indices at which the elements of `input` would have to be inserted into `sorted_sequence`, which is ascending along
    its last dimension, so that it stays sorted: before equal elements, or with `right` or `side` "right" after them. If the
    sequence is not sorted, `sorter` holds the indices that sort it. nan counts as larger than all numbers.

    Args:
        input: The values whose places are looked for.

    Shape: that of `input`; `sorted_sequence` is a vector, or has the same sizes as `input` except the last. Dtype: int64,
    or int32 with `out_int32`.
    Raises: ShapeError for other shapes, ValueError for another `side`, DTypeError for complex numbers.

    >>> import plait_core as pc
    >>> pc.searchsorted(pc.tensor([1, 3, 5]), pc.tensor([3, 6])).tolist()
    [1, 3]
    """,
)
bucketize_ = Composite(
    "bucketize(Tensor|Scalar self|input, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    doc="""
    The indices of the buckets into which the elements of `self` fall. Bucket `i` ends at ``boundaries[i]``, and contains it
    unless `right` is given. It is `searchsorted` with the arguments exchanged.

    Raises: ShapeError unless `boundaries` is a vector, DTypeError for complex numbers.

    >>> import plait_core as pc
    >>> pc.bucketize(pc.tensor([3, 6]), pc.tensor([1, 3, 5])).tolist()
    [1, 3]
    """,
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
            f'`side` must not be "{side}" where `right` is {right}; give one of them',
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
        ordered = op.gather(sorted_sequence, -1, sorter)
    if is_tensor(input):
        indices = op.search_sorted(ordered, input, after)
    else:
        dtype = require_common("sorted_sequence", ordered, "input", input)
        indices = op.search_sorted(
            ordered, op.full([], input, dtype=dtype, device=ordered.device), after
        )
    return op.cast(indices, int32) if out_int32 else indices


@bucketize_.decompose
def _(self, boundaries, out_int32, right):
    check(boundaries.ndim == 1, f"`boundaries` must have 1 dimension; got shape {boundaries.shape}")
    return op.searchsorted(boundaries, self, out_int32=out_int32, right=right)


isin = Composite(
    "isin(Tensor|Scalar elements|element, Tensor|Scalar test_elements|test_element, *, bool assume_unique=False, bool invert=False) -> Tensor",
    doc="""
    Whether each of `elements` is one of `test_elements` (with `invert`: none of them), as bool in the shape of `elements`.
    nan equals no element. `assume_unique` is accepted and changes nothing.

    Raises: DTypeError for complex numbers.

    >>> import plait_core as pc
    >>> pc.isin(pc.tensor([1, 2, 3]), pc.tensor([2, 5])).tolist()
    [False, True, False]
    """,
)


@isin.decompose
def _(elements, test_elements, assume_unique, invert):
    dtype = require_common("elements", elements, "test_elements", test_elements)
    if not is_tensor(elements) or not is_tensor(test_elements):  # a number counts by its value
        equal = op.eq(elements, test_elements)
        found = equal if is_tensor(elements) else op.any(equal)
        return op.bitwise_not(found) if invert else found
    x = to_dtype(elements, dtype)
    tests = to_dtype(test_elements, dtype)
    n = numel(tests.shape)
    if n == 0:
        return op.full(x.shape, invert, dtype=bool_, device=x.device)
    ordered, _places = op.sort(op.reshape(tests, [-1]), 0)
    at = op.clamp_between(op.search_sorted(ordered, x, False), 0, n - 1)
    found = op.eq(op.reshape(op.index_select(ordered, 0, op.reshape(at, [-1])), x.shape), x)
    return op.bitwise_not(found) if invert else found
