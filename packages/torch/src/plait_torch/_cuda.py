"""`torch.cuda` without CUDA: queries return an answer, and calls that need a device raise."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, NoReturn

import plait
from plait_torch._accelerator import NoDevice, absent, refused, returning
from plait_torch._tensor_types import OF_CUDA

__all__ = ["cuda"]


class NoCuda(AssertionError, RuntimeError):
    """A function of CUDA was called, which plait does not have."""


class DeferredCudaCallError(Exception):
    """Raised by PyTorch for calls that were put off until CUDA was initialised; never here."""


class device(NoDevice):  # noqa: N801 - PyTorch's name
    """A context in which a CUDA device is the current one. Entering it raises, except for a
    negative number or None, which change nothing.

    Example:
        >>> from plait_torch._cuda import cuda
        >>> with cuda.device(None):
        ...     pass
    """

    kind, error, prev_idx = "cuda", NoCuda, -1


class device_of(device):  # noqa: N801 - PyTorch's name
    """A context in which a tensor's device is the current one; for tensors of the CPU no change."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device if obj.is_cuda else None)


def set_device(device: Any) -> None:
    """Do nothing for a negative number or None, as in PyTorch; refuse a device."""
    cuda.device(device).__enter__()


def _class(name: str) -> type[Any]:
    """Return a class whose constructor raises; the name is for annotations and tables."""

    def refuse(cls: type[Any], *args: Any, **kwargs: Any) -> NoReturn:
        refused("cuda", cls.__name__, NoCuda)()
        raise AssertionError  # not reached

    doc = "A class whose constructor raises: there is no CUDA device."
    return type(name, (), {"__new__": refuse, "__doc__": doc, "__module__": __name__})


cuda = absent(
    "cuda",
    NoCuda,
    # functions that plait.cuda has, and those of mps
    without="""
        device_count empty_cache is_available is_initialized manual_seed manual_seed_all
        current_allocated_memory driver_allocated_memory recommended_max_memory
    """,
    counts="max_memory_cached memory_cached",
    without_effect="ipc_collect reset_max_memory_allocated reset_max_memory_cached _lazy_call",
    orders="""
        can_device_access_peer cudart current_blas_handle default_stream synchronize _lazy_init
    """,
    **OF_CUDA,
    **{name: _class(name) for name in ("Stream", "StreamContext", "Event", "CUDAGraph", "graph")},
    OutOfMemoryError=plait.OutOfMemoryError,
    DeferredCudaCallError=DeferredCudaCallError,
    NoCuda=NoCuda,
    device=device,
    device_of=device_of,
    set_device=set_device,
    stream=returning(nullcontext),
    get_gencode_flags=returning(""),
    memory_summary=returning(""),
    get_arch_list=returning(list),
    # what programs read before they use a device
    default_generators=(),
    has_half=True,
    has_magma=False,
)
