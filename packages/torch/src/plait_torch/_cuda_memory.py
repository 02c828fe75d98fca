"""`torch.cuda.memory` beyond `plait.cuda`: pools of a program's own, limits, memory for other
libraries, and the history of allocations.
"""

from __future__ import annotations

import importlib
import pickle
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import plait
from plait_abi import binding, components

if TYPE_CHECKING:
    from plait_profiler import Recording, profile

__all__ = [
    "MemPool",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "get_per_process_memory_fraction",
    "set_per_process_memory_fraction",
    "use_mem_pool",
]


# Pools.


class MemPool:
    """Memory of the current device that only the tensors of `use_mem_pool` get.

    It goes back to the device when the pool and its tensors are gone and `empty_cache` is called.

    Args:
        allocator, use_on_oom, no_split: only their defaults are served.

    Raises:
        NotImplementedError: for other values.
    """

    def __init__(
        self, allocator: Any = None, use_on_oom: bool = False, no_split: bool = False
    ) -> None:
        if allocator is not None or use_on_oom or no_split:
            raise NotImplementedError(
                "MemPool: `allocator`, `use_on_oom` and `no_split` are not available: a pool has "
                "plait's allocator, and serves its own tensors alone"
            )
        self.device = plait.device("cuda", plait.cuda.current_device())
        self._handle = plait.cuda.graph_pool_handle()
        self._uses = 1

    @property
    def id(self) -> Any:
        """What `torch.cuda.graph` takes as its `pool`."""
        return self._handle

    @property
    def allocator(self) -> None:
        """None: the pool has plait's allocator."""
        return

    def use_count(self) -> int:
        """Return 1, and 1 more for each `use_mem_pool` that is open."""
        return self._uses

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        """Refuse: blocks do not say which pool they are of.

        Raises:
            NotImplementedError: always; `torch.cuda.memory_snapshot` marks segments of pools by
                ``is_private``.
        """
        raise NotImplementedError(
            "MemPool.snapshot: blocks do not say which pool they are of; "
            "`torch.cuda.memory_snapshot` marks segments of pools by `is_private`"
        )


_open: dict[binding.Stream, list[MemPool]] = {}
_lock = threading.Lock()


@contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Iterator[None]:
    """Let tensors in the current stream of a device, the pool's, get their memory from a pool.

    Tensors that are made in other streams get theirs as before. In PyTorch all streams of the
    thread count.

    Args:
        pool: the pool.
        device: None is the current device.
    """
    stream = plait.cuda.current_stream(device)
    binding.use_memory_pool(stream, pool.id)
    with _lock:
        pool._uses += 1
        _open.setdefault(stream, []).append(pool)
    try:
        yield
    finally:
        with _lock:
            pools = _open[stream]
            pools.remove(pool)
            pool._uses -= 1
            before = pools[-1].id if pools else None
            if not pools:
                del _open[stream]
        binding.use_memory_pool(stream, before)


# Limits.


