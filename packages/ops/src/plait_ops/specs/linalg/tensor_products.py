"""Products of tensors of any number of dimensions: Kronecker's, and sums over pairs of dimensions."""

from plait_ops import calls as op
from plait_ops.spec import Composite
from plait_ops.words import check, numel, require_same, wrap_dim

kron = Composite(
    "kron(Tensor self, Tensor other) -> Tensor",
    doc="""
    The Kronecker product: every element of `self` is replaced by the block of its product with `other`.

    Shapes: the tensor with fewer dimensions gets dimensions of size 1 in front; the sizes of the result are the products of
    the sizes. Dtypes: numbers.

    >>> import plait_core as pc
    >>> pc.kron(pc.tensor([1, 10]), pc.tensor([1, 2])).tolist()
    [1, 2, 10, 20]
    """,
    dtypes="arithmetic",
    variants="function method",
)


@kron.decompose
def _(self, other):
    n = max(self.ndim, other.ndim)
    a = [1] * (n - self.ndim) + self.shape
    b = [1] * (n - other.ndim) + other.shape
    left = []
    right = []
    whole = []
    for x, y in zip(a, b):  # noqa: B905
        left.append(x)
        left.append(1)
        right.append(1)
        right.append(y)
        whole.append(x * y)
    return op.reshape(op.mul(op.reshape(self, left), op.reshape(other, right)), whole)


tensordot_ = Composite(
    "tensordot(Tensor self|a, Tensor other|b, int dims=2) -> Tensor",
    doc="""
    The product over the last `dims` dimensions of `self` and the first `dims` of `other`.

    Args:
        dims: How many dimensions are summed: the last ones of `input` with the first ones of `other`.

    Shapes: the result has the remaining dimensions of `self`, followed by those of `other`. Dtypes: numbers, the same for
    both.
    Raises: ValueError if one of the tensors has fewer than `dims` dimensions, ShapeError if sizes differ, DTypeError if
    dtypes differ.

    >>> import plait_core as pc
    >>> tuple(pc.tensordot(pc.ones(2, 3), pc.ones(3, 4), 1).shape)
    (2, 4)
    """,
    dtypes="arithmetic",
)
tensordot_over_ = Composite(
    "tensordot_over(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
    doc="The product over the dimensions `dims_self` of `self` and, in this order, `dims_other` of `other`.",
    internal=True,
    dtypes="arithmetic",
)


@tensordot_.decompose
def _(self, other, dims):
    check(
        dims >= 0 and dims <= self.ndim and dims <= other.ndim,
        f"`dims` must be in [0, {min(self.ndim, other.ndim)}] for shapes {self.shape} and {other.shape}; got {dims}",
        "ValueError",
    )
    first = []
    second = []
    for i in range(dims):
        first.append(self.ndim - dims + i)
        second.append(i)
    return op.tensordot_over(self, other, first, second)


@tensordot_over_.decompose
def _(self, other, dims_self, dims_other):
    require_same("self", self, "other", other)
    check(
        len(dims_self) == len(dims_other),
        f"`dims_self` and `dims_other` must have the same length; got {dims_self} and {dims_other}",
        "ValueError",
    )
    first = [wrap_dim("dims", d, self.shape) for d in dims_self]
    second = [wrap_dim("dims", d, other.shape) for d in dims_other]
    a = op.reshape(self, self.shape)
    b = op.reshape(other, other.shape)
    size = 1
    for i, j in zip(first, second):  # noqa: B905
        check(
            self.shape[i] == other.shape[j] or self.shape[i] == 1 or other.shape[j] == 1,
            f"sizes must agree; dimension {i} of `self` {self.shape} and {j} of `other` {other.shape} differ",
        )
        if self.shape[i] == other.shape[j]:
            size = size * self.shape[i]
        elif self.shape[i] == 1:
            b = op.sum(b, [j], True, dtype=other.dtype)
        else:
            a = op.sum(a, [i], True, dtype=self.dtype)
    rest = [n for i, n in enumerate(self.shape) if i not in first]
    more = [n for i, n in enumerate(other.shape) if i not in second]
    check(
        len(rest) + len(first) == self.ndim and len(more) + len(second) == other.ndim,
        f"`dims` must not repeat a dimension; got {dims_self} and {dims_other}",
        "ValueError",
    )
    ends = []
    starts = []
    for i in range(len(first)):
        ends.append(i - len(first))
        starts.append(i)
    left = op.reshape(op.movedim(a, first, ends), [numel(rest), size])
    right = op.reshape(op.movedim(b, second, starts), [size, numel(more)])
    return op.reshape(op.mm(left, right), rest + more)
