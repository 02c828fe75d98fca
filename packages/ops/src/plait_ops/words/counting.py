"""Words that count: ranges, slices, indices and windows."""

from __future__ import annotations

import math

from plait_ops.value_types import Scalar, Shape, Tensor, TensorList
from plait_ops.words.calling import LIMIT, fail, show
from plait_ops.words.declaring import word
from plait_ops.words.failing import require, wrap_dim
from plait_ops.words.sizes import broadcast

__all__ = ["count_of", "gather_check", "index_shape", "slice_count", "slice_start", "windows"]


@word(on_call=True)
def count_of(start: Scalar, end: Scalar, step: Scalar, whole: bool) -> int:
    """Return the number of elements of ``start, start + step, ...`` before `end`; if `whole`, the
    three numbers are truncated first.
    """
    for value in (start, end, step):
        if isinstance(value, complex) or not math.isfinite(value):
            fail(
                "ValueError",
                f"`start`, `end` and `step` must be finite real numbers; got {start}, {end} and "
                f"{step}",
            )
    if whole:
        if any(not -LIMIT <= value < LIMIT for value in (start, end, step)):
            fail(
                "ValueError",
                f"`start`, `end` and `step` must fit in 64 bits; got {start}, {end} and {step}",
            )
        start, end, step = (
            int(value) if isinstance(value, float) else value for value in (start, end, step)
        )
    if step == 0:
        fail("ValueError", f"`step` must not be 0; got {step}")
    if (end - start if step > 0 else start - end) < 0:
        fail("ValueError", f"`step` {step} must lead from `start` {start} towards `end` {end}")
    if isinstance(start, float) or isinstance(end, float) or isinstance(step, float):
        count = math.ceil((float(end) - float(start)) / float(step))
    else:
        count = -((start - end) // step)
    if count >= LIMIT:
        fail(
            "ShapeError",
            f"`start` {start}, `end` {end} and `step` {step} name 2**63 elements or more",
        )
    return count


@word()
def slice_start(start: int | None, step: int, size: int) -> int:
    """Return the index at which ``start::step`` begins."""
    return slice(start, None, step).indices(size)[0]


@word()
def slice_count(start: int | None, end: int | None, step: int, size: int) -> int:
    """Return the number of elements of the slice ``start:end:step``."""
    return len(range(*slice(start, end, step).indices(size)))


@word(on_call=True)
def gather_check(name: str, shape: Shape, dim: int, index_name: str, index: Tensor) -> None:
    """Fail unless `index` can select elements of `shape` along `dim`."""
    at = wrap_dim("dim", dim, shape)
    require(index_name, str(index.dtype), "integer")
    fits = len(shape) == index.ndim
    for d in range(index.ndim):
        fits = fits and (d == at or index.shape[d] <= shape[d])
    if not fits:
        fail(
            "ShapeError",
            f"`{index_name}` of shape {show(index.shape)} must have the dimensions of `{name}` "
            f"of shape {show(shape)} and, "
            f"except along {at}, must not be larger",
        )


@word(on_call=True)
def index_shape(argument: str, shape: Shape, indices: TensorList) -> list[int]:
    """Return the shape of ``x[indices]`` for integer tensors, with None for whole dimensions."""
    if len(indices) > len(shape):
        fail(
            "IndexError", f"too many indices for `self` of shape {show(shape)}: got {len(indices)}"
        )
    common: list[int] = []
    places = [i for i, index in enumerate(indices) if index is not None]
    for i in places:
        require(argument, str(indices[i].dtype), "integer")
        common = broadcast(argument, common, f"{argument}[{i}]", indices[i].shape)
    if not places:
        return list(shape)
    rest = [size for i, size in enumerate(shape) if i not in places]
    together = places[-1] - places[0] + 1 == len(places)
    lead = places[0] if together else 0
    return rest[:lead] + common + rest[lead:]


@word(on_call=True)
def windows(
    shape: Shape, at: int, size: int, stride: int, padding: int, dilation: int, ceil: bool
) -> int:
    """Return the number of windows of `size` in the padded dimension `at` of `shape`."""
    for name, value, least in (
        ("kernel_size", size, 1),
        ("stride", stride, 1),
        ("padding", padding, 0),
        ("dilation", dilation, 1),
    ):
        if not least <= value < 2**31:
            fail("ValueError", f"`{name}` must be in [{least}, 2**31); got {value}")
    room = shape[at] + 2 * padding - dilation * (size - 1) - 1
    count = (room + stride - 1 if ceil else room) // stride + 1
    # the last window must begin inside the image or its left padding
    if ceil and (count - 1) * stride >= shape[at] + padding:
        count -= 1
    if room < 0 and count < 1:
        fail(
            "ShapeError",
            f"windows of {dilation * (size - 1) + 1} elements must fit into the padded "
            f"dimension {at} of shape "
            f"{show(shape)}, which has {shape[at] + 2 * padding}",
        )
    return count
