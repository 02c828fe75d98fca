"""Splitting into equal parts, at indices, and under NumPy's names."""

from plait_ops import calls as op
from plait_ops.spec import Composite
from plait_ops.words import check, item, part, require, wrap_dim

tensor_split_ = Composite(
    "tensor_split(Tensor(a) self, int indices_or_sections|sections, int dim|axis=0) -> Tensor(a)[]",
    doc="""
    `self` cut along `dim` into the given number of views, of sizes as equal as possible: if the size is not divisible, the
    first views are larger by 1.

    Raises: ValueError if the number is below 1, ShapeError for a 0-d tensor, IndexError for a `dim` out of range.

    >>> import plait_core as pc
    >>> [part.tolist() for part in pc.arange(5).tensor_split(3)]
    [[0, 1], [2, 3], [4]]
    """,
    dtypes="any",
    variants="function method",
)
tensor_split_indices_ = Composite(
    "tensor_split.indices(Tensor(a) self, int[] indices_or_sections|indices, int dim|axis=0) -> Tensor(a)[]",
    doc="""
    `self` cut along `dim` into views: up to the first index, from there up to the second, and so on, and from the last
    index to the end. The indices are clipped as those of a slice.

    >>> import plait_core as pc
    >>> [part.tolist() for part in pc.arange(5).tensor_split((1, 3))]
    [[0], [1, 2], [3, 4]]
    """,
    dtypes="any",
    variants="function method",
)
tensor_split_tensor_ = Composite(
    "tensor_split.tensor(Tensor(a) self, Tensor indices_or_sections|tensor_indices_or_sections, int dim|axis=0) -> Tensor(a)[]",
    doc="`tensor_split` by a tensor of integers: a 0-d one is the number of parts, a vector holds indices.",
    dtypes="any",
    variants="function method",
)


@tensor_split_.decompose
def _(self, indices_or_sections, dim):
    check(self.ndim > 0, "`self` must have at least 1 dimension; got shape ()")
    at = wrap_dim("dim", dim, self.shape)
    n = self.shape[at]
    parts = indices_or_sections
    check(parts >= 1, f"`indices_or_sections` must be at least 1; got {parts}", "ValueError")
    views = []
    start = 0
    for i in range(parts):
        size = n // parts + (1 if i < n % parts else 0)
        views.append(op.narrow(self, at, start, size))
        start += size
    return views


@tensor_split_indices_.decompose
def _(self, indices_or_sections, dim):
    check(self.ndim > 0, "`self` must have at least 1 dimension; got shape ()")
    at = wrap_dim("dim", dim, self.shape)
    n = self.shape[at]
    views = []
    start = 0
    for index in indices_or_sections:
        end = min(max(index + n if index < 0 else index, 0), n)
        views.append(op.narrow(self, at, min(start, n), max(end - start, 0)))
        start = end
    views.append(op.narrow(self, at, start, n - start))
    return views


@tensor_split_tensor_.decompose
def _(self, indices_or_sections, dim):
    require("indices_or_sections", indices_or_sections.dtype, "integer")
    check(
        indices_or_sections.ndim <= 1,
        f"`indices_or_sections` must have at most 1 dimension; got shape {indices_or_sections.shape}",
    )
    if indices_or_sections.ndim == 0:
        return op.tensor_split(self, item(indices_or_sections), dim)
    indices = [
        item(op.select(indices_or_sections, 0, i)) for i in range(indices_or_sections.shape[0])
    ]
    return op.tensor_split_indices(self, indices, dim)


