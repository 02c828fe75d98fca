"""Memory of CUDA devices: counters, the list of blocks, and what is free."""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import Any

from plait_abi import binding
from plait_core import accelerator
from plait_core.cuda._devices import is_available, require_device


def memory_stats(device: Any = None) -> dict[str, int]:
    """Return the counters of a device's allocator, under PyTorch's names; {} without a device.

    Args:
        device: The device; None: the current one.

    Example:
        >>> import plait_core as pc
        >>> stats = pc.cuda.memory_stats()
        >>> stats.get("allocated_bytes.all.current", 0) >= 0
        True
    """
    if not is_available():
        return {}
    stats = accelerator.memory_stats(require_device("memory_stats", device))
    return OrderedDict(sorted(stats.items()))


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Return `memory_stats` with a dict for each part of a name; {} without a device.

    Args:
        device: The device; None: the current one.

    Example:
        >>> import plait_core as pc
        >>> stats = pc.cuda.memory_stats_as_nested_dict()
        >>> if stats:
        ...     assert stats["allocated_bytes"]["all"]["current"] >= 0
    """
    result: dict[str, Any] = {}
    for name, number in memory_stats(device).items():
        *parts, last = name.split(".")
        place = result
        for part in parts:
            place = place.setdefault(part, {})
        place[last] = number
    return result


def memory_allocated(device: Any = None) -> int:
    """Return the bytes of a device's memory that tensors have.

    Args:
        device: The device; None: the current one.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.memory_allocated() >= 0
        True
    """
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device: Any = None) -> int:
    """Return the most bytes that tensors had since `reset_peak_memory_stats`.

    Args:
        device: The device; None: the current one.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.max_memory_allocated() >= pc.cuda.memory_allocated()
        True
    """
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device: Any = None) -> int:
    """Return the bytes that the allocator has taken, for tensors or for later ones.

    Args:
        device: The device; None: the current one.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.memory_reserved() >= pc.cuda.memory_allocated()
        True
    """
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device: Any = None) -> int:
    """Return the most bytes that the allocator had since `reset_peak_memory_stats`.

    Args:
        device: The device; None: the current one.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.max_memory_reserved() >= pc.cuda.memory_reserved()
        True
    """
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Let the peaks of `memory_stats`, such as `max_memory_allocated`, begin at what there is now.

    Args:
        device: The device; None: the current one.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.reset_peak_memory_stats()
    """
    if is_available():
        accelerator.reset_peak_memory_stats(require_device("reset_peak_memory_stats", device))


def reset_max_memory_allocated(device: Any = None) -> None:
    """Do what `reset_peak_memory_stats` does.

    Args:
        device: The device; None: the current one.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.reset_max_memory_allocated()
    """
    reset_peak_memory_stats(device)


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Let the counters of `memory_stats` that only grow begin at 0: what was allocated and freed in
    all, retries and failures.

    Args:
        device: The device; None: the current one.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.reset_accumulated_memory_stats()
    """
    if is_available():
        accelerator.reset_accumulated_memory_stats(
            require_device("reset_accumulated_memory_stats", device)
        )


def empty_cache() -> None:
    """Give memory that the allocator keeps for later tensors back to the driver.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.empty_cache()
    """
    if is_available():
        from plait_core import _core

        for i in range(binding.device_count("cuda")):
            _core.empty_cache(binding.device("cuda", i))


def ipc_collect() -> None:
    """Free memory that was sent to other processes, and that none of them has any more.

    The same is done when the next tensor is sent. What came from other processes is closed with its
    last tensor.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.ipc_collect()
    """
    multiprocessing = sys.modules.get("plait_multiprocessing")
    if multiprocessing is not None:  # else nothing was sent
        multiprocessing.trim()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the free and the total bytes of a device's memory, of all processes.

    Args:
        device: The device; None: the current one.

    Raises:
        RuntimeError: if there is no device.

    Example:
        >>> import plait_core as pc
        >>> if pc.cuda.is_available():
        ...     free, total = pc.cuda.mem_get_info()
    """
    return binding.memory_info(require_device("mem_get_info", device))


def memory_snapshot(device: Any = None) -> list[dict[str, Any]]:
    """Return the segments that the allocator has taken, each with its blocks, of one device, or of
    all if it is None.

    Args:
        device: The device; None: the current one.

    Example:
        >>> import plait_core as pc
        >>> for segment in pc.cuda.memory_snapshot():
        ...     assert segment["allocated_size"] <= segment["total_size"]
    """
    if device is not None:
        devices = [require_device("memory_snapshot", device)]
    else:
        devices = [binding.device("cuda", i) for i in range(binding.device_count("cuda"))]
    return [segment for each in devices for segment in _segments(each)]


def _segments(device: binding.device) -> list[dict[str, Any]]:
    segments: dict[int, dict[str, Any]] = {}
    for block in binding.memory_snapshot(device):
        segment = segments.setdefault(
            block["segment"],
            {
                "device": device.index,
                "address": block["segment"],
                "stream": block["stream"],
                "is_private": block["private"],
                "total_size": 0,
                "allocated_size": 0,
                "active_size": 0,
                "requested_size": 0,
                "blocks": [],
            },
        )
        segment["total_size"] += block["bytes"]
        segment["allocated_size"] += block["bytes"] if block["live"] else 0
        segment["active_size"] += block["bytes"] if block["live"] or block["waiting"] else 0
        segment["requested_size"] += block["requested"]
        state = "active_pending_free" if block["waiting"] else "inactive"
        segment["blocks"].append(
            {
                "address": block["address"],
                "size": block["bytes"],
                "requested_size": block["requested"],
                "state": "active_allocated" if block["live"] else state,
            }
        )
    return list(segments.values())


_SUMMARY = {
    "allocated_bytes": "allocated bytes",
    "requested_bytes": "requested bytes",
    "active_bytes": "active bytes",
    "reserved_bytes": "reserved bytes",
    "inactive_split_bytes": "bytes of free parts of segments",
    "allocation": "allocations",
    "active": "active blocks",
    "segment": "segments",
    "inactive_split": "free parts of segments",
}
_COLUMNS = ("current", "peak", "allocated", "freed")


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return a table of a device's memory; an empty text without a device.

    Args:
        device: None is the current device.
        abbreviated: True leaves out the segments, and which numbers are those of small requests.

    Example:
        >>> import plait_core as pc
        >>> text = pc.cuda.memory_summary()
    """
    if not is_available():
        return ""
    d = require_device("memory_summary", device)
    free, total = binding.memory_info(d)
    stats = memory_stats(d)
    rows: list[tuple[Any, ...]] = [(f"memory of {d}", *_COLUMNS)]
    for name, text in _SUMMARY.items():
        for kind, part in {"all": "", "small_pool": " of small requests"}.items():
            if kind == "all" or not abbreviated:
                rows.append((text + part, *(stats[f"{name}.{kind}.{each}"] for each in _COLUMNS)))
    rows += [("total bytes of the device", total), ("free bytes of the device", free)]
    rows += [("requests without memory", stats["num_ooms"])]
    rows += [("requests that were tried again", stats["num_alloc_retries"])]
    if not abbreviated:
        for segment in _segments(d):
            kind = "private segment" if segment["is_private"] else "segment"
            text = f"{kind} of {segment['total_size']} bytes with {len(segment['blocks'])} blocks"
            rows.append((text + ", live", segment["allocated_size"]))
    width = max(len(name) for name, *_ in rows)
    return "\n".join(
        f"{name:<{width}}" + "".join(f"  {number:>16}" for number in numbers)
        for name, *numbers in rows
    )
