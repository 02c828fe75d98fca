"""Functions for `on_trace_ready` of a profile."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from typing import Any


def tensorboard_trace_handler(
    dir_name: str | os.PathLike[str], worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[Any], None]:
    """Return a function that writes a Chrome trace of each profile into a folder.

    The files are called ``<worker>.<time>.pt.trace.json``, as TensorBoard's profiler plug-in
    expects, with the time in nanoseconds.

    Args:
        dir_name: the folder; it is made if it is not there.
        worker_name: the first part of the files' names, different for each process that writes
            into the folder. The default is the name of the machine and the number of the process.
        use_gzip: compress the files; ``.gz`` is added to their names.

    Raises:
        OSError: from the function, if the folder cannot be made or written to.

    Example:
        >>> import os, tempfile
        >>> from plait_profiler import profile, record_function, tensorboard_trace_handler
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with profile(on_trace_ready=tensorboard_trace_handler(folder, "worker0")):
        ...         with record_function("work"):
        ...             pass
        ...     names = os.listdir(folder)
        >>> [name.split(".")[0] for name in names]
        ['worker0']
    """

    def write(profile: Any) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        ending = ".gz" if use_gzip else ""
        name = f"{worker}.{time.time_ns()}.pt.trace.json{ending}"
        profile.export_chrome_trace(os.path.join(dir_name, name))

    return write
