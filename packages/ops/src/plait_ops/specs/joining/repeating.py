"""Repeating, reversing and rolling."""

from plait_ops import calls as op
from plait_ops.spec import Composite, Operator
from plait_ops.words import check, int64, item, max_dims, numel, require, sizes, to_dtype, wrap_dim

LARGEST = 2**31 - 1


tile = Composite(
    "tile(Tensor self, int[]* dims) -> Tensor",
    doc="""
    `self` repeated `dims` times along each dimension, as NumPy's ``tile``: if `dims` is shorter than the shape of `self`,
    or longer, the shorter of the two is extended with 1 in front.

    Args:
        dims: How often the tensor stands along each dimension.

    Raises: ValueError for a negative number.

    >>> import plait_core as pc
    >>> pc.tile(pc.tensor([1, 2]), 2).tolist()
    [1, 2, 1, 2]
    """,
    dtypes="any",
    variants="function method",
)
repeat = Composite(
    "repeat(Tensor self, int[]* repeats) -> Tensor",
    doc="""
    `self` repeated `repeats` times along each dimension; there must be at least one number for each dimension; additional
    numbers make new dimensions in front.

    Args:
        repeats: How often the tensor stands along each dimension.

    Raises: ShapeError if there are fewer numbers than dimensions, ValueError for a negative one.

    >>> import plait_core as pc
    >>> pc.tensor([1, 2]).repeat(2, 1).tolist()
    [[1, 2], [1, 2]]
    """,
    dtypes="any",
    variants="method",
)


@repeat.decompose
def _(self, repeats):
    lead = len(repeats) - self.ndim
    check(
        lead >= 0,
        f"`repeats` {repeats} must have a number for each dimension of shape {self.shape}",
    )
    max_dims("repeats", 2 * len(repeats))
    wide = []
    apart = []
    joined = []
    for i in range(len(repeats)):
        check(repeats[i] >= 0, f"`repeats` must not be negative; got {repeats}", "ValueError")
        n = self.shape[i - lead] if i >= lead else 1
        apart.append(1)
        apart.append(n)
        wide.append(repeats[i])
        wide.append(n)
    sizes("repeats", wide)
    for i in range(len(repeats)):
        check(  # if another size is 0, this one was not checked yet
            repeats[i] <= LARGEST,
            f"`repeats` must be at most {LARGEST}; got {repeats}",
            "ValueError",
        )
        joined.append(wide[2 * i] * wide[2 * i + 1])
    return op.reshape(
        op.clone(op.expand(op.reshape(self, apart), wide), memory_format="contiguous_format"),
        joined,
    )


@tile.decompose
def _(self, dims):
    times = list(dims)
    if len(dims) < self.ndim:
        times = [1] * (self.ndim - len(dims)) + list(dims)
    return repeat(self, times)


repeat_interleave = Composite(
    "repeat_interleave(Tensor self, int repeats, int? dim|axis=None, *, int? output_size=None) -> Tensor",
    doc="""
    Each element of `self` along `dim` repeated `repeats` times in a row; with `dim` None the flattened tensor is meant.

    Raises: ValueError if `repeats` is negative, or if `output_size` is given and is not the size of the result along `dim`.

    >>> import plait_core as pc
    >>> pc.repeat_interleave(pc.tensor([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """,
    dtypes="any",
    variants="function method",
)


@repeat_interleave.decompose
def _(self, repeats, dim, output_size):
    check(
        repeats >= 0 and repeats <= LARGEST,
        f"`repeats` must be in [0, {LARGEST}]; got {repeats}",
        "ValueError",
    )
    flat = op.reshape(self, [-1]) if dim is None else self
    at = wrap_dim("dim", dim if dim is not None else 0, flat.shape)
    if flat.ndim == 0:
        flat = op.reshape(flat, [1])
    shape = list(flat.shape)
    wide = op.unsqueeze(flat, at + 1)
    size = list(wide.shape)
    size[at + 1] = repeats
    sizes("repeats", size)
    shape[at] = shape[at] * repeats
    if output_size is not None:
        check(
            int(output_size) == shape[at],
            f"`output_size` must be {shape[at]} for `repeats` {repeats}; got {int(output_size)}",
            "ValueError",
        )
    return op.reshape(op.clone(op.expand(wide, size), memory_format="contiguous_format"), shape)


# ---- repetition --------------------------------------------------------------------------------
repeat_each = Operator(
    "repeat_interleave.tensor(Tensor self, Tensor repeats, int? dim|axis=None, *, int? output_size=None) -> Tensor",
    doc="""
    Element `i` of `self` along `dim` repeated ``repeats[i]`` times; with `dim` None the flattened tensor is meant.
    A `repeats` with a single element applies to all elements.

    Raises: DTypeError unless `repeats` holds integers, ShapeError unless it has as many elements as the dimension,
    ValueError for a negative one or an `output_size` that is not their sum.

    >>> import plait_core as pc
    >>> pc.repeat_interleave(pc.tensor([5, 6]), pc.tensor([1, 3])).tolist()
    [5, 6, 6, 6]
    """,
    dtypes="any",
    variants="function method",
    kernel="this operator takes no kernel, since it reads values; replace the operators that it calls instead.",
)
repeat_counts = Operator(
    "repeat_interleave.counts(Tensor repeats, *, int? output_size=None) -> Tensor",
    doc="""
    ``[0] * repeats[0] + [1] * repeats[1] + ...`` as int64.

    >>> import plait_core as pc
    >>> pc.repeat_interleave(pc.tensor([1, 3])).tolist()
    [0, 1, 1, 1]
    """,
    kernel="this operator takes no kernel, since it reads values; replace the operators that it calls instead.",
)


@repeat_counts.decompose
def _(repeats, output_size):
    require("repeats", repeats.dtype, "integer")
    check(repeats.ndim == 1, f"`repeats` must have 1 dimension; got shape {repeats.shape}")
    n = repeats.shape[0]
    ends = op.cumsum(to_dtype(repeats, int64), 0)
    total = item(op.select(ends, 0, n - 1)) if n > 0 else 0
    least = item(to_dtype(op.amin(repeats), int64)) if n > 0 else 0
    check(least >= 0, f"`repeats` must not be negative; got {least}", "ValueError")
    if output_size is not None:
        check(
            int(output_size) == total,
            f"`output_size` must be the sum of `repeats`, {total}; got {int(output_size)}",
            "ValueError",
        )
    # element j belongs to the first run that ends after it
    return op.search_sorted(ends, op.arange(total, dtype=int64, device=repeats.device), True)


@repeat_each.decompose
def _(self, repeats, dim, output_size):
    require("repeats", repeats.dtype, "integer")
    flat = op.reshape(self, [-1]) if dim is None or self.ndim == 0 else self
    at = wrap_dim(
        "dim", dim if dim is not None else 0, self.shape if dim is not None else flat.shape
    )
    n = flat.shape[at]
    check(
        repeats.ndim <= 1 and (numel(repeats.shape) == 1 or numel(repeats.shape) == n),
        f"`repeats` of shape {repeats.shape} must have 1 or {n} elements for `self` of shape {self.shape}",
    )
    counts = op.reshape(repeats, [-1])
    if n != 1 and counts.shape[0] == 1:
        counts = op.expand(counts, [n])
    places = op.repeat_interleave_counts(counts, output_size=output_size)
    return op.index_select(flat, at, places)
