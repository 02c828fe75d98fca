"""PyTorch's functions about CUDA devices, for the package that brings them (plait-cuda).

>>> import plait_core as pc
>>> device = "cuda" if pc.cuda.is_available() else "cpu"
>>> pc.zeros(2, device=device).device.type == device
True

Without a device questions have an answer, and what needs one raises. An argument `device` is a
device, its name or its number; None is the current device of this thread, which `set_device`
changes and which "cuda" without a number means.
"""

from __future__ import annotations

from plait_abi import OutOfMemoryError
from plait_core._namespaces import shown as _shown
from plait_core.cuda import nvtx
from plait_core.cuda._devices import (
    NoCuda as NoCuda,
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    is_tf32_supported,
    set_device,
    synchronize,
)
from plait_core.cuda._graphs import (
    CUDAGraph,
    graph,
    graph_pool_handle,
)
from plait_core.cuda._memory import (
    empty_cache,
    ipc_collect,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_peak_memory_stats,
)
from plait_core.cuda._random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from plait_core.cuda._streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    is_current_stream_capturing,
    set_stream,
    stream,
)

__all__ = [
    "CUDAGraph",
    "Event",
    "ExternalStream",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "get_stream_from_external",
    "graph",
    "graph_pool_handle",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "nvtx",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]
__dir__ = _shown(globals())
