"""Padding at the borders."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plait_core as pc
from plait_abi import ArgumentError
from plait_core import Tensor
from plait_nn.functional._checks import reserve

_MUCH = 1 << 20  # elements on a side
_MODES = ("constant", "reflect", "replicate", "circular")


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Put elements before and after each of the last dimensions.

    Args:
        input: Any tensor.
        pad: Two ints for every dimension, the last dimension first: ``(left, right, top, bottom)``.
            Negative ones cut elements off: before the padding in mode "circular", else after it.
        mode: "constant", "reflect" (the border not repeated), "replicate" or "circular".
        value: The elements of mode "constant"; None is 0.

    Example:
        >>> import plait_core as pc, plait_nn as nn
        >>> nn.functional.pad(pc.tensor([1.0, 2.0, 3.0]), (2, 1), mode="reflect").tolist()
        [3.0, 2.0, 1.0, 2.0, 3.0, 2.0]
    """
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise ArgumentError(
            f"pad: `pad` must hold two ints for each of at most {input.ndim} dimensions of input "
            f"{tuple(input.shape)}; got {tuple(pad)}"
        )
    if mode not in _MODES:
        raise ArgumentError(f"pad: `mode` must be one of {', '.join(_MODES)}; got {mode!r}")
    if max(pad, default=0) >= _MUCH:  # before dimensions are padded one after the other
        sizes = list(input.shape)
        for number, count in enumerate(pad):
            sizes[input.ndim - 1 - number // 2] += count
        reserve(math.prod(max(size, 0) for size in sizes) * input.itemsize, input)
    result = input
    for number in range(len(pad) // 2):
        before, after = pad[2 * number], pad[2 * number + 1]
        if before or after:
            result = _pad_dim(result, input.ndim - 1 - number, before, after, mode, value or 0)
    # a result shares no memory with its input, also if nothing was added
    return result if max(pad, default=0) > 0 else result.clone()


def _pad_dim(input: Tensor, dim: int, before: int, after: int, mode: str, value: float) -> Tensor:
    size = input.shape[dim]
    if size + before + after < 0:
        raise ArgumentError(
            f"pad: ({before}, {after}) cuts more than dim {dim} of {tuple(input.shape)} has"
        )
    # elements that are cut off are not used for circular padding
    if mode == "circular" and min(before, after) < 0:
        start, stop = max(-before, 0), size - max(-after, 0)
        input, before, after = input.narrow(dim, start, stop - start), max(before, 0), max(after, 0)
        size = input.shape[dim]
    if mode != "constant" and (before > 0 or after > 0):
        more = max(before + after, 0)
        reserve(more * (48 + input.numel() // max(size, 1) * input.itemsize), input)
        indices = _source_indices(size, before, after, mode, dim, tuple(input.shape))
        positions = pc.tensor(indices, dtype=pc.int64, device=input.device)
        return input.index_select(dim, positions)
    start, stop = max(-before, 0), size - max(-after, 0)
    whole = (start, stop) == (0, size)
    pieces = [input if whole else input.narrow(dim, start, max(stop - start, 0))]
    for width, position in ((before, 0), (after, len(pieces) + (before > 0))):
        if width > 0:
            shape = list(input.shape)
            shape[dim] = width
            block = pc.full(shape, value, dtype=input.dtype, device=input.device)
            pieces.insert(position, block)
    return pieces[0] if len(pieces) == 1 else pc.cat(pieces, dim)


def _source_indices(
    size: int, before: int, after: int, mode: str, dim: int, shape: tuple[int, ...]
) -> list[int]:
    """Return the index in the input for each index of the result."""
    limit = {"reflect": size - 1, "circular": size, "replicate": max(before, after)}[mode]
    if max(before, after) > limit or size == 0:
        raise ArgumentError(
            f"pad: mode {mode!r} can put at most {max(limit, 0) if size else 0} elements at dim "
            f"{dim} of {shape}; got ({before}, {after})"
        )
    first, end = -before, size + after
    # only what lies outside of the dimension is looked up: a long one has many indices
    front = (_source_index(i, size, mode) for i in range(first, min(0, end)))
    back = (_source_index(i, size, mode) for i in range(max(size, first), end))
    return [*front, *range(max(first, 0), min(end, size)), *back]


def _source_index(i: int, size: int, mode: str) -> int:
    """Return the index in the input for index `i`, which may lie outside of it."""
    if mode == "replicate":
        return min(max(i, 0), size - 1)
    if mode == "circular":
        return i % size
    return -i if i < 0 else i if i < size else 2 * (size - 1) - i
