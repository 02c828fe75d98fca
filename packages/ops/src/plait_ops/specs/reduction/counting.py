"""Counts of numbers, and histograms."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.words import (
    check,
    float32,
    float64,
    has_values,
    int64,
    item,
    numel,
    require,
    to_dtype,
)

PART = 65536  # elements of `bincount` that are counted at a time

bincount = Operator(
    "bincount(Tensor self|input, Tensor? weights=None, int minlength=0) -> Tensor",
    doc="""
    How often each of 0, 1, 2, ... occurs in a vector of integers. The result has at least `minlength` elements. With
    `weights` the weights are summed instead.

    Dtype: int64; with `weights` float64, or float32 if they are float32.
    Raises: ShapeError unless `self` is a vector and `weights` has its shape, ValueError for a negative element or
    `minlength`, DTypeError unless `self` holds integers. Tensors on the device meta are an error.

    >>> import plait_core as pc
    >>> pc.bincount(pc.tensor([0, 2, 2])).tolist()
    [1, 0, 2]
    """,
    variants="function method",
    kernel="this operator takes no kernel, since it reads values; replace the operators that it calls instead.",
)


@bincount.decompose
def _(self, weights, minlength):
    require("self", self.dtype, "integer")
    check(self.ndim == 1, f"`self` must have 1 dimension; got shape {self.shape}")
    check(minlength >= 0, f"`minlength` must not be negative; got {minlength}", "ValueError")
    n = minlength
    if self.shape[0] > 0:
        low = item(to_dtype(op.amin(self), int64))
        check(low >= 0, f"`self` must not hold negative elements; got {low}", "ValueError")
        n = max(n, item(to_dtype(op.amax(self), int64)) + 1)
    if weights is None:
        made = op.zeros([n], dtype=int64, device=self.device)
        one = op.ones([1], dtype=int64, device=self.device)
        # in parts, as indices of another dtype are cast
        size = max(n, PART)
        for i in range((self.shape[0] + size - 1) // size):
            part = op.narrow(self, 0, i * size, min(size, self.shape[0] - i * size))
            op.scatter_add_(made, 0, to_dtype(part, int64), op.expand(one, part.shape))
        return made
    check(
        weights.shape == self.shape,
        f"`weights` of shape {weights.shape} must have the shape of `self`, {self.shape}",
    )
    dtype = float32 if weights.dtype == float32 else float64
    return op.scatter_add(
        op.zeros([n], dtype=dtype, device=self.device), 0, self, to_dtype(weights, dtype)
    )


histc = Operator(
    "histc(Tensor self|input, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    doc="""
    How many elements of `self` fall into each of `bins` equal bins between `min` and `max`; the last bin includes `max`.
    Elements outside and nan are not counted. If `min` equals `max`, the smallest and the largest element are used instead;
    if these are equal too, the bins reach from 1 below to 1 above.

    Args:
        min: The lower end of the histogram; if it is `max`, the least element.
        max: The upper end of the histogram; if it is `min`, the largest element.

    Dtype: that of `self`.
    Raises: ValueError for no bins or bounds that are not finite or not in order, DTypeError for integers.

    >>> import plait_core as pc
    >>> pc.histc(pc.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3).tolist()
    [0.0, 2.0, 1.0, 0.0]
    """,
    dtypes="floating",
    variants="function method",
    widens=True,
    kernel="this operator takes no kernel, since it reads values; replace the operators that it calls instead.",
)


@histc.decompose
def _(self, bins, min, max):
    require("self", self.dtype, "floating")
    check(bins >= 1, f"`bins` must be at least 1; got {bins}", "ValueError")
    low, high = float(min), float(max)
    check(low <= high, f"`min` {low} must not be above `max` {high}", "ValueError")
    values = op.reshape(self, [-1])
    if low == high and numel(self.shape) > 0:
        start = op.amin(values)
        end = op.amax(values)
    else:
        start = op.full([], low, dtype=self.dtype, device=self.device)
        end = op.full([], high, dtype=self.dtype, device=self.device)
    same = op.eq(start, end)
    start = op.where(same, start - 1, start)
    end = op.where(same, end + 1, end)
    finite = op.bitwise_and(op.lt(op.abs(start), INFINITY), op.lt(op.abs(end), INFINITY))
    if has_values(self):
        check(
            item(op.cast(finite, int64)) == 1,
            f"`self` and the bounds must be finite; got `min` {low} and `max` {high}",
            "ValueError",
        )
    inside = op.bitwise_and(op.ge(values, start), op.le(values, end))
    place = op.floor(
        (op.masked_fill(values - start, op.bitwise_not(inside), 0)) * bins / (end - start)
    )
    at = op.clamp_between(op.cast(place, int64), 0, bins - 1)
    return op.scatter_add(
        op.zeros([bins], dtype=self.dtype, device=self.device), 0, at, op.cast(inside, self.dtype)
    )


INFINITY = float("inf")

histogram = Composite(
    "histogram(Tensor self|input, Tensor bins, *, Tensor? weight=None, bool density=False) -> (Tensor hist, Tensor bin_edges)",
    doc="""
    How many elements of `self` fall between each two neighbours of the ascending edges `bins`, and the edges. The last bin
    includes its upper edge. With `weight` the weights are summed; with `density` each number is divided by the total and by
    the width of its bin.

    Args:
        weight: What each element counts, or None: 1.
        bins: The edges of the bins: one dimension, ascending.

    Shapes: (n - 1,) and (n,) for n edges. Dtypes: float32 and float64.
    Raises: ShapeError unless `bins` is a vector and `weight` has the shape of `self`, DTypeError if dtypes differ.

    >>> import plait_core as pc
    >>> [x.tolist() for x in pc.histogram(pc.tensor([1.0, 2.0, 1.0]), pc.tensor([0.0, 1.5, 3.0]))]
    [[2.0, 1.0], [0.0, 1.5, 3.0]]
    """,
    dtypes="floating",
    variants="function method",
    widens=True,
)


@histogram.decompose
def _(self, bins, weight, density):
    require("self", self.dtype, "floating")
    check(
        bins.ndim == 1 and bins.shape[0] >= 2,
        f"`bins` must be a vector of at least 2 edges; got shape {bins.shape}",
    )
    check(
        bins.dtype == self.dtype,
        f"`bins` must have the dtype of `self`, {self.dtype}; got {bins.dtype}",
        "DTypeError",
    )
    n = bins.shape[0] - 1
    flat = op.reshape(self, [-1])
    last = op.narrow(bins, 0, n, 1)
    place = op.search_sorted(bins, flat, True) - 1
    place = place - op.cast(op.eq(flat, last), int64)
    inside = op.bitwise_and(op.ge(flat, op.narrow(bins, 0, 0, 1)), op.le(flat, last))
    mass = op.cast(inside, self.dtype)
    if weight is not None:
        check(
            weight.shape == self.shape,
            f"`weight` of shape {weight.shape} must have the shape of `self`, {self.shape}",
        )
        mass = op.where(inside, to_dtype(op.reshape(weight, [-1]), self.dtype), 0.0)
    made = op.scatter_add(
        op.zeros([n], dtype=self.dtype, device=self.device),
        0,
        op.clamp_between(place, 0, n - 1),
        mass,
    )
    if density:
        made = made / op.sum(made) / (op.narrow(bins, 0, 1, n) - op.narrow(bins, 0, 0, n))
    return made, bins
