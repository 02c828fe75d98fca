"""Streams and events of CUDA devices."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import Any

from plait_abi import binding
from plait_core.cuda._devices import device, is_available, require_device


class _OfCuda(type):
    """Objects that the binding makes belong to the class, too, if they are of a CUDA device."""

    def __instancecheck__(cls, o: object) -> bool:
        parent = cls.__mro__[1]
        return isinstance(o, parent) and getattr(o, "device").type == "cuda"  # noqa: B009


class Stream(binding.Stream, metaclass=_OfCuda):
    """A stream of a CUDA device: work that the device does in order, beside that of other streams.

    Args:
        device: None is the current device.
        priority: lower numbers are served first; 0 is the lowest priority.

    Raises:
        RuntimeError: if there is no device.

    Example:
        >>> import plait_core as pc
        >>> if pc.cuda.is_available():
        ...     with pc.cuda.stream(pc.cuda.Stream()):
        ...         x = pc.ones(2, device="cuda") + 1
    """

    def __new__(cls, device: Any = None, priority: int = 0) -> Stream:
        return super().__new__(cls, require_device("Stream", device), priority)

    @classmethod
    def priority_range(cls) -> tuple[int, int]:
        """Return the lowest and the highest priority of streams."""
        return binding.priorities(require_device("Stream.priority_range"))


class Event(binding.Event, metaclass=_OfCuda):
    """A point in a stream of a CUDA device, which the host and other streams can wait for.

    Args:
        enable_timing: whether `elapsed_time` will be asked.
        blocking: accepted as in PyTorch; a wait of the host sleeps in any case.
        interprocess: whether other processes may open it by `ipc_handle`.
        external: Accepted as PyTorch has it.

    Raises:
        RuntimeError: if there is no device.

    Example:
        >>> import plait_core as pc
        >>> if pc.cuda.is_available():
        ...     event = pc.cuda.Event()
        ...     event.record()
        ...     event.synchronize()
    """

    def __new__(
        cls,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> Event:
        return super().__new__(cls, require_device("Event"), enable_timing, interprocess)

    def ipc_handle(self) -> bytes:
        """Return what `from_ipc_handle` of another process opens."""
        handle, _, _ = binding.share_event(self)
        return handle

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: bytes) -> binding.Event:
        """Return the event of another process, from what its `ipc_handle` returned there."""
        return binding.open_event(require_device("Event.from_ipc_handle", device), handle, -1, 0)


def ExternalStream(stream_ptr: int, device: Any = None) -> binding.Stream:  # noqa: N802
    """Return a stream that another library created, which keeps it alive.

    Args:
        stream_ptr: the handle, as a number.
        device: None is the current device.

    Raises:
        RuntimeError: if there is no device.

    Example:
        >>> import plait_core as pc
        >>> if pc.cuda.is_available():
        ...     s = pc.cuda.ExternalStream(pc.cuda.Stream().cuda_stream)
    """
    return binding.wrap_stream(require_device("ExternalStream", device), stream_ptr)


def get_stream_from_external(data_ptr: int, device: Any = None) -> binding.Stream:
    """Do what `ExternalStream` does.

    Args:
        data_ptr: the handle, as a number.
        device: None is the current device.

    Raises:
        RuntimeError: if there is no device.

    Example:
        >>> import plait_core as pc
        >>> if pc.cuda.is_available():
        ...     s = pc.cuda.get_stream_from_external(pc.cuda.Stream().cuda_stream)
    """
    return binding.wrap_stream(require_device("get_stream_from_external", device), data_ptr)


class StreamContext:
    """A context in which a stream is the current one of its device, and that device the current
    one of the thread; None changes nothing.

    Args:
        stream: The stream; None changes nothing.

    Example:
        >>> import plait_core as pc
        >>> with pc.cuda.StreamContext(None):
        ...     pass
    """

    def __init__(self, stream: binding.Stream | None) -> None:
        self.stream = stream
        self._contexts: tuple[AbstractContextManager[Any], ...] = ()
        if stream is not None:
            self._contexts = (device(stream.device), stream)

    def __enter__(self) -> None:
        with ExitStack() as entered:
            for each in self._contexts:
                entered.enter_context(each)
            entered.pop_all()  # they stay open

    def __exit__(self, *error: Any) -> None:
        for each in reversed(self._contexts):
            each.__exit__(*error)


def stream(stream: binding.Stream | None) -> StreamContext:
    """Return a context in which a stream is the current one of its device, and that device the
    current one of the thread; None changes nothing.

    Args:
        stream: The stream; None changes nothing.

    Example:
        >>> import plait_core as pc
        >>> with pc.cuda.stream(None):
        ...     pass
    """
    return StreamContext(stream)


def current_stream(device: Any = None) -> binding.Stream:
    """Return the stream in which this thread's calls on a device run.

    Args:
        device: The device; None: the current one.

    Raises:
        RuntimeError: if there is no device.

    Example:
        >>> import plait_core as pc
        >>> if pc.cuda.is_available():
        ...     pc.cuda.current_stream().synchronize()
    """
    return binding.current_stream(require_device("current_stream", device))


def default_stream(device: Any = None) -> binding.Stream:
    """Return the stream in which calls run that name no other.

    Args:
        device: The device; None: the current one.

    Raises:
        RuntimeError: if there is no device.

    Example:
        >>> import plait_core as pc
        >>> if pc.cuda.is_available():
        ...     assert pc.cuda.default_stream() == pc.cuda.current_stream()
    """
    return binding.wrap_stream(require_device("default_stream", device), 0)


def set_stream(stream: binding.Stream | None) -> None:
    """Make a stream the current one of its device, and that device the current one of the thread;
    None changes nothing.

    Args:
        stream: The stream; None changes nothing.

    Example:
        >>> import plait_core as pc
        >>> if pc.cuda.is_available():
        ...     pc.cuda.set_stream(pc.cuda.default_stream())
    """
    if stream is not None:
        binding.set_device(stream.device)
        binding.set_stream(stream)


def is_current_stream_capturing() -> bool:
    """Return whether the work of the current stream is recorded for a graph.

    Example:
        >>> import plait_core as pc
        >>> pc.cuda.is_current_stream_capturing()
        False
    """
    return is_available() and binding.is_capturing(current_stream())
