"""New tensors with the dtype and device of another; tensors with given strides; 0-d tensors."""

from plait_ops import calls as op
from plait_ops.spec import Composite, View
from plait_ops.words import check, default_dtype, result_as, sizes

empty_strided = View(
    "empty_strided(int[] size, int[] stride, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    A tensor of shape `size` and strides `stride`, in elements, whose elements are not initialised; `dtype` None is the
    default dtype.

    Args:
        stride: The distance of two elements in memory along each dimension, in elements.

    Raises: ShapeError for a bad `size`, if `stride` has another number of entries, or if one of them is negative.

    >>> import plait_core as pc
    >>> pc.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """,
    fresh=True,
)


@empty_strided.shape
def _(size, stride, dtype):
    sizes("size", size)
    check(
        len(stride) == len(size),
        f"`stride` must have one entry for each of `size` {size}; got {stride}",
    )
    for step in stride:
        check(step >= 0, f"`stride` must not hold negative entries; got {stride}")
    return result_as(size, dtype if dtype is not None else default_dtype(), stride)


def _new(name, arguments, text, example):
    operator = Composite(
        f"{name}(Tensor self, {arguments}, *, dtype? dtype=None, device? device=None) -> Tensor",
        doc=f"""
    {text} `dtype` and `device` None mean those of `self`.

    Raises: ShapeError for a bad `size`.

    >>> import plait_core as pc
    >>> pc.zeros(1, dtype=pc.int32).{name}({example[0]}
    {example[1]}
    """,
        dtypes="any",
        variants="method",
    )

    operator.unpredictable = name == "new_empty"
    return operator


new_empty = _new(
    "new_empty",
    "int[]* size",
    "A tensor of shape `size` whose elements are not initialised.",
    ("2).shape", "plait.Size([2])"),
)
new_zeros = _new(
    "new_zeros", "int[]* size", "A tensor of shape `size` full of 0.", ("2).tolist()", "[0, 0]")
)
new_ones = _new(
    "new_ones", "int[]* size", "A tensor of shape `size` full of 1.", ("2).tolist()", "[1, 1]")
)
new_full = _new(
    "new_full",
    "int[] size, Scalar fill_value",
    "A tensor of shape `size` with `fill_value` everywhere.",
    ("(2,), 7).tolist()", "[7, 7]"),
)
new_empty_strided = Composite(
    "new_empty_strided(Tensor self, int[] size, int[] stride, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    `empty_strided` whose `dtype` and `device`, where None, are those of `self`.

    Args:
        stride: The distance of two elements in memory along each dimension, in elements.

    Raises: what `empty_strided` raises.

    >>> import plait_core as pc
    >>> pc.zeros(1).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """,
    dtypes="any",
    variants="method",
)
new_empty_strided.unpredictable = True


@new_empty.decompose
def _(self, size, dtype, device):
    return op.empty(
        size,
        dtype=dtype if dtype is not None else self.dtype,
        device=device if device is not None else self.device,
    )


@new_zeros.decompose
def _(self, size, dtype, device):
    made = dtype if dtype is not None else self.dtype
    return op.full(size, 0, dtype=made, device=device if device is not None else self.device)


@new_ones.decompose
def _(self, size, dtype, device):
    made = dtype if dtype is not None else self.dtype
    return op.full(size, 1, dtype=made, device=device if device is not None else self.device)


@new_full.decompose
def _(self, size, fill_value, dtype, device):
    made = dtype if dtype is not None else self.dtype
    return op.full(
        size, fill_value, dtype=made, device=device if device is not None else self.device
    )


@new_empty_strided.decompose
def _(self, size, stride, dtype, device):
    return empty_strided(
        size,
        stride,
        dtype=dtype if dtype is not None else self.dtype,
        device=device if device is not None else self.device,
    )


scalar_tensor = Composite(
    "scalar_tensor(Scalar value|s, *, dtype? dtype=None, device? device=None) -> Tensor",
    doc="""
    A 0-d tensor with one number; `dtype` None is the default dtype.

    Args:
        value: The number.

    >>> import plait_core as pc
    >>> pc.scalar_tensor(3).item()
    3.0
    """,
    dtypes="any",
)


@scalar_tensor.decompose
def _(value, dtype, device):
    return op.full([], value, dtype=dtype if dtype is not None else default_dtype(), device=device)
