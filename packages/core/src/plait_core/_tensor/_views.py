"""Views with another dtype, and `narrow_copy`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from plait_abi import ShapeError, binding
from plait_core._core import Tensor
from plait_core._tensor._storages import storage_of

_dtype = binding.dtype


def view(self: Tensor, *shape: Any, size: Any = None, dtype: Any = None) -> Tensor:
    """Return what the method `Tensor.view` returns, whose docstring says it.

    The method calls this for a dtype, for keywords and for sizes that are not plain ints.
    """
    if dtype is None:
        if len(shape) != 1 or type(shape[0]) is not _dtype:
            result: Tensor = _operator("view")(self, *(shape if size is None else (*shape, size)))
            return result
        dtype, shape = shape[0], ()
    if shape or size is not None:
        raise TypeError("view: a shape or `dtype` is required, got both")
    return _reinterpreted(self, dtype)


@functools.cache
def _operator(name: str) -> Any:
    return binding.operator(name)


def _reinterpreted(self: Tensor, dtype: Any) -> Tensor:
    try:
        kind = _dtype(dtype)
    except (TypeError, ValueError):
        raise TypeError(f"view: `dtype` must be a dtype, got {dtype!r}") from None
    if kind is self.dtype:
        return self.view(tuple(self.shape))
    old, new = self.dtype.itemsize, kind.itemsize
    shape, strides, offset = list(self.shape), list(self.stride()), self.storage_offset()
    if old != new:
        shape, strides, offset = _scaled(self, kind, shape, strides, offset)
    if self.device.type == "meta":
        output: Tensor = _operator("empty_strided")(shape, strides, dtype=kind, device="meta")
        return output
    result = storage_of(self).tensor(kind, offset, tuple(shape), tuple(strides))
    return result if type(self) is Tensor else Tensor._make_subclass(type(self), result, False)


def _scaled(
    self: Tensor, kind: binding.dtype, shape: list[int], strides: list[int], offset: int
) -> tuple[list[int], list[int], int]:
    """Return shape, strides and offset counted in elements of another size."""
    names = f"{self.dtype.name} as {kind.name}"
    old, new = self.dtype.itemsize, kind.itemsize
    if not shape:
        raise ShapeError(f"view: at least 1 dimension is required to see {names}, got shape ()")
    if new < old:
        ratio = old // new
        if strides[-1] != 1:
            raise ShapeError(
                f"view: stride 1 is required in the last dimension to see {names}, got strides "
                f"{tuple(strides)}"
            )
        shape[-1] *= ratio
        return shape, [each * ratio for each in strides[:-1]] + [1], offset * ratio
    ratio = new // old
    wrong = [
        *(["the last size"] if shape[-1] % ratio else []),
        *(["the offset"] if offset % ratio else []),
        *(["all strides but the last"] if any(each % ratio for each in strides[:-1]) else []),
    ]
    if wrong or strides[-1] != 1:
        requirement = (
            f"{wrong[0]} must be divisible by {ratio}" if wrong else "the last stride must be 1"
        )
        raise ShapeError(
            f"view: {requirement} to see {names}, got shape {tuple(shape)}, "
            f"strides {tuple(strides)} and offset {offset}"
        )
    shape[-1] //= ratio
    return shape, [each // ratio for each in strides[:-1]] + [1], offset // ratio


def narrow_copy(input: Tensor, dim: int, start: int | Tensor, length: int) -> Tensor:
    """Return a copy of ``narrow(dim, start, length)``.

    Args:
        input: The tensor, also a sparse one.
        dim: The dimension.
        start: The index of the first element.
        length: The number of elements.

    Raises:
        IndexError, ValueError: what `narrow` raises.

    Example:
        >>> import plait_core as pc
        >>> x = pc.arange(4)
        >>> x.narrow_copy(0, 1, 2).fill_(0), x
        (tensor([0, 0]), tensor([0, 1, 2, 3]))
    """
    if input.is_sparse:  # which has a method of its own
        return input.narrow_copy(dim, start, length)
    part = _operator("narrow")(input, dim, start, length)
    return part.clone(memory_format="contiguous_format")  # type: ignore[no-any-return]


METHODS: dict[str, Callable[..., Any]] = {"narrow_copy": narrow_copy}
