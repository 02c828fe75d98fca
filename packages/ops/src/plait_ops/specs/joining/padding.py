"""Padding: elements before and behind those of the last dimensions."""

from plait_ops import calls as op
from plait_ops.spec import Operator
from plait_ops.specs.vision.resampling import laid_out_like, strides_like
from plait_ops.words import (
    check,
    contiguous_strides,
    fits,
    int64,
    numel,
    part,
    require,
    result_as,
    sizes,
)

LARGEST = 2**61

_MODES = """
    - "constant": `value`;
    - "reflect": the elements from the border inwards, without the border itself;
    - "replicate": the element at the border;
    - "circular": the elements from the opposite border inwards.
"""

pad_ = Operator(
    'pad(Tensor self, int[] pad, str mode="constant", Scalar value=0) -> Tensor',
    doc=f"""
    `self` with elements before and behind those of its last dimensions. By `mode` they are
    {_MODES}
    Negative numbers in `pad` cut elements off: before the padding in mode "circular", else after it.

    Args:
        pad: Two ints for every dimension, the last dimension first: ``(left, right, top, bottom)``.
        mode: "constant", "reflect", "replicate" or "circular".
        value: The elements of mode "constant".

    Shape: that of `self` with the two numbers added to each dimension. A result has the memory format of `self` if that
    is channels_last or channels_last_3d, but for "circular". Raises: ShapeError if `pad` does not have two ints for each
    of at most as many dimensions as `self` has, if more is cut off than there is, and if more elements are put at a
    border than `mode` has: size - 1 in mode "reflect", size in mode "circular"; ValueError for another `mode`,
    and for a `value` that the dtype does not have.

    >>> import plait_core as pc
    >>> from plait_abi import operator
    >>> operator("pad")(pc.tensor([1.0, 2.0, 3.0]), (2, 1), "reflect").tolist()
    [3.0, 2.0, 1.0, 2.0, 3.0, 2.0]
    """,
    dtypes="any",
    kernel="optional: without a kernel other operators compute it; in[0] has any strides, the result those that the shape function gives.",
    variants="",
)
pad_.batch("code")
pad_backward = Operator(
    "pad_backward(Tensor grad, int[] input_size, int[] pad, str mode) -> Tensor",
    doc="The derivative of `pad` with respect to `self`, which has the shape `input_size`.",
    dtypes="inexact",
    widens=True,
    kernel="optional: without a kernel other operators compute it; the gradients of an element's copies are added up; every element of the result is written.",
    internal=True,
)
pad_backward.batch("leading")


