"""An observer that stays on: it records short windows and keeps a summary that does not grow."""

from __future__ import annotations

import contextlib
import http.server
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from plait_profiler._recorder import Recorder
from plait_profiler._recording import Kind, Recording

_KINDS = 1 | 8 | 16 | 128  # operators, backward passes, ranges, waiting for data
_CAPACITY = 1 << 16
_MOST_NAMES = 1000
_MOST_CONNECTIONS = 64  # to the page
_REQUEST_TIME = 10.0  # seconds that a connection has to ask
_PAUSE = 0.005  # seconds without new connections when there are no descriptors


@dataclass
class WatchedName:
    """What was seen of one name in all windows together.

    Attributes:
        kind: of the events: ``operator``, ``backward``, ``range`` or ``data``.
        count: of events.
        seconds: from begin to end.
        self_seconds: without events inside.
        operations: of floating-point numbers.
        moved: bytes read and written.
    """

    kind: str
    count: int = 0
    seconds: float = 0.0
    self_seconds: float = 0.0
    operations: int = 0
    moved: int = 0


class Watch:
    """A rolling summary of a program, made by recording a window now and then.

    A thread records ``window`` seconds of every ``every`` seconds, so a program pays for events in
    that share of its time alone; the summary has at most a thousand names.

    Args:
        every: seconds from one window to the next.
        window: seconds that are recorded.
        line: show a line in the terminal: the rates, the memory and the heaviest names. With the
            package rich it stays in its place, else one is printed after each window.
        port: serve a page for Prometheus at this port of this machine; 0 takes a free one, None
            none. `address` has it.

    Raises:
        ValueError: if the times are not positive, or the window is longer than the rest.
        OSError: if the port is taken.

    Example:
        >>> import time, plait_core as pc
        >>> from plait_profiler import watch
        >>> with watch(every=0.05, window=0.02) as seen:
        ...     while not seen.windows:
        ...         _ = pc.ones(3).exp()
        >>> seen.names["exp"].kind
        'operator'
    """

    def __init__(
        self,
        every: float = 10.0,
        window: float = 0.1,
        *,
        line: bool = False,
        port: int | None = None,
    ) -> None:
        if not 0 < window < every:
            raise ValueError(
                "watch: `window` must be positive and shorter than `every`; got "
                f"window={window}, every={every}"
            )
        self.every, self.window = every, window
        self.names: dict[str, WatchedName] = {}
        self.windows = 0
        self.seconds = 0.0
        """How long was recorded."""
        self.dropped = 0
        self.address: tuple[str, int] | None = None
        self.peak_bytes = self.live_bytes = 0
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._begun = time.monotonic()
        self._show = _terminal_line() if line else None
        self._server = None if port is None else _serve(self, port)
        if self._server is not None:
            host, number = self._server.server_address[:2]
            self.address = str(host), int(number)
        self._thread = threading.Thread(target=self._run, name="plait watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it; what it has seen stays."""
        self._end.set()
        self._thread.join()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None
        if self._show is not None:
            self._show("")

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ---- recording -----------------------------------------------------------------------------

    def _run(self) -> None:
        pause = min(self.every - self.window, 1.0)  # the first window comes soon
        while not self._end.wait(pause):
            recorder = Recorder(_KINDS, _CAPACITY, children=False)
            self._end.wait(self.window)
            recorder.stop()
            self._fold(recorder.recording())
            if self._show is not None:
                self._show(self.line())
            pause = self.every - self.window

    def _fold(self, recording: Recording) -> None:
        rows = recording.rows
        parents = recording.parents()
        inside = np.zeros(len(rows), np.int64)
        has = parents >= 0
        np.add.at(inside, parents[has], rows["duration"][has].astype(np.int64))
        n = len(recording.signatures)
        counts = np.bincount(rows["signature"], minlength=n)
        totals = np.bincount(rows["signature"], rows["duration"], minlength=n)
        own = np.bincount(rows["signature"], rows["duration"] - inside, minlength=n)
        kinds = {
            Kind.OP: "operator",
            Kind.BACKWARD: "backward",
            Kind.RANGE: "range",
            Kind.DATA: "data",
        }
        core = sys.modules.get("plait_core")
        with self._lock:
            for i, each in enumerate(recording.signatures):
                if not counts[i]:
                    continue
                name = each.name
                if name not in self.names and len(self.names) >= _MOST_NAMES:
                    name = "(other names)"
                summary = self.names.setdefault(name, WatchedName(kinds.get(each.kind, "range")))
                summary.count += int(counts[i])
                summary.seconds += float(totals[i]) * 1e-9
                summary.self_seconds += float(own[i]) * 1e-9
                summary.operations += int(counts[i]) * each.operations
                summary.moved += int(counts[i]) * (each.read + each.written)
            self.windows += 1
            self.seconds += (recording.end - recording.begin) * 1e-9
            self.dropped += sum(recording.dropped.values())
            if core is not None:
                stats = core.memory_stats("cpu")
                self.live_bytes, self.peak_bytes = stats["live_bytes"], stats["peak_bytes"]

    # ---- what was seen -------------------------------------------------------------------------

    def table(self, row_limit: int = 20) -> str:
        """Return a table of the heaviest names, by the time without events inside.

        Args:
            row_limit: The largest number of rows.

        Example:
            >>> from plait_profiler import watch
            >>> with watch() as seen:
            ...     pass
            >>> seen.table().splitlines()[0].split()
            ['name', 'calls/s', 'time', 'share', 'self', 'GFLOP/s', 'GB/s']
        """
        lines = [f"{'name':40} {'calls/s':>9} {'time':>10} {'share self':>10} {'GFLOP/s':>8} GB/s"]
        with self._lock:
            seconds = max(self.seconds, 1e-9)
            heavy = sorted(self.names.items(), key=lambda item: -item[1].self_seconds)
            for name, summary in heavy[:row_limit]:
                time_ = max(summary.seconds, 1e-12)
                mean = summary.seconds / summary.count * 1e6
                lines.append(
                    f"{name[:40]:40} {summary.count / seconds:9.1f} "
                    f"{mean:7.1f} us {summary.self_seconds / seconds:10.1%} "
                    f"{summary.operations / time_ * 1e-9:8.2f} {summary.moved / time_ * 1e-9:.2f}"
                )
        lines.append(
            f"{self.windows} windows, {self.seconds:.1f} s recorded, {self.dropped} events dropped"
        )
        return "\n".join(lines)

    def line(self) -> str:
        """Return the summary as one line."""
        with self._lock:
            seconds = max(self.seconds, 1e-9)
            calls = sum(
                summary.count for summary in self.names.values() if summary.kind == "operator"
            )
            waits = sum(
                summary.seconds for summary in self.names.values() if summary.kind == "data"
            )
            steps = sum(
                summary.count
                for name, summary in self.names.items()
                if name.startswith("Optimizer.step")
            )
            heavy = sorted(self.names.items(), key=lambda item: -item[1].self_seconds)[:3]
            top = ", ".join(
                f"{name} {summary.self_seconds / seconds:.0%}" for name, summary in heavy
            )
        return (
            f"{time.monotonic() - self._begun:.0f} s: {steps / seconds:.3g} steps/s, "
            f"{calls / seconds:.3g} operators/s, waits for data {waits / seconds:.0%}, "
            f"{self.live_bytes / 2**20:.0f} MiB (peak {self.peak_bytes / 2**20:.0f}): {top}"
        )

    def prometheus(self) -> str:
        """Return a page in the text format of Prometheus.

        Times and counts are those of the windows: ``plait_watched_seconds_total`` says how long
        these were together, and rates are quotients by it.

        Example:
            >>> from plait_profiler import watch
            >>> with watch() as seen:
            ...     page = seen.prometheus()
            >>> "# TYPE plait_watched_seconds_total counter" in page
            True
        """
        with self._lock:
            figures: list[tuple[str, str, str, list[tuple[str, Any]]]] = [
                ("plait_watched_seconds_total", "counter", "Seconds that were recorded.",
                 [("", self.seconds)]),
                ("plait_watch_windows_total", "counter", "Windows that were recorded.",
                 [("", self.windows)]),
                ("plait_watch_dropped_events_total", "counter", "Events without room.",
                 [("", self.dropped)]),
                ("plait_memory_live_bytes", "gauge", "Bytes that tensors have.",
                 [("", self.live_bytes)]),
                ("plait_memory_peak_bytes", "gauge", "The most bytes that tensors had.",
                 [("", self.peak_bytes)]),
            ]  # fmt: skip
            for field, unit, text in (
                ("count", "events_total", "Events in the windows."),
                ("seconds", "event_seconds_total", "Seconds from begins to ends."),
                ("self_seconds", "event_self_seconds_total", "Seconds without events inside."),
                ("operations", "event_operations_total", "Floating-point operations."),
            ):
                values = [
                    (f'{{kind="{summary.kind}",name="{_escaped(name)}"}}', getattr(summary, field))
                    for name, summary in self.names.items()
                ]
                figures.append((f"plait_{unit}", "counter", text, values))
        lines = []
        for name, kind, text, values in figures:
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{labels} {value:.15g}" for labels, value in values]
        return "\n".join(lines) + "\n"


def watch(
    every: float = 10.0, window: float = 0.1, *, line: bool = False, port: int | None = None
) -> Watch:
    """Begin to watch this program, for as long as it runs; see `Watch`.

    Args:
        every: Seconds between the beginnings of two windows.
        window: Seconds of a window, in which calls are recorded.
        line: Whether a line is printed after each window.
        port: A port of this host that serves the results; None: no server.

    Example:
        >>> from plait_profiler import watch
        >>> seen = watch()
        >>> seen.stop()
        >>> seen.windows
        0
    """
    return Watch(every, window, line=line, port=port)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _terminal_line() -> Callable[[str], None]:
    """Return a function that shows a line; the empty one ends it."""
    try:
        from rich.live import Live
        from rich.text import Text
    except ImportError:

        def show(text: str) -> None:
            if text:
                print(text, file=sys.stderr, flush=True)

        return show
    live = Live(Text(""), auto_refresh=False)
    live.start()

    def update(text: str) -> None:
        if text:
            live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)
        else:
            live.stop()

    return update


