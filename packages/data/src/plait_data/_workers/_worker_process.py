"""Set-up of a worker process: it ends with its parent, handles signals and uses one thread."""

from __future__ import annotations

import fcntl
import os
import pickle
import select
import signal
import sys
from typing import Any


def dump_signal() -> int:
    """The signal by which a worker writes a stack dump."""
    return signal.SIGRTMAX - 1


def end_with_parent(shared: int) -> int:
    """Make the kernel kill this process when the pipe's only writer, the parent, has ended.

    Returns:
        The descriptor to keep open.
    """
    # Open the pipe again: an open file has one receiver of the signal, and workers share `shared`.
    lifeline = os.open(f"/proc/self/fd/{shared}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.close(shared)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, getattr(fcntl, "F_SETSIG", 10), signal.SIGKILL)
    flags = fcntl.fcntl(lifeline, fcntl.F_GETFL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, flags | os.O_ASYNC)
    watch = select.poll()
    watch.register(lifeline, 0)
    if watch.poll(0):  # the parent ended before this was set up
        os._exit(1)
    return lifeline


def device_setup() -> bytes:
    """A pickled function that gives a worker the devices that plait has here; empty for none."""
    start = sys.modules.get("plait_core._startup")
    setup = start.device_setup() if start is not None else None
    return b"" if setup is None else pickle.dumps(setup)


class LazyConverter:
    """The program's converter, loaded (with its library) at the first array."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._converter: Any = None

    def __call__(self, array: Any) -> Any:
        if self._converter is None:
            self._converter = pickle.loads(self._content)
        return self._converter(array)


def use_one_thread() -> None:
    """Make the imported tensor libraries use one thread, as there are several workers."""
    for name in ("torch", "plait_core"):
        # not `getattr`: under plait.torch it would import modules to look for the name
        library = vars(sys.modules[name]) if name in sys.modules else {}
        set_threads = library.get("set_num_threads")
        if set_threads is not None:
            set_threads(1)