@part
def padded_shape(shape, pad, mode):
    """The shape of the result; `pad` and `mode` are checked."""
    check(
        len(pad) % 2 == 0 and len(pad) <= 2 * len(shape),
        f"`pad` must hold two ints for each of at most {len(shape)} dimensions of `self` {shape}; got {pad}",
    )
    check(
        mode == "constant" or mode == "reflect" or mode == "replicate" or mode == "circular",
        f"`mode` must be one of constant, reflect, replicate, circular; got '{mode}'",
        "ValueError",
    )
    made = list(shape)
    for i in range(len(pad) // 2):
        d = len(shape) - 1 - i
        before = pad[2 * i]
        after = pad[2 * i + 1]
        check(
            max(before, after) <= LARGEST and min(before, after) >= -LARGEST,
            f"`pad` must hold ints from {-LARGEST} to {LARGEST}; got {pad}",
            "ValueError",
        )
        n = shape[d]
        check(n + before + after >= 0, f"({before}, {after}) cuts more than dim {d} of {shape} has")
        made[d] = n + before + after
        if mode != "constant" and (before > 0 or after > 0):
            limit = max(n + min(before, 0) + min(after, 0), 0)  # circular
            if mode == "reflect":
                limit = max(n - 1, 0)
            if mode == "replicate":
                limit = max(before, after) if n > 0 else 0
            check(
                max(before, after) <= limit,
                f"mode '{mode}' can put at most {limit} elements at dim {d} of {shape}; got ({before}, {after})",
            )
    sizes("pad", made)
    return made


@part
def grows(pad):
    """Whether elements are added at any border."""
    added = 0
    for width in pad:
        added = max(added, width)
    return added > 0


@part
def negated(pad):
    cut = []
    for width in pad:
        cut.append(-width)
    return cut


@pad_.shape
def _(self, pad, mode, value):
    made = padded_shape(self.shape, pad, mode)
    fits("value", value, self.dtype)
    strides = contiguous_strides(made) if mode == "circular" else strides_like(self, made)
    return result_as(made, self.dtype, strides)


@pad_backward.shape
def _(grad, input_size, pad, mode):
    require("grad", grad.dtype, "inexact")
    made = padded_shape(input_size, pad, mode)
    check(grad.shape == made, f"`grad` must have shape {tuple(made)}; got {grad.shape}")
    return result_as(input_size, grad.dtype, strides_like(grad, input_size))


@pad_backward.cost
def _(grad):
    return numel(grad)


@pad_.vjp("self")
def _(g, self, pad, mode):
    if mode != "constant" and grows(pad):
        return pad_backward(g, self.shape, pad, mode)
    cut = negated(pad)
    if grows(cut):
        return op.pad(g, cut)
    inner = g
    for i in range(len(pad) // 2):
        if pad[2 * i] != 0 or pad[2 * i + 1] != 0:
            d = self.ndim - 1 - i
            inner = op.narrow(inner, d, pad[2 * i], self.shape[d])
    return inner


@pad_.jvp
def _(d_self, pad, mode):
    return op.pad(d_self, pad, mode)


@pad_backward.vjp("grad")
def _(g, pad, mode):
    return op.pad(g, pad, mode)


# ---- as operators of others ----------------------------------------------------------------------
@part
def source_places(size, before, after, mode, device):
    """The element of the input for each place along a padded dimension."""
    if mode == "circular":
        first = max(-before, 0)
        inner = size - first - max(-after, 0)
        places = op.arange_start(-max(before, 0), inner + max(after, 0), dtype=int64, device=device)
        return op.remainder(places, max(inner, 1)) + first
    places = op.arange_start(-before, size + after, dtype=int64, device=device)
    if mode == "replicate":
        return op.clamp(places, 0, size - 1)
    return (size - 1) - op.abs((size - 1) - op.abs(places))


@pad_.decompose
def _(self, pad, mode, value):
    made = list(self.shape)
    for i in range(len(pad) // 2):
        made[self.ndim - 1 - i] += pad[2 * i] + pad[2 * i + 1]
    if mode != "constant" and grows(pad):
        filled = self
        for i in range(len(pad) // 2):
            if pad[2 * i] != 0 or pad[2 * i + 1] != 0:
                d = self.ndim - 1 - i
                places = source_places(self.shape[d], pad[2 * i], pad[2 * i + 1], mode, self.device)
                filled = op.index_select(filled, d, places)
        return op.contiguous(filled) if mode == "circular" else laid_out_like(self, filled)
    filled = op.full(made, value, dtype=self.dtype, device=self.device)
    to = op.alias(filled)
    inner = op.alias(self)
    for i in range(len(pad) // 2):
        d = self.ndim - 1 - i
        before = pad[2 * i]
        first = max(-before, 0)
        count = max(min(self.shape[d], self.shape[d] + pad[2 * i + 1]) - first, 0)
        if count == 0:
            first = 0
            before = 0
        inner = op.narrow(inner, d, first, count)
        to = op.narrow(to, d, max(before, 0), count)
    op.copy_(to, inner)
    return op.contiguous(filled) if mode == "circular" else laid_out_like(self, filled)


@pad_backward.decompose
def _(grad, input_size, pad, mode):
    if mode == "constant":
        return op.pad(grad, negated(pad))
    made = grad
    for i in range(len(pad) // 2):
        if pad[2 * i] != 0 or pad[2 * i + 1] != 0:
            d = grad.ndim - 1 - i
            places = source_places(input_size[d], pad[2 * i], pad[2 * i + 1], mode, grad.device)
            size = list(made.shape)
            size[d] = input_size[d]
            zero = op.zeros(size, dtype=grad.dtype, device=grad.device)
            made = op.index_add(zero, d, places, made)
    return laid_out_like(grad, made)
