"""The regions of memory to write for a list of tensors, each storage once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plait_abi import binding
from plait_core._core import Tensor


class Region(NamedTuple):
    """Bytes to write, one-dimensional uint8, and the tensor whose elements in C order they are, or
    None.
    """

    data: np.ndarray[Any, Any]
    leader: int | None


class RegionView(NamedTuple):
    """A tensor as a view of a region (-1: none, the tensor is on meta); offset and strides in
    elements.
    """

    region: int
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


def _span(tensor: Tensor) -> tuple[int, int]:
    """Return the range [low, high) of bytes of its storage that a tensor uses."""
    low = high = 0
    for size, step in zip(tensor.shape, tensor.stride(), strict=True):
        reach = (size - 1) * step
        low, high = low + min(reach, 0), high + max(reach, 0)
    item = tensor.dtype.itemsize
    start = tensor.data_ptr() - tensor._storage_extent()[0]
    return start + low * item, start + (high + 1) * item


def _bytes_of(tensor: Tensor, low: int, high: int) -> np.ndarray[Any, Any]:
    result: np.ndarray[Any, Any] = tensor.detach()._storage_bytes()[low:high].cpu().numpy()
    return result


def c_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of C order."""
    steps, step = [], 1
    for size in reversed(shape):
        steps.append(step)
        step *= max(size, 1)
    return tuple(reversed(steps))


def _compacted(tensor: Tensor) -> Tensor:
    """Return the tensor, or a copy of it if its storage has many bytes that it does not use."""
    low, high = _span(tensor)
    forward = all(step >= 0 for step in tensor.stride())
    if forward and high - low <= tensor.numel() * tensor.dtype.itemsize:
        return tensor
    return tensor.detach().contiguous()


class _Group:
    """Tensors on one storage."""

    def __init__(self, numbers: list[int], tensors: list[Tensor]) -> None:
        self.numbers, self.tensors = numbers, tensors
        spans = [_span(tensor) for tensor in tensors]
        self.low = min(low for low, _ in spans)
        self.high = max(high for _, high in spans)
        addresses = [tensor.data_ptr() - tensor._storage_extent()[0] for tensor in tensors]
        items = [tensor.dtype.itemsize for tensor in tensors]
        if any((view - self.low) % item for view, item in zip(addresses, items, strict=True)):
            self.low = self.low // 16 * 16
        self.offsets = [(p - self.low) // item for p, item in zip(addresses, items, strict=True)]

    def leader(self) -> int | None:
        for number, tensor in zip(self.numbers, self.tensors, strict=True):
            if tensor.is_contiguous() and _span(tensor) == (self.low, self.high):
                return number
        return None


def regions_of(tensors: list[Tensor]) -> tuple[list[Region], list[RegionView]]:
    """Return the regions, and the view of a region for each tensor.

    The region of a tensor that is alone on its storage is the bytes that it uses, or a copy in C
    order if there are gaps between them.
    """
    groups: dict[Any, list[int]] = {}
    views: list[RegionView] = []
    for number, tensor in enumerate(tensors):
        shape = tuple(tensor.shape)
        views.append(RegionView(-1, 0, shape, tuple(tensor.stride())))
        if tensor.device.type == "meta":
            continue
        alone = not tensor.numel() or not tensor._storage_extent()[0]
        # two devices may have the same addresses
        key = -1 - number if alone else (tensor.device, *tensor._storage_extent())
        groups.setdefault(key, []).append(number)
    regions: list[Region] = []
    for numbers in groups.values():
        first = tensors[numbers[0]]
        if not first.numel():
            shape = tuple(first.shape)
            views[numbers[0]] = RegionView(len(regions), 0, shape, c_strides(shape))
            regions.append(Region(np.empty(0, np.uint8), numbers[0]))
            continue
        members = [tensors[n] for n in numbers] if len(numbers) > 1 else [_compacted(first)]
        group = _Group(numbers, members)
        for number, tensor, offset in zip(numbers, members, group.offsets, strict=True):
            view = RegionView(len(regions), offset, tuple(tensor.shape), tuple(tensor.stride()))
            views[number] = view
        regions.append(Region(_bytes_of(members[0], group.low, group.high), group.leader()))
    return regions, views


def empty_bytes(nbytes: int, device: str = "cpu") -> Tensor:
    """Make a one-dimensional uint8 tensor."""
    result: Tensor = binding.operator("empty")((nbytes,), dtype="uint8", device=device)
    return result
