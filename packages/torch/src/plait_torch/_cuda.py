"""`torch.cuda` beyond `plait.cuda`: names that only programs for PyTorch need, and states of random
numbers, which are tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import plait
from plait_abi import binding
from plait_core.cuda import NoCuda as NoCuda
from plait_torch._cuda_profiler import Runtime
from plait_torch._generator import state_of, tensor_of
from plait_torch._graphed import make_graphed_callables as make_graphed_callables
from plait_torch._refusal import refusing
from plait_torch._tensor_types import OF_CUDA

# what programs read before they use a device
has_half, has_magma = True, False


class CudaError(RuntimeError):
    """Raised by `check_error`."""


class DeferredCudaCallError(Exception):
    """Raised by PyTorch for calls that were put off until CUDA was initialised; never here."""


def get_rng_state(device: Any = "cuda") -> Any:
    """Return where the random numbers of a device are, as a tensor of bytes."""
    return tensor_of(plait.cuda.get_rng_state(device))


def get_rng_state_all() -> list[Any]:
    """Return the states of all devices."""
    return [tensor_of(each) for each in plait.cuda.get_rng_state_all()]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Set the random numbers of a device to a state that `get_rng_state` returned."""
    plait.cuda.set_rng_state(state_of(new_state), device)


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Set the random numbers of all devices."""
    plait.cuda.set_rng_state_all([state_of(each) for each in new_states])


def memory_cached(device: Any = None) -> int:
    """Do what `memory_reserved` does."""
    return int(plait.cuda.memory_reserved(device))


def max_memory_cached(device: Any = None) -> int:
    """Do what `max_memory_reserved` does."""
    return int(plait.cuda.max_memory_reserved(device))


def reset_max_memory_cached(device: Any = None) -> None:
    """Do what `reset_peak_memory_stats` does."""
    plait.cuda.reset_peak_memory_stats(device)


def get_allocator_backend() -> str:
    """Return "native": plait's allocator keeps freed memory, as PyTorch's of this name does."""
    return "native"


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Accept the mode "default": waits of the host are not reported.

    Raises:
        NotImplementedError: for the modes "warn" and "error".
        ValueError: for others.
    """
    modes = {"default": 0, "warn": 1, "error": 2}
    mode = modes.get(debug_mode) if isinstance(debug_mode, str) else debug_mode
    if mode not in modes.values():
        raise ValueError(
            f"set_sync_debug_mode: one of {', '.join(modes)} is required, got {debug_mode!r}"
        )
    if mode:
        raise NotImplementedError(
            "set_sync_debug_mode: waits of the host are not reported; `torch.profiler` shows them"
        )


def get_sync_debug_mode() -> int:
    """Return 0, the number of the mode "default"."""
    return 0


def get_gencode_flags() -> str:
    """Return the options of nvcc for the instruction sets of the devices that there are."""
    numbers = [name.removeprefix("sm_") for name in plait.cuda.get_arch_list()]
    return " ".join(f"-gencode compute=compute_{each},code=sm_{each}" for each in numbers)


def _is_compiled() -> bool:
    return bool(plait.cuda.is_available())


def _is_in_bad_fork() -> bool:
    return False


def _lazy_init() -> None:
    plait.cuda.init()


def _lazy_call(callable: Callable[[], Any], **kwargs: Any) -> None:
    if plait.cuda.is_available():
        callable()


def _without_runtime(name: str, reason: str) -> Any:
    """Return a function that raises: without a device as all others do, else with the reason."""

    def error() -> Exception:
        try:
            plait.cuda.init()
        except NoCuda as none:
            return none
        return NotImplementedError(f"torch.cuda.{name}: {reason}")

    return refusing(name, error, f"Refuse: {reason}.")


def cudart() -> Runtime:
    """Return the functions of the CUDA runtime that guide tools and ask for memory.

    Raises:
        RuntimeError: if there is no device.
    """
    plait.cuda.init()
    return Runtime()


def check_error(res: int) -> None:
    """Raise an error for a result of the CUDA runtime or driver that is not 0.

    Raises:
        RuntimeError: `CudaError`, with the number.
    """
    if res:
        raise CudaError(f"CUDA: error {int(res)}")


current_blas_handle = _without_runtime(
    "current_blas_handle", "plait calls cuBLASLt, which has a handle of another kind"
)


def __getattr__(name: str) -> Any:
    if name in OF_CUDA:
        return OF_CUDA[name]
    if name == "_initialized":
        return plait.cuda.is_initialized()
    if name == "default_generators":
        count = plait.cuda.device_count()
        return tuple(binding.default_generator(f"cuda:{i}") for i in range(count))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
