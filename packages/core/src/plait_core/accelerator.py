"""The accelerator of this program: its devices, streams and memory, whatever its type is.

A component brings a type of device (docs/guides/devices.md); without one there is no accelerator.

>>> import plait_core as pc
>>> device = pc.accelerator.current_accelerator() or pc.device("cpu")
>>> pc.zeros(2, device=device).device == device
True

Where an argument `device` is None, the current accelerator is meant: the default device, if it is
one, else the first device of the first type that there is. A number is a device of this type.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, NamedTuple

from plait_abi import binding
from plait_core import _core
from plait_core._namespaces import shown as _shown

__all__ = [
    "DeviceProperties",
    "Graph",
    "current_accelerator",
    "current_device_index",
    "current_stream",
    "device_count",
    "empty_cache",
    "is_available",
    "is_deterministic",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_info",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "priorities",
    "properties",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_deterministic",
    "set_stream",
    "set_tf32",
    "stream",
    "synchronize",
    "uses_tf32",
]
__dir__ = _shown(globals())


def is_available() -> bool:
    """Return whether there is an accelerator.

    Example:
        >>> import plait_core as pc
        >>> pc.accelerator.is_available() == (pc.accelerator.device_count() > 0)
        True
    """
    return binding.current_accelerator() is not None


def device_count() -> int:
    """Return the number of devices of the current accelerator's type; 0 if there is none.

    Example:
        >>> import plait_core as pc
        >>> pc.accelerator.device_count() >= 0
        True
    """
    return binding.device_count(None)


def current_accelerator(check_available: bool = False) -> binding.device | None:
    """Return the accelerator that is meant where none is named; None if there is none.

    This is the default device of the thread, if it is an accelerator, else the first device of the
    first type that there is.

    Args:
        check_available: accepted as in PyTorch; there is always one where a device is returned.

    Example:
        >>> import plait_core as pc
        >>> device = pc.accelerator.current_accelerator() or pc.device("cpu")
        >>> pc.ones(2, device=device).sum().item()
        2.0
    """
    return binding.current_accelerator()


def current_device_index() -> int:
    """Return the number of the current accelerator among the devices of its type.

    ``with plait.device("cuda", 1)`` and `plait.set_default_device` change it.

    Raises:
        RuntimeError: if there is no accelerator.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     assert pc.accelerator.current_device_index() >= 0
    """
    return _require_device("current_device_index", None).index or 0


def current_stream(device: Any = None, /) -> binding.Stream:
    """Return the stream in which this thread's calls on a device run.

    Args:
        device: a device, or a number of the current accelerator; None is the current accelerator.

    Raises:
        RuntimeError: if there is no accelerator.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     pc.accelerator.current_stream().synchronize()
    """
    return binding.current_stream(_require_device("current_stream", device))


def set_stream(stream: binding.Stream) -> None:
    """Make a stream the one in which this thread's calls on its device run.

    Raises:
        TypeError: if `stream` is no Stream.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     before = pc.accelerator.current_stream()
        ...     pc.accelerator.set_stream(pc.Stream())
        ...     pc.accelerator.set_stream(before)
    """
    binding.set_stream(stream)


def stream(stream: binding.Stream | None) -> AbstractContextManager[Any]:
    """Return a context in which a stream is the current one of its device; None changes nothing.

    Raises:
        TypeError: if `stream` is neither Stream nor None.

    Example:
        >>> import plait_core as pc
        >>> with pc.accelerator.stream(pc.Stream()):
        ...     x = pc.ones(2) + 1
    """
    if stream is None:
        return nullcontext()
    if not isinstance(stream, binding.Stream):
        raise TypeError(f"stream: `stream` must be a Stream or None, got {type(stream).__name__}")
    return stream


def synchronize(device: Any = None, /) -> None:
    """Wait until all work of a device is done, in all its streams.

    Errors of calls that have returned before are raised here.

    Args:
        device: a device, or a number of the current accelerator; None is the current accelerator.

    Raises:
        RuntimeError: if there is no accelerator.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     pc.accelerator.synchronize()
    """
    binding.synchronize(_require_device("synchronize", device))


# names of PyTorch for the counters of an allocator: those that each allocator keeps,
_COUNTERS = {
    "allocated_bytes.all.current": ("live_bytes",),
    "allocated_bytes.all.peak": ("peak_bytes",),
    "reserved_bytes.all.current": ("live_bytes", "cached_bytes"),
    "allocation.all.current": ("live_blocks",),
    "allocation.all.allocated": ("allocations",),
    "segment.all.allocated": ("system_allocations",),
    "num_alloc_retries": ("retries",),
    "num_ooms": ("failures",),
    "num_sync_all_streams": ("waits",),
}
# and those that it keeps for each kind of segments
_COUNTERS_OF_SEGMENTS = {
    "allocation": "blocks",
    "allocated_bytes": "block_bytes",
    "requested_bytes": "request_bytes",
    "active": "active",
    "active_bytes": "active_bytes",
    "inactive_split": "split",
    "inactive_split_bytes": "split_bytes",
    "segment": "segments",
    "reserved_bytes": "segment_bytes",
}
_KINDS_OF_SEGMENTS = {"all": "all", "small_pool": "small", "large_pool": "large"}
# what was counted when `reset_accumulated_memory_stats` was called, by device
_reset_at: dict[binding.device, dict[str, int]] = {}


def memory_stats(device: Any = None, /) -> dict[str, int]:
    """Return the counters of an accelerator's memory, under PyTorch's names for them.

    They are those that its allocator keeps for this device; one that it does not keep is 0.
    ``allocation``, ``allocated_bytes``, ``requested_bytes``, ``active``, ``active_bytes``,
    ``inactive_split``, ``inactive_split_bytes``, ``segment`` and ``reserved_bytes`` have an entry
    for ``all``, ``small_pool`` and ``large_pool``, and each of those ``current``, ``peak``,
    ``allocated`` and ``freed``. `empty_cache` gives the bytes that are reserved, but not allocated,
    back to the system.

    Args:
        device: a device, or a number of the current accelerator; None is the current accelerator.

    Raises:
        RuntimeError: if there is no accelerator, or its allocator counts nothing.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     assert pc.accelerator.memory_stats()["allocated_bytes.all.current"] >= 0
    """
    d = _require_device("memory_stats", device)
    result = _all_counters(d)
    for name, number in _reset_at.get(d, {}).items():
        result[name] -= number
    return result


def _all_counters(device: binding.device) -> dict[str, int]:
    kept = _core.memory_stats(device)
    result: dict[str, int] = {}
    for name, counter in _COUNTERS_OF_SEGMENTS.items():
        for kind, segments in _KINDS_OF_SEGMENTS.items():
            current, peak, added = kept[segments][counter]
            numbers = {"current": current, "peak": peak, "allocated": added}
            numbers["freed"] = added - current
            result |= {f"{name}.{kind}.{each}": number for each, number in numbers.items()}
    result |= {name: sum(kept[each] for each in parts) for name, parts in _COUNTERS.items()}
    result["num_device_alloc"] = result["segment.all.allocated"]
    result["num_device_free"] = result["segment.all.freed"]
    return result


def memory_allocated(device: Any = None, /) -> int:
    """Return the bytes of an accelerator's memory that tensors have; see `memory_stats`.

    Args:
        device: The device; None: the current one.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     assert pc.accelerator.memory_allocated() >= 0
    """
    return memory_stats(device)["allocated_bytes.all.current"]


def max_memory_allocated(device: Any = None, /) -> int:
    """Return the most bytes of an accelerator's memory that tensors had; see `memory_stats`.

    They are counted from the start of the program, or from `reset_peak_memory_stats`.

    Args:
        device: The device; None: the current one.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     assert pc.accelerator.max_memory_allocated() >= pc.accelerator.memory_allocated()
    """
    return memory_stats(device)["allocated_bytes.all.peak"]


def memory_reserved(device: Any = None, /) -> int:
    """Return the bytes that an accelerator's allocator has, for tensors or for later ones.

    Args:
        device: The device; None: the current one.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     assert pc.accelerator.memory_reserved() >= pc.accelerator.memory_allocated()
    """
    return memory_stats(device)["reserved_bytes.all.current"]


def reset_peak_memory_stats(device: Any = None, /) -> None:
    """Let `max_memory_allocated` of a device begin at the bytes that its tensors have now.

    Args:
        device: a device, or a number of the current accelerator; None is the current accelerator.

    Raises:
        RuntimeError: if there is no accelerator, or its allocator keeps the peak of the process.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     pc.accelerator.reset_peak_memory_stats()
        ...     assert pc.accelerator.max_memory_allocated() == pc.accelerator.memory_allocated()
    """
    _core.reset_peak_memory_stats(_require_device("reset_peak_memory_stats", device))


def reset_accumulated_memory_stats(device: Any = None, /) -> None:
    """Let the counters of `memory_stats` that only grow begin at 0: what was allocated and freed in
    all, retries and failures.

    Args:
        device: a device, or a number of the current accelerator; None is the current accelerator.

    Raises:
        RuntimeError: if there is no accelerator, or its allocator counts nothing.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     pc.accelerator.reset_accumulated_memory_stats()
        ...     assert pc.accelerator.memory_stats()["num_ooms"] == 0
    """
    d = _require_device("reset_accumulated_memory_stats", device)
    _reset_at[d] = {
        name: number
        for name, number in _all_counters(d).items()
        if not name.endswith((".current", ".peak"))
    }


def max_memory_reserved(device: Any = None, /) -> int:
    """Return the most bytes that an accelerator's allocator had; see `memory_stats`.

    They are counted from the start of the program, or from `reset_peak_memory_stats`.

    Args:
        device: The device; None: the current one.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     assert pc.accelerator.max_memory_reserved() >= pc.accelerator.memory_reserved()
    """
    return memory_stats(device)["reserved_bytes.all.peak"]


def empty_cache() -> None:
    """Give memory of the current accelerator that is kept for later tensors back to the system.

    Raises:
        RuntimeError: if there is no accelerator.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     pc.accelerator.empty_cache()
    """
    _core.empty_cache(_require_device("empty_cache", None))


class DeviceProperties(NamedTuple):
    """What an accelerator is: see `properties`.

    `name` is that of the product, `memory` is in bytes, `major` and `minor` are the version of the
    instruction set, `units` is the number of multiprocessors, `threads` the number of threads that
    each of them holds (0 if there is no such number), `shared_memory` the bytes of fast memory that
    the threads of a block share (0 if there is none). `unified` says whether host and device have
    one memory, `peers` whether devices of the type read one another's. `uuid` has 16 bytes, zeros
    if there is none.

    Example:
        >>> import plait_core as pc
        >>> device = pc.accelerator.current_accelerator()
        >>> device is None or pc.accelerator.properties(device).memory > 0
        True
    """

    name: str
    memory: int
    major: int
    minor: int
    units: int
    threads: int
    shared_memory: int
    unified: bool
    peers: bool
    uuid: bytes


def properties(device: Any = None, /) -> DeviceProperties:
    """Return what an accelerator is.

    Args:
        device: The device; None: the current one.

    Raises:
        NotImplementedError: if its component does not tell.
        RuntimeError: if there is no accelerator.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     assert pc.accelerator.properties().memory > 0
    """
    return DeviceProperties(**binding.properties(_require_device("properties", device)))


def memory_info(device: Any = None, /) -> tuple[int, int]:
    """Return the free and the total bytes of an accelerator; other programs use it, too.

    Args:
        device: The device; None: the current one.

    Raises:
        NotImplementedError: if its component does not tell.
        RuntimeError: if there is no accelerator.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     free, total = pc.accelerator.memory_info()
        ...     assert 0 <= free <= total
    """
    return binding.memory_info(_require_device("memory_info", device))


def priorities(device: Any = None, /) -> tuple[int, int]:
    """Return the lowest and the highest priority of streams; lower numbers are served first.

    Args:
        device: The device; None: the current one.

    Raises:
        RuntimeError: if there is no accelerator.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     lowest, highest = pc.accelerator.priorities()
        ...     stream = pc.Stream(priority=highest)
    """
    return binding.priorities(_require_device("priorities", device))


def memory_snapshot(device: Any = None, /) -> list[dict[str, Any]]:
    """Return every block of an accelerator's allocator, by address, also the free ones.

    A block has the entries ``address``, ``bytes``, ``requested``, ``segment`` (the address of the
    memory of the driver that it lies in), ``stream``, ``live``, ``waiting`` (freed, but another
    stream may still use it) and ``private`` (of a pool, such as that of a `Graph`).

    Args:
        device: The device; None: the current one.

    Raises:
        NotImplementedError: if its allocator has no such list.
        RuntimeError: if there is no accelerator.

    Example:
        >>> import plait_core as pc
        >>> if pc.accelerator.is_available():
        ...     blocks = pc.accelerator.memory_snapshot()
    """
    blocks = binding.memory_snapshot(_require_device("memory_snapshot", device))
    return sorted(blocks, key=lambda block: block["address"])


class Graph:
    """Work of a stream that is recorded once and done many times, with few calls of the host.

    What is recorded works on the memory that it had then, so inputs are written in place, and
    results are read where they were. The graph has a pool of memory of its own, in which tensors
    that are made while it is recorded lie; it is given up with the graph.

    Args:
        pool: The `pool` of another graph, if both never run at the same time and the results of one
            are not read after the other has run; None is a new one.

    Example:
        >>> import plait_core as pc
        >>> def run() -> None:
        ...     x = pc.zeros(2, device=pc.accelerator.current_accelerator())
        ...     graph = pc.accelerator.Graph()
        ...     with graph.capture():
        ...         y = x + 1
        ...     x.fill_(4)
        ...     graph.replay()
    """

    def __init__(self, pool: object = None) -> None:
        self._pool = pool
        self._stream: binding.Stream | None = None  # that is recorded now
        self._graph: object = None
        self._device: binding.device | None = None  # that the graph runs on

    @property
    def pool(self) -> object:
        """The pool of memory, for the argument `pool` of other graphs; None before `begin`."""
        return self._pool

    def begin(self, stream: binding.Stream | None = None) -> None:
        """Record the work of a stream from now on; None is the current stream.

        Raises:
            NotImplementedError: if the device cannot record.
            RuntimeError: if the stream is recorded already, or the graph was.
        """
        if self._stream is not None or self._graph is not None:
            raise RuntimeError(
                "Graph: it has already been captured; create another one, or call reset()"
            )
        stream = stream or current_stream()
        if self._pool is None:
            self._pool = binding.memory_pool(stream.device)
        binding.use_memory_pool(stream, self._pool)
        try:
            binding.capture_begin(stream)
        except BaseException:
            binding.use_memory_pool(stream, None)
            raise
        self._stream, self._device = stream, stream.device

    def end(self) -> None:
        """End the recording.

        Raises:
            RuntimeError: if nothing is recorded, or a call could not be, such as one that waits for
                a result on the host.
        """
        stream, self._stream = self._stream, None
        if stream is None:
            raise RuntimeError("Graph: `end` was called without `begin`")
        try:
            self._graph = binding.capture_end(stream)
        finally:
            binding.use_memory_pool(stream, None)

    @contextmanager
    def capture(self, stream: binding.Stream | None = None) -> Iterator[Graph]:
        """A context whose work is recorded, in a stream that is current there; None: a new one.

        Work that was in the current stream is done before, and memory that nobody uses is given
        back to the driver, as that is not possible meanwhile.
        """
        if stream is None:
            stream = binding.Stream(_require_device("Graph", None))
        binding.synchronize(stream.device)
        _core.empty_cache(stream.device)
        with stream:
            self.begin(stream)
            try:
                yield self
            except BaseException:
                with suppress(RuntimeError):  # the error of the program counts
                    self.end()
                self.reset()
                raise
            self.end()

    def replay(self, stream: binding.Stream | None = None) -> None:
        """Do what was recorded, in a stream; None is the current one of the graph's device.

        Raises:
            RuntimeError: if nothing was recorded.
        """
        if self._graph is None:
            raise RuntimeError("Graph: nothing was recorded")
        binding.graph_launch(self._graph, stream or current_stream(self._device))

    def reset(self) -> None:
        """Give up what was recorded, and the pool."""
        self._graph = self._pool = None


def set_tf32(*, products: bool | None = None, convolutions: bool | None = None) -> None:
    """Let kernels of accelerators round the operands of float32 to 10 bits of mantissa, or not.

    That is several times as fast where the hardware has it (TF32). At first convolutions may do it,
    and matrix products may not, as in PyTorch. The CPU always computes in full.

    Args:
        products: Whether matrix products may do it; None changes nothing.
        convolutions: Whether convolutions may.

    Example:
        >>> import plait_core as pc
        >>> pc.accelerator.set_tf32(products=True)
        >>> pc.accelerator.uses_tf32()
        (True, True)
        >>> pc.accelerator.set_tf32(products=False)
    """
    if products is not None:
        _core._set_device_setting("tf32_products", products)
    if convolutions is not None:
        _core._set_device_setting("exact_convolutions", not convolutions)


def uses_tf32() -> tuple[bool, bool]:
    """Return whether matrix products and convolutions may use TF32: see `set_tf32`.

    Example:
        >>> import plait_core as pc
        >>> pc.accelerator.uses_tf32()
        (False, True)
    """
    setting = _core._has_device_setting
    return setting("tf32_products"), not setting("exact_convolutions")


def set_deterministic(mode: bool) -> None:
    """Let kernels of accelerators give the same bits in every run, or raise an error.

    Those of the CPU always do; `plait.set_reproducible` asks for the same bits on all processors.

    Args:
        mode: Whether it is on.

    Example:
        >>> import plait_core as pc
        >>> pc.accelerator.set_deterministic(True)
        >>> pc.accelerator.is_deterministic()
        True
        >>> pc.accelerator.set_deterministic(False)
    """
    _core._set_device_setting("deterministic", mode)


def is_deterministic() -> bool:
    """Return whether `set_deterministic` is in force.

    Example:
        >>> import plait_core as pc
        >>> pc.accelerator.is_deterministic()
        False
    """
    return _core._has_device_setting("deterministic")


def _require_device(name: str, device: Any) -> binding.device:
    """Return the accelerator that an argument `device` names."""
    current = binding.current_accelerator()
    if device is None or (isinstance(device, int) and not isinstance(device, bool)):
        if current is None:
            raise RuntimeError(f"{name}: there is no accelerator; check is_available() first")
        if device is None:
            return current
        count = device_count()
        if not 0 <= device < count:
            kind = current.type
            raise ValueError(f"{name}: there is no device {kind}:{device}: {kind} has {count}")
        return binding.device(current.type, device)
    try:
        result = binding.device(device)
    except TypeError:
        raise TypeError(f"{name}: `device` must be a device, int or None, got {device!r}") from None
    if result.type in ("cpu", "meta"):
        raise ValueError(f"{name}: `device` must be an accelerator, got {str(result)!r}")
    binding.check_device(name, result)
    return result
