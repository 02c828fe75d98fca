"""A watch: windows, its summary, its page."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

import plait_core as pc
from plait_profiler import Watch, record_function, watch


def work(seen: Watch, windows: int = 1) -> None:
    """Call operators until so many windows were recorded."""
    x = pc.ones(8, 8)
    limit = time.monotonic() + 60
    while seen.windows < windows:
        with record_function("part"):
            x.exp()
        assert time.monotonic() < limit


def test_windows_add_up_to_a_summary() -> None:
    with watch(every=0.03, window=0.01) as calls:
        work(calls, 3)
    part, exp = calls.names["part"], calls.names["exp"]
    assert (part.kind, exp.kind) == ("range", "operator")
    assert exp.self_seconds == exp.seconds > 0
    assert 0 < part.self_seconds < part.seconds
    # a range that a window's end cuts is not counted, though the operator within it may be
    assert abs(part.count - exp.count) <= calls.windows + 1
    assert exp.operations == exp.count * 64
    assert calls.seconds >= 3 * 0.01
    assert "exp" in calls.table()
    assert "operators/s" in calls.line()


def test_names_are_bounded() -> None:
    for window in (0.2, 2.0, 20.0):  # longer ones where the machine is busy
        with watch(every=1.01 * window, window=window) as calls:
            count = 0
            while not calls.windows:
                for i in range(100):
                    with record_function(f"name {count + i}"):
                        pass
                count += 100
        if count > 2000:
            break
    assert count > 2000
    assert len(calls.names) <= 1001


def test_the_page_for_prometheus() -> None:
    with watch(every=0.03, window=0.01, port=0) as calls:
        work(calls)
        assert calls.address is not None
        host, port = calls.address
        with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=240) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            page = answer.read().decode()
    for line in page.splitlines():
        assert line.startswith("# ") or re.fullmatch(r"\w+(\{[^}]*\})? [-+.\de]+", line), line
    assert 'plait_events_total{kind="operator",name="exp"}' in page


SERVER = """
import os, resource, sys
from plait_profiler import watch
seen = watch(port=0)
used = len(os.listdir("/proc/self/fd"))
limits = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (used + int(sys.argv[1]), limits[1]))
print(seen.address[1], flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("descriptors", [300, 20])
def test_idle_connections_do_not_block_the_page(descriptors: int) -> None:
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(descriptors)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with server, contextlib.ExitStack() as idle:
        assert server.stdout is not None
        address = "127.0.0.1", int(server.stdout.readline())
        for number in range(400):
            end = idle.enter_context(socket.socket())
            end.setblocking(False)
            end.connect_ex(address)
            if number < 60:  # one by one, so that the server takes them
                time.sleep(0.01)
        page = b""
        deadline = time.monotonic() + 60
        while not page and time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection(address, timeout=5) as end:
                end.sendall(b"GET / HTTP/1.0\r\n\r\n")
                page = end.recv(100)
        assert page.startswith(b"HTTP/1.0 200")
        server.communicate("")


def test_a_line_in_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with watch(every=0.03, window=0.01, line=True) as calls:
        work(calls)
    text = capfd.readouterr()
    assert "operators/s" in text.out + text.err


def test_times_are_checked() -> None:
    with pytest.raises(ValueError, match="window=2, every=1"):
        watch(every=1, window=2)
