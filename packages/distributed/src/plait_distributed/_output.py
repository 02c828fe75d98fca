"""What the processes of a job print: whole lines of one process after the other."""

from __future__ import annotations

import contextlib
import os
import selectors
import threading
from typing import Any

OUT, ERR = 1, 2  # the file descriptors of the standard streams; their sum means both
_IDLE = 0.1  # seconds after which the beginning of a line, such as a prompt, is shown
_LAST = 0.2  # seconds without data after which nothing is expected of a process that has ended
_PATIENCE = 1.0  # seconds in which the launcher's own reader must take something
_LONGEST = 1 << 20  # bytes of a line that is kept until its end comes
_KEPT = 64 << 10  # bytes of a process's errors


class Console:
    """The launcher's own standard streams, which its processes share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun: dict[int, Reader] = {}  # by stream, whose line has no end yet

    def write(self, stream: int, source: Reader, data: bytes, prefix: bytes) -> None:
        """Write lines of a process, or the beginning of one; what follows continues it."""
        with self._lock, contextlib.suppress(OSError):  # who read them may have gone
            begun = self._begun.pop(stream, None)
            lines = data.splitlines(keepends=True)
            if begun is not None and begun is not source:
                _write(stream, b"\n")
            text = b"".join(prefix + line for line in lines)
            if begun is source:
                text = text[len(prefix) :]
            if not data.endswith((b"\n", b"\r")):
                self._begun[stream] = source
            _write(stream, text)


def _write(stream: int, data: bytes) -> None:
    while data:
        data = data[os.write(stream, data) :]


class Reader:
    """Passes on what a process prints.

    Args:
        pipes: the ends to read, by stream.
        console: where it goes.
        prefixes: what stands before each line of a stream.
    """

    def __init__(self, pipes: dict[int, Any], console: Console, prefixes: dict[int, bytes]) -> None:
        self._pipes = pipes
        self._console = console
        self._prefixes = prefixes
        self._pieces = 0
        self._has_ended = threading.Event()
        self.tail = bytearray()
        """The last of its standard error."""
        self._thread = threading.Thread(target=self._copy, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait until all that the process wrote before its end is passed on.

        Another process may hold the pipes open, and the launcher's own reader may have stopped.
        """
        self._has_ended.set()
        pieces = -1
        while self._thread.is_alive() and self._pieces != pieces:
            pieces = self._pieces
            self._thread.join(_PATIENCE)

    def _copy(self) -> None:
        with selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:
            for stream, pipe in self._pipes.items():
                stack.enter_context(pipe)
                selector.register(pipe, selectors.EVENT_READ, stream)
            begun = dict.fromkeys(self._pipes, b"")  # of the last line, by stream
            while selector.get_map():
                ended = self._has_ended.is_set()
                wait = _LAST if ended else _IDLE
                ready = selector.select(wait)
                if not ready:
                    for stream in begun:
                        self._pass_on(stream, begun[stream])
                        begun[stream] = b""
                    if ended:
                        return
                for key, _ in ready:
                    stream, data = key.data, os.read(key.fd, 65536)
                    if stream == ERR:
                        self.tail += data
                        del self.tail[:-_KEPT]
                    if not data:
                        selector.unregister(key.fileobj)
                    whole = begun[stream] + data
                    end = max(whole.rfind(b"\n"), whole.rfind(b"\r")) + 1
                    if not data or len(whole) - end > _LONGEST:
                        end = len(whole)
                    self._pass_on(stream, whole[:end])
                    begun[stream] = whole[end:]

    def _pass_on(self, stream: int, data: bytes) -> None:
        if data:
            self._console.write(stream, self, data, self._prefixes.get(stream, b""))
            self._pieces += 1
