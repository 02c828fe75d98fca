"""Elements in reverse order, rotated by quarter turns, or shifted around."""

from plait_ops import calls as op
from plait_ops.spec import Composite, View
from plait_ops.words import check, reduce_dims, view, wrap_dim

flip_view = View(
    "flip_view(Tensor(a) self, int[] dims) -> Tensor(a)",
    doc="`self` with the order of elements along `dims` reversed, as a view with negative strides.",
    internal=True,
)
flip_view.batch("leading")


@flip_view.shape
def _(self, dims):
    strides = list(self.strides)
    offset = 0
    if len(dims) > 0:
        for at in reduce_dims("dims", dims, self.shape):
            if self.ndim > 0 and self.shape[at] > 0:
                strides[at] = -self.strides[at]
                offset += (self.shape[at] - 1) * self.strides[at]
    return view(self, self.shape, strides, offset)


@flip_view.vjp("self")
def _(g, dims):
    return flip_view(g, dims)


flip = Composite(
    "flip(Tensor self, int[]* dims|axis) -> Tensor",
    doc="""
    A copy of `self` with the order of elements along `dims` reversed.

    Args:
        dims: The dimensions to reverse.

    Raises: IndexError for a dim out of range, ValueError for a repeated one.

    >>> import plait_core as pc
    >>> pc.flip(pc.tensor([1, 2, 3]), 0).tolist()
    [3, 2, 1]
    """,
    dtypes="any",
    variants="function method",
)


@flip.decompose
def _(self, dims):
    return op.dense(flip_view(self, dims))


roll = Composite(
    "roll(Tensor self, int[] shifts, int[]? dims|axis=None) -> Tensor",
    doc="""
    The elements of `self` moved by `shifts` places along `dims`. Elements that move past the end come in again at the
    beginning. With `dims` None the flattened tensor is rolled, and then has the shape of `self` again.

    Args:
        dims: The dimensions along which elements move; without them along all as one.

    Raises: ValueError if the two lists differ in length, IndexError for a dim out of range.

    >>> import plait_core as pc
    >>> pc.roll(pc.tensor([1, 2, 3, 4]), 1).tolist()
    [4, 1, 2, 3]
    """,
    dtypes="any",
    variants="function method",
)


@roll.decompose
def _(self, shifts, dims):
    if dims is None:
        check(
            len(shifts) == 1,
            f"`shifts` must be one number where `dims` is None; got {shifts}",
            "ValueError",
        )
        return op.reshape(roll_one(op.reshape(self, [-1]), shifts[0], 0), self.shape)
    check(
        len(shifts) == len(dims),
        f"`shifts` {shifts} and `dims` {dims} must have the same length",
        "ValueError",
    )
    if len(dims) == 0:
        return op.clone(self)
    made = roll_one(self, shifts[0], dims[0])
    for i in range(1, len(dims)):
        made = roll_one(made, shifts[i], dims[i])
    return made


roll_one = Composite(
    "roll_one(Tensor self, int shift, int dim) -> Tensor",
    doc="`roll` along one dimension.",
    dtypes="any",
    internal=True,
)


@roll_one.decompose
def _(self, shift, dim):
    at = wrap_dim("dims", dim, self.shape)
    if self.ndim == 0 or self.shape[at] == 0:
        return op.clone(self)
    k = shift % self.shape[at]
    return op.cat(
        [op.narrow(self, at, self.shape[at] - k, k), op.narrow(self, at, 0, self.shape[at] - k)], at
    )


# ---- flips and turns ---------------------------------------------------------------------------
def _flipped(name, dim, text, example):
    operator = Composite(
        f"{name}(Tensor self) -> Tensor",
        doc=f"""
    `self` with {text} in the opposite order; a copy.

    Raises: ShapeError for fewer than {dim + 1} dimensions.

    >>> import plait_core as pc
    >>> pc.{name}(pc.tensor([[1, 2], [3, 4]])).tolist()
    {example}
    """,
        dtypes="any",
        variants="function method",
    )
    return operator


fliplr = _flipped("fliplr", 1, "its columns (dimension 1)", "[[2, 1], [4, 3]]")
flipud = _flipped("flipud", 0, "its rows (dimension 0)", "[[3, 4], [1, 2]]")


@fliplr.decompose
def _(self):
    check(self.ndim >= 2, f"`self` must have at least 2 dimensions; got shape {self.shape}")
    return flip(self, [1])


@flipud.decompose
def _(self):
    check(self.ndim >= 1, f"`self` must have at least 1 dimension; got shape {self.shape}")
    return flip(self, [0])


rot90 = Composite(
    "rot90(Tensor self, int k=1, int[] dims|axes=(0, 1)) -> Tensor",
    doc="""
    `self` turned by `k` times 90 degrees in the plane of `dims`, from the first of these dimensions towards the second; a
    copy.

    Args:
        dims: The plane of rotation, two dimensions.
        k: How often it is turned by 90 degrees, from the first of `dims` to the second.

    Raises: ShapeError for fewer than 2 dimensions, ValueError unless `dims` are two different ones.

    >>> import plait_core as pc
    >>> pc.rot90(pc.tensor([[1, 2], [3, 4]])).tolist()
    [[2, 4], [1, 3]]
    """,
    dtypes="any",
    variants="function method",
)


@rot90.decompose
def _(self, k, dims):
    check(self.ndim >= 2, f"`self` must have at least 2 dimensions; got shape {self.shape}")
    check(len(dims) == 2, f"`dims` must be two dimensions; got {dims}", "ValueError")
    a = wrap_dim("dims", dims[0], self.shape)
    b = wrap_dim("dims", dims[1], self.shape)
    check(a != b, f"`dims` must be two different dimensions; got {dims}", "ValueError")
    turns = k % 4
    if turns == 1:
        return op.transpose(flip(self, [b]), a, b)
    if turns == 2:
        return flip(self, [a, b])
    if turns == 3:
        return op.transpose(flip(self, [a]), a, b)
    return op.clone(self)