def _package(name: str) -> Any:
    package = importlib.import_module(str(components.choose("cuda")))
    if not hasattr(package, name):
        raise NotImplementedError(f"{package.__name__} has no function `{name}`")
    return package


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Let this process have a fraction of a device's memory. Requests beyond it raise
    `OutOfMemoryError`.

    Args:
        fraction: from 0 to 1.
        device: None is the current device.

    Raises:
        TypeError: if the fraction is no float.
        ValueError: for one that is not from 0 to 1.
    """
    name = "set_per_process_memory_fraction"
    if not isinstance(fraction, float):
        raise TypeError(f"{name}: `fraction` must be a float, got {type(fraction).__name__}")
    if not 0 <= fraction <= 1:
        raise ValueError(f"{name}: `fraction` must be from 0 to 1, got {fraction}")
    _, total = plait.cuda.mem_get_info(device)
    number = plait.cuda.current_device() if device is None else plait.device(device).index or 0
    _package("limit_memory").limit_memory(int(fraction * total), number)


def get_per_process_memory_fraction(device: Any = None) -> float:
    """Return the fraction of a device's memory that this process may have: at first 1.

    Args:
        device: None is the current device.
    """
    _, total = plait.cuda.mem_get_info(device)
    number = plait.cuda.current_device() if device is None else plait.device(device).index or 0
    limit = _package("memory_limit").memory_limit(number)
    return 1.0 if limit is None else min(1.0, float(limit / total))


# Memory for other libraries.

_given: dict[int, Any] = {}


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """Return the address of memory of plait's allocator, until `caching_allocator_delete`.

    Args:
        size: bytes.
        device: None is the current device.
        stream: the stream that uses it, or its handle; None is the current one.
    """
    place = plait.device("cuda", plait.cuda.current_device()) if device is None else device
    if isinstance(place, int):
        place = plait.device("cuda", place)
    if isinstance(stream, int):
        stream = plait.cuda.ExternalStream(stream, place)
    with plait.cuda.stream(stream):
        memory = plait.empty(max(1, size), dtype=plait.uint8, device=place)
    with _lock:
        _given[memory.data_ptr()] = memory
    return int(memory.data_ptr())


def caching_allocator_delete(mem_ptr: int) -> None:
    """Give back what `caching_allocator_alloc` returned.

    Raises:
        ValueError: for another address.
    """
    with _lock:
        memory = _given.pop(mem_ptr, None)
    if memory is None:
        raise ValueError(
            f"caching_allocator_delete: {mem_ptr} is no address of `caching_allocator_alloc`"
        )


# The history of allocations: rows of plait's profiler, in the form that PyTorch's page for
# snapshots reads (pytorch.org/memory_viz).

_MOST = 1 << 20
_ACTIONS = {2: ("alloc",), 4: ("free_requested", "free_completed")}  # by the kind of a row
_CUDA = 2  # the type of the device in a row


class _History:
    """What was allocated and freed while it was recorded, by device."""

    def __init__(self) -> None:
        self.profile: profile | None = None
        self.stacks, self.most = False, 0
        self.traces: list[deque[dict[str, Any]]] = []

    def start(self, most: int, stacks: bool) -> None:
        from plait_profiler import profile

        self.stop()
        self.stacks, self.most = stacks, most
        self.traces = [deque(trace, most) for trace in self.traces]
        self.profile = profile(
            profile_memory=True, with_stack=stacks, with_modules=False, capacity=_MOST
        )
        self.profile.start()

    def stop(self) -> None:
        recorded, self.profile = self.profile, None
        if recorded is not None:
            recorded.stop()
            self._add(recorded.recording())

    def read(self) -> list[list[dict[str, Any]]]:
        """Return the entries of each device; the recording goes on."""
        runs = self.profile is not None
        self.stop()
        if runs:
            self.start(self.most, self.stacks)
        count = max(plait.cuda.device_count(), len(self.traces))
        return [list(self.traces[i]) if i < len(self.traces) else [] for i in range(count)]

    def _add(self, recording: Recording) -> None:
        rows = recording.rows
        rows = rows[(rows["device"] >> 8) == _CUDA]
        frames = [
            [{"filename": file, "line": line, "name": name} for file, line, name in context.stack]
            for context in recording.contexts
        ]
        for row in rows[rows["start"].argsort(kind="stable")]:
            number = int(row["device"]) & 0xFF
            while len(self.traces) <= number:
                self.traces.append(deque(maxlen=self.most))
            for action in _ACTIONS.get(int(row["kind"]), ()):
                entry = {
                    "action": action,
                    "addr": int(row["b"]),
                    "size": int(row["a"]),
                    "stream": 0,
                    "time_us": (int(row["start"]) + recording.clock) // 1000,
                    "frames": frames[int(row["context"])],
                }
                self.traces[number].append(entry)


_history = _History()


def _record_memory_history(
    enabled: Any = "all",
    context: Any = "all",
    stacks: str = "all",
    max_entries: int = sys.maxsize,
    device: Any = None,
    clear_history: bool = False,
    trace_alloc_max_entries: int = sys.maxsize,
    **kwargs: Any,
) -> None:
    """Record allocations of all devices for `_snapshot` from now on, or no more: `enabled` is None.

    Args:
        enabled: None ends the recording; "state" and "all" do the same.
        context: None records no stacks.
        stacks: only Python's stacks are recorded.
        max_entries, trace_alloc_max_entries: the most entries of a device that stay. Of a thread,
            at most a million events stay between two snapshots, operators included.
        clear_history: forget what was recorded before.
        device, kwargs: no effect.
    """
    if enabled not in (None, False, True, "state", "all"):
        raise ValueError(
            f"_record_memory_history: `enabled` must be None, 'state' or 'all', got {enabled!r}"
        )
    if clear_history:
        _history.stop()
        _history.traces = []
    if not enabled:
        _history.stop()
        return
    most = min(max_entries, trace_alloc_max_entries)
    if most < 1:
        raise ValueError(f"_record_memory_history: `max_entries` must be positive, got {most}")
    _history.start(most, context is not None)


def _snapshot(device: Any = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """Return the segments of all devices, and what `_record_memory_history` recorded.

    It is what PyTorch's page for snapshots reads. Tensors that were there before the recording have
    no stacks.
    """
    traces = _history.read()
    latest: list[dict[int, Any]] = [{} for _ in traces]
    for trace, frames in zip(traces, latest, strict=True):
        for entry in trace:
            if entry["action"] == "alloc":
                frames[entry["addr"]] = entry["frames"]
    segments = plait.cuda.memory_snapshot()
    for segment in segments:
        known = latest[segment["device"]]
        for block in segment["blocks"]:
            is_live = block["state"] == "active_allocated"
            block["frames"] = known.get(block["address"], []) if is_live else []
        segment["frames"] = []
    return {
        "segments": segments,
        "device_traces": traces,
        "allocator_settings": {},
        "external_annotations": [],
    }


def _dump_snapshot(
    filename: str = "dump_snapshot.pickle", augment_with_fx_traces: bool = False
) -> None:
    """Write `_snapshot` to a file that PyTorch's page for snapshots reads."""
    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)
