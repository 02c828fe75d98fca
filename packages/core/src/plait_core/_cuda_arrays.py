"""Tensors on the memory of arrays with ``__cuda_array_interface__``, such as those of Numba."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plait_abi import binding
from plait_core._core import Tensor, _borrow_memory

_KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}
_NEWEST = 3


def from_cuda_array(array: Any) -> Tensor:
    """Return a tensor on the memory of an array on a CUDA device, which the tensor keeps alive.

    The current stream waits for the work in the stream that the array names. A tensor on memory
    that must not be written is read-only.

    Args:
        array: An object with ``__cuda_array_interface__`` of version 0 to 3
            (https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html).

    Raises:
        TypeError: for elements that have no dtype of plait.
        ValueError: for an array with a mask, for facts that contradict each other, and for memory
            that no CUDA device has.
        RuntimeError: if there is no CUDA device.
    """
    facts = array.__cuda_array_interface__
    if not isinstance(facts, Mapping):
        raise TypeError(f"__cuda_array_interface__: a dict is required, got {type(facts).__name__}")
    version = _number(facts, "version", 0)
    if not 0 <= version <= _NEWEST:
        raise ValueError(
            f"__cuda_array_interface__: a version from 0 to {_NEWEST} is required, got {version}"
        )
    if facts.get("mask") is not None:
        raise ValueError("__cuda_array_interface__: an array with a mask is no tensor")
    kind = _dtype(facts.get("typestr"))
    shape = _numbers(facts, "shape")
    if any(n < 0 for n in shape):
        raise ValueError(f"__cuda_array_interface__: `shape` must not be negative, got {shape}")
    strides = _strides(facts, shape, kind.itemsize)
    address, readonly = _address(facts.get("data"))
    number = binding.memory_device("cuda", address) if 0 not in shape else None
    device = binding.device("cuda") if number is None else binding.device("cuda", number)
    _wait_for_the_stream(facts, device)
    return _borrow_memory(address, shape, strides, kind, device, readonly, array)


def _number(facts: Mapping[str, Any], name: str, default: int) -> int:
    value = facts.get(name, default)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"__cuda_array_interface__: `{name}` must be an int, got {value!r}")
    return int(value)


def _numbers(facts: Mapping[str, Any], name: str) -> tuple[int, ...]:
    value = facts.get(name)
    if not isinstance(value, tuple) or not all(hasattr(each, "__index__") for each in value):
        raise TypeError(
            f"__cuda_array_interface__: `{name}` must be a tuple of ints, got {value!r}"
        )
    return tuple(int(each) for each in value)


def _dtype(code: Any) -> binding.dtype:
    """Return the dtype of elements that a text such as ``<f4`` describes."""
    text = str(code)
    order, kind, size = text[:1], text[1:2], text[2:]
    if order == ">" and size != "1":
        raise TypeError(
            "__cuda_array_interface__: numbers in this machine's byte order are required, "
            f"got {code!r}"
        )
    if order in "<>|=" and kind in _KINDS and size.isdecimal():
        try:
            bits = "" if kind == "b" and size == "1" else str(8 * int(size))
            return binding.dtype(_KINDS[kind] + bits)
        except (TypeError, ValueError):
            pass
    raise TypeError(
        f"__cuda_array_interface__: elements of plait's dtypes are required, got {code!r}"
    )


def _strides(facts: Mapping[str, Any], shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the strides in elements."""
    if facts.get("strides") is None:
        result, step = [], 1
        for n in reversed(shape):
            result.append(step)
            step *= max(n, 1)
        return tuple(reversed(result))
    strides = _numbers(facts, "strides")
    if len(strides) != len(shape):
        raise ValueError(
            f"__cuda_array_interface__: `strides` has {len(strides)} numbers for a shape of "
            f"{len(shape)}"
        )
    # an axis of size 1 may carry any stride
    if any(step % itemsize for n, step in zip(shape, strides, strict=True) if n > 1):
        raise ValueError(
            "__cuda_array_interface__: strides of whole elements are required, got "
            f"{strides} bytes for elements of {itemsize}"
        )
    return tuple(step // itemsize if n > 1 else 1 for n, step in zip(shape, strides, strict=True))


def _address(data: Any) -> tuple[int, bool]:
    if not isinstance(data, tuple) or len(data) != 2 or not hasattr(data[0], "__index__"):
        raise TypeError(
            "__cuda_array_interface__: `data` must be an address and whether it is read-only, "
            f"got {data!r}"
        )
    return int(data[0]), bool(data[1])


def _wait_for_the_stream(facts: Mapping[str, Any], device: binding.device) -> None:
    """Let the current stream wait for that of an array: None means that there is no such work."""
    if facts.get("stream") is None:
        return
    number = _number(facts, "stream", 0)
    if number < 1:
        raise ValueError(
            "__cuda_array_interface__: `stream` must be the handle of a stream, 1 for the default "
            f"stream, 2 for that of the thread, or None; got {number}"
        )
    theirs = binding.wrap_stream(device, 0 if number == 1 else number)
    ours = binding.current_stream(device)
    if theirs != ours:
        ours.wait_stream(theirs)