def _along(name, least, along, text, example):
    """NumPy's hsplit, vsplit and dsplit: into a number of equal parts, or at indices."""
    sections = Composite(
        f"{name}(Tensor(a) self, int indices_or_sections|sections) -> Tensor(a)[]",
        doc=f"""
    `self` cut into the given number of views of equal size along {text}.

    Raises: ShapeError for fewer than {least} dimensions, ValueError unless the size is divisible by the number of views.

    >>> import plait_core as pc
    >>> [tuple(part.shape) for part in pc.zeros(2, 4, 6).{name}(2)]
    {example}
    """,
        dtypes="any",
        variants="function method",
    )
    indices = Composite(
        f"{name}.indices(Tensor(a) self, int[] indices_or_sections|indices) -> Tensor(a)[]",
        doc=f"`tensor_split` at indices along {text}.",
        dtypes="any",
        variants="function method",
    )

    @part
    def split_dim(shape):
        check(
            len(shape) >= least,
            f"`self` must have at least {least} dimension{'s' if least > 1 else ''}; got shape {shape}",
        )
        return min(len(shape) - 1, along)

    @sections.decompose
    def _(self, indices_or_sections):
        at = split_dim(self.shape)
        n = indices_or_sections
        check(
            n >= 1 and self.shape[at] % max(n, 1) == 0,
            f"`indices_or_sections` must divide the size of dimension {at}, {self.shape[at]}; got {n}",
            "ValueError",
        )
        return op.tensor_split(self, n, at)

    @indices.decompose
    def _(self, indices_or_sections):
        return op.tensor_split_indices(self, indices_or_sections, split_dim(self.shape))

    return sections, indices


hsplit, hsplit_indices = _along(
    "hsplit", 1, 1, "dimension 1, or dimension 0 of a vector", "[(2, 2, 6), (2, 2, 6)]"
)
vsplit, vsplit_indices = _along("vsplit", 2, 0, "dimension 0", "[(1, 4, 6), (1, 4, 6)]")
dsplit, dsplit_indices = _along("dsplit", 3, 2, "dimension 2", "[(2, 4, 3), (2, 4, 3)]")


# ---- other names -------------------------------------------------------------------------------
split_with_sizes = Composite(
    "split_with_sizes(Tensor(a) self, int[] split_sizes, int dim|axis=0) -> Tensor(a)[]",
    doc="""
    `split` with a list of sizes.

    >>> import plait_core as pc
    >>> [part.tolist() for part in pc.arange(5).split_with_sizes([1, 4])]
    [[0], [1, 2, 3, 4]]
    """,
    dtypes="any",
    variants="function method",
)
unsafe_split_with_sizes = Composite(
    "unsafe_split_with_sizes(Tensor(a) self, int[] split_sizes, int dim|axis=0) -> Tensor(a)[]",
    doc="""
    `split` with a list of sizes. In plait the two are the same.

    >>> import plait_core as pc
    >>> [part.tolist() for part in pc.arange(5).unsafe_split_with_sizes([1, 4])]
    [[0], [1, 2, 3, 4]]
    """,
    dtypes="any",
    variants="function method",
)
unsafe_split = Composite(
    "unsafe_split(Tensor(a) self, int split_size, int dim|axis=0) -> Tensor(a)[]",
    doc="""
    `split`. In plait the two are the same.

    >>> import plait_core as pc
    >>> [part.tolist() for part in pc.arange(5).unsafe_split(2)]
    [[0, 1], [2, 3], [4]]
    """,
    dtypes="any",
    variants="function method",
)
unsafe_chunk = Composite(
    "unsafe_chunk(Tensor(a) self, int chunks, int dim|axis=0) -> Tensor(a)[]",
    doc="""
    `chunk`. In plait the two are the same.

    >>> import plait_core as pc
    >>> [part.tolist() for part in pc.arange(5).unsafe_chunk(2)]
    [[0, 1, 2], [3, 4]]
    """,
    dtypes="any",
    variants="function method",
)


@split_with_sizes.decompose
@unsafe_split_with_sizes.decompose
def _(self, split_sizes, dim):
    return op.split_sizes(self, split_sizes, dim)


@unsafe_split.decompose
def _(self, split_size, dim):
    return op.split(self, split_size, dim)


@unsafe_chunk.decompose
def _(self, chunks, dim):
    return op.chunk(self, chunks, dim)