class _PageServer(http.server.ThreadingHTTPServer):
    """Serves a page. If there are too many connections, or no descriptors, the oldest has to go."""

    request_queue_size = 128

    def __init__(self, *arguments: Any) -> None:
        self._connections: dict[Any, None] = {}  # the oldest first
        self._lock = threading.Lock()
        super().__init__(*arguments)

    def get_request(self) -> tuple[Any, Any]:
        try:
            return super().get_request()
        except OSError:
            self._end_oldest()
            time.sleep(_PAUSE)  # its thread closes it
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._connections[request] = None
            too_many = len(self._connections) > _MOST_CONNECTIONS
        if too_many:
            self._end_oldest()
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.pop(request, None)
        super().shutdown_request(request)

    def _end_oldest(self) -> None:
        with self._lock:
            for oldest in self._connections:
                with contextlib.suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
                del self._connections[oldest]
                return

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # the program's terminal is its own


def _serve(watch: Watch, port: int) -> _PageServer:
    class Page(http.server.BaseHTTPRequestHandler):
        timeout = _REQUEST_TIME

        def do_GET(self) -> None:
            body = watch.prometheus().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass  # the program's terminal is its own

    server = _PageServer(("127.0.0.1", port), Page)
    threading.Thread(target=server.serve_forever, name="plait watch page", daemon=True).start()
    return server
