"""`torch.cuda` without CUDA: queries return, and all else raises."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, NoReturn

import plait
from plait_torch._refusal import refusing
from plait_torch._tensor_types import OF_CUDA

OutOfMemoryError = plait.OutOfMemoryError

__all__ = [  # noqa: PLE0604 - names of a table
    "CUDAGraph",
    "Event",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "current_device",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_bf16_supported",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "stream",
    "synchronize",
    *OF_CUDA,
]

globals().update(OF_CUDA)


class NoCuda(AssertionError, RuntimeError):
    """A function of CUDA was called, which plait does not have."""


def _refuse(name: str) -> Any:
    text = f"torch.cuda.{name}: there is no component for CUDA; ask torch.cuda.is_available() first"
    return refusing(name, lambda: NoCuda(text), "Refuse: there is no CUDA device.")


def _answer(name: str, value: Any, text: str) -> Any:
    def answered(*args: Any, **kwargs: Any) -> Any:
        return value() if callable(value) else value

    answered.__name__ = answered.__qualname__ = name
    answered.__doc__ = text
    return answered


current_device = _refuse("current_device")
get_device_capability = _refuse("get_device_capability")
get_device_name = _refuse("get_device_name")
get_device_properties = _refuse("get_device_properties")
get_rng_state = _refuse("get_rng_state")
init = _refuse("init")
initial_seed = _refuse("initial_seed")
set_device = _refuse("set_device")
set_rng_state = _refuse("set_rng_state")
synchronize = _refuse("synchronize")


class _NoCudaHere:
    """A class whose constructor raises; the name is for annotations and tables."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse(cls.__name__)()
        raise AssertionError  # not reached


class Stream(_NoCudaHere):
    """A class whose constructor raises: there is no CUDA device."""


class StreamContext(_NoCudaHere):
    """A class whose constructor raises: there is no CUDA device."""


class Event(_NoCudaHere):
    """A class whose constructor raises: there is no CUDA device."""


class CUDAGraph(_NoCudaHere):
    """A class whose constructor raises: there is no CUDA device."""


class graph(_NoCudaHere):  # noqa: N801 - PyTorch's name
    """A class whose constructor raises: there is no CUDA device."""


def stream(stream: None) -> nullcontext[None]:
    """Return a context manager without effect for the stream None, as in PyTorch; there are no
    streams.
    """
    return nullcontext()


_NOTHING = "Do nothing: there is no CUDA device."
get_arch_list = _answer("get_arch_list", list, "Return []: no architecture was compiled for.")
get_rng_state_all = _answer("get_rng_state_all", list, "Return []: the states of no devices.")
ipc_collect = _answer("ipc_collect", None, _NOTHING)
is_bf16_supported = _answer("is_bf16_supported", False, "Return False.")
memory_stats = _answer("memory_stats", dict, "Return {}: nothing is allocated.")
reset_max_memory_allocated = _answer("reset_max_memory_allocated", None, _NOTHING)
reset_peak_memory_stats = _answer("reset_peak_memory_stats", None, _NOTHING)
seed = _answer("seed", None, _NOTHING)
seed_all = _answer("seed_all", None, _NOTHING)
set_rng_state_all = _answer("set_rng_state_all", None, _NOTHING)
max_memory_allocated = _answer("max_memory_allocated", 0, "Return 0 bytes.")
max_memory_cached = _answer("max_memory_cached", 0, "Return 0 bytes.")
max_memory_reserved = _answer("max_memory_reserved", 0, "Return 0 bytes.")
memory_allocated = _answer("memory_allocated", 0, "Return 0 bytes.")
memory_cached = _answer("memory_cached", 0, "Return 0 bytes.")
memory_reserved = _answer("memory_reserved", 0, "Return 0 bytes.")
