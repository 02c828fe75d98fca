"""`torch.cuda` without CUDA: queries return an answer, and calls that need a device raise."""

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
    "DeferredCudaCallError",
    "Stream",
    "StreamContext",
    "can_device_access_peer",
    "cudart",
    "current_blas_handle",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_of",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "has_half",
    "has_magma",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_tf32_supported",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
    *OF_CUDA,
]

globals().update(OF_CUDA)

# what programs read before they use a device
_initialized = False
default_generators = ()
has_half, has_magma = True, False


class NoCuda(AssertionError, RuntimeError):
    """A function of CUDA was called, which plait does not have."""


class DeferredCudaCallError(Exception):
    """Raised by PyTorch for calls that were put off until CUDA was initialised; never here."""


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
set_per_process_memory_fraction = _refuse("set_per_process_memory_fraction")
can_device_access_peer = _refuse("can_device_access_peer")
cudart = _refuse("cudart")
current_blas_handle = _refuse("current_blas_handle")
current_stream = _refuse("current_stream")
default_stream = _refuse("default_stream")
mem_get_info = _refuse("mem_get_info")
_lazy_init = _refuse("_lazy_init")
set_rng_state = _refuse("set_rng_state")
synchronize = _refuse("synchronize")


def set_device(device: Any) -> None:
    """Do nothing for a negative number or None, as in PyTorch; refuse a device."""
    if _number(device) >= 0:
        _refuse("set_device")()


def _number(device: Any) -> int:
    """Return the number that a device argument means, or -1 for none."""
    if device is None:
        return -1
    return device if isinstance(device, int) else plait.device(device).index or 0


class device:  # noqa: N801 - PyTorch's name
    """A context in which a CUDA device is the current one. Entering it raises, except for a
    negative number or None, which change nothing.

    Example:
        >>> from plait_torch._cuda import device
        >>> with device(None):
        ...     pass
    """

    def __init__(self, device: Any) -> None:
        self.idx = _number(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            _refuse("device")()

    def __exit__(self, *error: object) -> None:
        pass


class device_of(device):  # noqa: N801 - PyTorch's name
    """A context in which a tensor's device is the current one; for tensors of the CPU no change."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device if obj.is_cuda else None)


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
_is_in_bad_fork = _answer("_is_in_bad_fork", False, "Return False: no process uses CUDA.")
_is_compiled = _answer("_is_compiled", False, "Return False: nothing was compiled for CUDA.")
_lazy_call = _answer("_lazy_call", None, "Do nothing: CUDA is never initialised.")
get_gencode_flags = _answer("get_gencode_flags", "", 'Return "": nothing was compiled for CUDA.')
is_current_stream_capturing = _answer("is_current_stream_capturing", False, "Return False.")
is_tf32_supported = _answer("is_tf32_supported", False, "Return False.")
memory_summary = _answer("memory_summary", "", 'Return "": nothing is allocated.')
set_stream = _answer("set_stream", None, _NOTHING)
get_arch_list = _answer("get_arch_list", list, "Return []: no architecture was compiled for.")
get_rng_state_all = _answer("get_rng_state_all", list, "Return []: the states of no devices.")
ipc_collect = _answer("ipc_collect", None, _NOTHING)
is_bf16_supported = _answer("is_bf16_supported", False, "Return False.")
memory_stats = _answer("memory_stats", dict, "Return {}: nothing is allocated.")
reset_max_memory_allocated = _answer("reset_max_memory_allocated", None, _NOTHING)
reset_max_memory_cached = _answer("reset_max_memory_cached", None, _NOTHING)
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
