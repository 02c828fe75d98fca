"""`torch._utils`: lists of tensors as one, and numbers of devices."""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

import plait
from plait_torch._accelerator import get_device_module as _get_device_module
from plait_torch._compiler import is_compiling as is_compiling
from plait_torch._file_names import meant

__all__ = [
    "ExceptionWrapper",
    "KeyErrorMessage",
    "_element_size",
    "_flatten_dense_tensors",
    "_get_all_device_indices",
    "_get_available_device_type",
    "_get_device_index",
    "_get_device_module",
    "_import_dotted_name",
    "_rebuild_parameter",
    "_rebuild_tensor",
    "_rebuild_tensor_v2",
    "_take_tensors",
    "_rebuild_tensor_v3",
    "_unflatten_dense_tensors",
    "is_compiling",
]


def _flatten_dense_tensors(tensors: Sequence[Any]) -> Any:
    """Return the elements of tensors of one dtype as one tensor with one dimension.

    Example:
        >>> import plait
        >>> from plait_torch._tensor_lists import _flatten_dense_tensors
        >>> _flatten_dense_tensors([plait.ones(2, 2), plait.zeros(1)])
        tensor([1., 1., 1., 1., 0.])
    """
    return plait.cat([tensor.reshape(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Any, tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Return views of a result of `_flatten_dense_tensors` with the shapes of the tensors."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.reshape(t.shape) for part, t in zip(parts, tensors, strict=True))


def _element_size(dtype: Any) -> int:
    """Return the bytes of an element of a dtype."""
    return int(dtype.itemsize)


def _get_available_device_type() -> str | None:
    """Return the type of the accelerator, or None."""
    device = plait.accelerator.current_accelerator()
    return None if device is None else device.type


def _get_all_device_indices() -> list[int] | None:
    """Return the numbers of the accelerator's devices, or None."""
    return list(range(plait.accelerator.device_count())) or None


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """Return the number of a device, of its name, or a number itself; for the CPU -1, if allowed.

    Raises:
        ValueError: for the CPU where it is not allowed, and for None unless it is optional.
        RuntimeError: for None, if it is optional and there is no accelerator.
    """
    if isinstance(device, int):
        return device
    if device is None and optional:
        index: int = plait.accelerator.current_device_index()
        return index
    result = plait.device(device) if device is not None else None
    if result is not None and result.type == "cpu" and allow_cpu:
        return -1
    if result is None or result.type == "cpu":
        raise ValueError(f"_get_device_index: a device with a number is required, got {device!r}")
    return result.index or 0


def _import_dotted_name(name: str) -> Any:
    """Return the object of a dotted name, such as ``"torch.nn.Linear"``."""
    first, *parts = name.split(".")
    return functools.reduce(getattr, parts, __import__(first))


def _rebuild_parameter(data: Any, requires_grad: bool, backward_hooks: Iterable[Any]) -> Any:
    """Return a parameter with these elements."""
    return plait.nn.Parameter(data, requires_grad)


def _take_tensors(tensors: Iterable[Any], size_limit: int) -> Iterator[list[Any]]:
    """Yield lists of tensors of one type, which have about ``size_limit`` bytes together.

    Example:
        >>> import plait
        >>> from plait_torch._tensor_lists import _take_tensors
        >>> [len(each) for each in _take_tensors([plait.ones(4), plait.ones(2), plait.ones(1)], 20)]
        [1, 2]
    """
    waiting: dict[Any, tuple[list[Any], int]] = {}
    for tensor in tensors:
        kind = tensor.dtype, tensor.device
        held, size = waiting.pop(kind, ([], 0))
        own = tensor.numel() * tensor.element_size()
        if held and size + own > size_limit:
            yield held
            held, size = [], 0
        waiting[kind] = [*held, tensor], size + own
    for held, _ in waiting.values():
        yield held


def _rebuild_tensor(
    storage: Any, storage_offset: int, size: Sequence[int], stride: Sequence[int]
) -> Any:
    """Return a tensor over a storage of ``tensor.storage()``, in its dtype.

    Example:
        >>> import plait
        >>> from plait_torch._tensor_lists import _rebuild_tensor
        >>> from plait_torch._typed_storages import TypedStorage
        >>> _rebuild_tensor(TypedStorage(plait.arange(4)), 1, (2,), (2,))
        tensor([1, 3])
    """
    result = plait.empty(0, dtype=storage.dtype)
    return result.set_(storage.untyped(), storage_offset, tuple(size), tuple(stride))


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: int,
    size: Sequence[int],
    stride: Sequence[int],
    requires_grad: bool,
    backward_hooks: Iterable[Any],
    metadata: Any = None,
) -> Any:
    """Return a tensor over a storage, which may require grad; PyTorch's metadata say that it is
    conjugated or negated.
    """
    result = _rebuild_tensor(storage, storage_offset, size, stride)
    if isinstance(metadata, dict):
        result = meant(result, metadata)
    return result.requires_grad_(requires_grad)


def _rebuild_tensor_v3(
    storage: Any,
    storage_offset: int,
    size: Sequence[int],
    stride: Sequence[int],
    requires_grad: bool,
    backward_hooks: Iterable[Any],
    dtype: Any,
    metadata: Any = None,
) -> Any:
    """Return a tensor of a dtype over an untyped storage."""
    tensor = plait.empty(0, dtype=dtype)
    tensor = tensor.set_(storage, storage_offset, tuple(size), tuple(stride))
    return tensor.requires_grad_(requires_grad)


class KeyErrorMessage(str):
    """The text of a KeyError, which prints with its lines as they are.

    Example:
        >>> from plait_torch._tensor_lists import KeyErrorMessage
        >>> print(KeyError(KeyErrorMessage("one line")))
        one line
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception that is raised again, for example in another thread, with its text.

    Example:
        >>> from plait_torch._tensor_lists import ExceptionWrapper
        >>> try:
        ...     int("x")
        ... except ValueError:
        ...     caught = ExceptionWrapper(where="in a thread")
        >>> caught.exc_type.__name__, "invalid literal" in caught.exc_msg
        ('ValueError', True)
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        exc_info = sys.exc_info() if exc_info is None else exc_info
        self.exc_type = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def reraise(self) -> NoReturn:
        """Raise an exception of the same class whose text has the place and the traceback."""
        raise _with_text(self.exc_type, self.where, self.exc_msg) from None


def _with_text(kind: Any, where: str, trace: str) -> Any:
    """Return an exception of a class with this text, or RuntimeError if it takes no text."""
    text = f"Caught {kind.__name__} {where}.\nOriginal {trace}"
    if issubclass(kind, KeyError):
        text = KeyErrorMessage(text)
    try:
        return kind(message=text) if getattr(kind, "message", None) else kind(text)
    except Exception:  # a class with other arguments
        return RuntimeError(text)


def worker_error(error: BaseException, trace: str, worker: int) -> Any:
    """Return what a loader raises for an exception in a worker: its class, with PyTorch's text.

    Example:
        >>> from plait_torch._tensor_lists import worker_error
        >>> print(worker_error(ValueError("no image"), "Traceback ...", 0))
        Caught ValueError in DataLoader worker process 0.
        Original Traceback ...
    """
    return _with_text(type(error), f"in DataLoader worker process {worker}", trace)
