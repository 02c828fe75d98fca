"""Methods of Tensor that are not operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from plait_abi import binding
from plait_core._core import Tensor
from plait_core._tensor._memory_formats import (
    channels_last,
    channels_last_3d,
    contiguous_format,
)
from plait_core._tensor._storages import UntypedStorage, storage_of


def _tensor(name: str, argument: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}: `{argument}` must be a Tensor, got {type(value).__name__}")
    return value


_FORMATS = (contiguous_format, channels_last, channels_last_3d)


def _require_formats(is_right: bool) -> None:
    if not is_right:
        raise TypeError("dim_order: `ambiguity_check` must be a bool or a list of memory formats")


# ---- questions -----------------------------------------------------------------------------------
def dim_order(self: Tensor, ambiguity_check: Any = False) -> tuple[int, ...]:
    """Return the dimensions in the order of memory, the outermost first.

    Args:
        ambiguity_check: True: there must be no other order that describes the strides as well; a
            list of memory formats: the tensor must be contiguous in at most one of them.

    Raises:
        RuntimeError: by `ambiguity_check`.
        TypeError: if that is neither a bool nor a list of memory formats.

    Example:
        >>> import plait_core as pc
        >>> pc.zeros(1, 2, 3, 4).contiguous(memory_format=pc.channels_last).dim_order()
        (0, 2, 3, 1)
    """
    strides = self.stride()
    if isinstance(ambiguity_check, (list, tuple)):
        _require_formats(all(each in _FORMATS for each in ambiguity_check))
        formats = [each for each in ambiguity_check if self.is_contiguous(memory_format=each)]
        ambiguous = len(formats) > 1
    else:
        _require_formats(isinstance(ambiguity_check, bool))
        ambiguous = ambiguity_check and (
            1 in self.shape or 0 in strides or len({*strides}) < self.ndim
        )
    if ambiguous:
        raise binding.ArgumentError(
            "dim_order: the order of the dimensions is not unique for shape "
            f"{tuple(self.shape)} with strides {tuple(strides)}"
        )
    return tuple(sorted(range(self.ndim), key=lambda i: (-abs(strides[i]), i)))


def get_device(self: Tensor) -> int:
    """Return the index of the device; -1 for the CPU.

    Example:
        >>> import plait_core as pc
        >>> pc.zeros(2).get_device()
        -1
    """
    index = self.device.index
    return -1 if self.device.type in ("cpu", "meta") or index is None else index


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape.

    Args:
        input: The tensor.
        other: The second tensor.

    Example:
        >>> import plait_core as pc
        >>> pc.zeros(2, 3).is_same_size(pc.ones(2, 3))
        True
    """
    for name, value in (("input", input), ("other", other)):
        _tensor("is_same_size", name, value)
    return input.shape == other.shape


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Return whether two tensors have the same storage, offset, shape and strides.

    Example:
        >>> import plait_core as pc
        >>> x = pc.zeros(4)
        >>> x.is_set_to(x[:]), x.is_set_to(x[:2]), x.is_set_to(x.clone())
        (True, False, False)
    """
    _tensor("is_set_to", "tensor", tensor)
    return (
        self._storage_extent() == tensor._storage_extent()
        and self.data_ptr() == tensor.data_ptr()
        and self.shape == tensor.shape
        and self.stride() == tensor.stride()
        and self.dtype is tensor.dtype
    )


def is_nonzero(self: Tensor) -> bool:
    """Return whether the only element is not zero.

    Example:
        >>> import plait_core as pc
        >>> pc.tensor([2]).is_nonzero()
        True
    """
    return bool(self)


def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Return whether the memory is page-locked, so that copies to and from a device need no wait.

    Args:
        device: accepted as in PyTorch; the answer does not depend on it.

    Example:
        >>> import plait_core as pc
        >>> pc.zeros(2).is_pinned()
        False
    """
    return self._is_pinned()


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Return a copy in page-locked memory, or the tensor itself if it is there already.

    ``x.to(device, non_blocking=True)`` copies from such memory while the host continues. Without an
    accelerator there is nothing to pin for, and the result is the tensor itself.

    Args:
        device: the accelerator that copies; None is the current one.

    Raises:
        RuntimeError: if the tensor is not on the CPU.
        ValueError: if `device` is no accelerator.

    Example:
        >>> import plait_core as pc
        >>> x = pc.zeros(2).pin_memory()
        >>> x.is_pinned() == pc.accelerator.is_available()
        True
    """
    if self.device.type != "cpu":
        raise RuntimeError(f"pin_memory: a tensor on the CPU is required, got one on {self.device}")
    choice = binding.current_accelerator() if device is None else binding.device(device)
    if choice is None or self._is_pinned():
        return self
    binding.check_device("pin_memory", choice)
    return self._pinned_like(self.dtype, choice).copy_(self)


def record_stream(self: Tensor, stream: binding.Stream) -> None:
    """Say that work in a stream uses the tensor's memory, which a call from another library put
    there.

    The memory is given out again only when this work is done. For calls of plait it is done anyway.

    Raises:
        TypeError: if `stream` is no Stream.
        ValueError: if it is a stream of another device.

    Example:
        >>> import plait_core as pc
        >>> x = pc.zeros(2)
        >>> x.record_stream(pc.Stream(x.device))
    """
    binding.record_use(self, stream)


def same(self: Tensor) -> Tensor:
    """Return the tensor itself: conjugates and negatives are computed at once, never lazily.

    Example:
        >>> import plait_core as pc
        >>> pc.tensor([1j]).conj().resolve_conj().resolve_neg().tolist()
        [-1j]
    """
    return self


def is_lazy(self: Tensor) -> bool:
    """Return False: conjugates and negatives are computed at once, never lazily.

    Example:
        >>> import plait_core as pc
        >>> x = pc.tensor([1j]).conj()
        >>> x.is_conj(), x.is_neg(), x.is_inference()
        (False, False, False)
    """
    return False


def untyped_storage(self: Tensor) -> UntypedStorage:
    """Return the bytes that this tensor and its views share.

    Example:
        >>> import plait_core as pc
        >>> x = pc.zeros(4)
        >>> x[1:].untyped_storage().nbytes()
        16
    """
    return storage_of(self)


def __reversed__(self: Tensor) -> Iterator[Tensor]:  # noqa: N807
    if self.ndim == 0:
        raise TypeError("reversed: a 0-d tensor cannot be iterated over")
    return iter(self.flip(0))


def __array_namespace__(self: Tensor, /, *, api_version: str | None = None) -> Any:  # noqa: N807
    """Return the module whose functions follow the Python array API standard, 2024.12.

    Raises:
        ValueError: for a version of the standard that is not supported.
    """
    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12"):
        raise ValueError(
            f"__array_namespace__: `api_version` must be 2024.12 or an older one, got {api_version}"
        )
    from plait_core import array_api

    return array_api


def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """Return the tensor on a device.

    Args:
        device: where the result lies.
        stream: the Stream of the tensor's device, or of `device`, in which the copy runs; None is
            the current one.

    Raises:
        TypeError: if `stream` is no Stream.

    Example:
        >>> import plait_core as pc
        >>> pc.tensor([1.0, 2.0]).to_device("cpu")
        tensor([1., 2.])
    """
    if stream is None:
        return self.to(device)
    if not isinstance(stream, binding.Stream):
        raise TypeError(
            f"to_device: `stream` must be a Stream or None, got {type(stream).__name__}"
        )
    with stream:
        return self.to(device)


# ---- other shapes of the same --------------------------------------------------------------------
def _like(name: str, operator: str) -> Callable[[Tensor, Tensor], Tensor]:
    def method(self: Tensor, other: Tensor) -> Tensor:
        return getattr(self, operator)(tuple(_tensor(name, "other", other).shape))  # type: ignore[no-any-return]

    method.__name__ = name
    method.__qualname__ = f"Tensor.{name}"
    method.__doc__ = f"Return ``self.{operator}(other.shape)``."
    return method


def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """Sum over the dimensions along which a tensor of `size` would be expanded to this shape.

    Raises:
        ShapeError: if `size` does not broadcast to the shape of `self`.

    Example:
        >>> import plait_core as pc
        >>> pc.ones(2, 3).sum_to_size(1, 3)
        tensor([[2., 2., 2.]])
    """
    expected = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
    extra = self.ndim - len(expected)
    fits = extra >= 0 and all(
        n in (1, m) for n, m in zip(expected, tuple(self.shape)[max(extra, 0) :], strict=False)
    )
    if not fits:
        raise binding.ShapeError(
            f"sum_to_size: `size` must broadcast to the shape {tuple(self.shape)}, got {expected}"
        )
    inner = [i + extra for i, n in enumerate(expected) if n == 1 and self.shape[i + extra] != 1]
    dims = [*range(extra), *inner]
    return self.sum(dims, keepdim=True).reshape(expected) if dims else self


# ---- functions of Python, one element after the other --------------------------------------------
def _numbers(self: Tensor) -> list[Any]:
    return self.detach().reshape(-1).tolist()  # type: ignore[no-any-return]


def _write(self: Tensor, values: list[Any]) -> Tensor:
    from plait_core import _creation

    result = _creation.tensor(values, dtype=self.dtype, device="cpu")
    return self.copy_(result.reshape(tuple(self.shape)))


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by a Python function of it. It is slow, and for the CPU only.

    Args:
        callable: The function of one number.

    Example:
        >>> import plait_core as pc
        >>> pc.tensor([1, 2]).apply_(lambda x: 10 * x)
        tensor([10, 20])
    """
    return _write(self, [callable(value) for value in _numbers(self)])


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by a Python function of it and the element of `tensor`. It is slow.

    Args:
        callable: The function of two numbers.

    Example:
        >>> import plait_core as pc
        >>> pc.tensor([1, 2]).map_(pc.tensor([10, 20]), lambda a, b: a + b)
        tensor([11, 22])
    """
    other = _tensor("map_", "tensor", tensor).expand(tuple(self.shape))
    pairs = zip(_numbers(self), _numbers(other), strict=True)
    return _write(self, [callable(a, b) for a, b in pairs])


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[..., Any]) -> Tensor:
    """Replace each element by a Python function of it and of two other tensors' elements. It is
    slow.

    Args:
        x: The tensor of the second arguments.
        y: The tensor of the third arguments.
        callable: The function of three numbers.

    Example:
        >>> import plait_core as pc
        >>> x = pc.tensor([1, 2])
        >>> x.map2_(pc.tensor([10, 20]), pc.tensor([3, 4]), lambda a, b, c: a + b * c)
        tensor([31, 82])
    """
    both = _tensor("map2_", "x", x), _tensor("map2_", "y", y)
    others = [_numbers(other.expand(tuple(self.shape))) for other in both]
    return _write(self, [callable(*three) for three in zip(_numbers(self), *others, strict=True)])


METHODS: dict[str, Callable[..., Any]] = {
    "__array_namespace__": __array_namespace__,
    "__reversed__": __reversed__,
    "apply_": apply_,
    "dim_order": dim_order,
    "get_device": get_device,
    "is_conj": is_lazy,
    "is_inference": is_lazy,
    "is_neg": is_lazy,
    "is_nonzero": is_nonzero,
    "is_pinned": is_pinned,
    "is_same_size": is_same_size,
    "is_set_to": is_set_to,
    "map2_": map2_,
    "map_": map_,
    "pin_memory": pin_memory,
    "record_stream": record_stream,
    "resolve_conj": same,
    "resolve_neg": same,
    "to_device": to_device,
    "untyped_storage": untyped_storage,
}
# methods that are used if no operator has their name
FALLBACKS: dict[str, Callable[..., Any]] = {
    "expand_as": _like("expand_as", "expand"),
    "reshape_as": _like("reshape_as", "reshape"),
    "sum_to_size": sum_to_size,
    "view_as": _like("view_as", "view"),
}

# aliases of operators that are not operators themselves
SECOND_NAMES = {
    name + form: first + form
    for form in ("", "_")
    for name, first in {
        "greater": "gt",
        "greater_equal": "ge",
        "less": "lt",
        "less_equal": "le",
        "not_equal": "ne",
    }.items()
}
