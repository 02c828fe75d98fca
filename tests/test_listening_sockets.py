"""Wherever plait listens, a test connects hundreds of times without a proof, with few descriptors.

The test fails for a file that listens and is in no table below.
"""

from __future__ import annotations

import pathlib
import re

PACKAGES = pathlib.Path(__file__).parents[1] / "packages"
LISTENS = re.compile(
    r"\.listen\(|(?<!\w)::listen\(|\blisten\(fd,|create_server\(|start_(?:unix_)?server\(|"
    r"(?:HTTP|TCP|UDP|Stream|Datagram|HTTPS)Server\b|\.Listener\)|managers\.Server\)"
)
# by file: the file and the test
TESTS = {
    "distributed/src/plait_distributed/_tcp_store.py": "distributed/tests/test_strangers.py",
    "distributed/src/plait_distributed/_hosts.py": "distributed/tests/test_strangers.py",
    "distributed/src/plait_distributed/elastic/_place.py": "distributed/tests/test_strangers.py",
    "multiprocessing/cpp/rendezvous.cpp": "multiprocessing/tests/test_communicator.py",
    "multiprocessing/src/plait_multiprocessing/_manager_server.py": (
        "multiprocessing/tests/test_manager_servers.py"
    ),
    "multiprocessing/src/plait_multiprocessing/listener.py": "distributed/tests/test_strangers.py",
    "profiler/src/plait_profiler/_watch.py": "profiler/tests/test_watch.py",
    "ucx/src/plait_ucx/_meeting.py": "ucx/tests/test_meeting.py",
}
# no sockets at which others than the caller's peers are awaited, with the reason
OTHERS = {
    "distributed/src/plait_distributed/elastic/_gathering.py": "calls Place.listen",
    "multiprocessing/cpp/transfers.cpp": "waits for a bell in shared memory",
    "torch/src/plait_torch/_free_port.py": "the caller's socket, at which nothing is accepted",
    "multiprocessing/src/plait_multiprocessing/_connections.py": "Python's Listener: see its text",
}


def test_every_listening_socket_has_a_test() -> None:
    results = set()
    for folder in ("src", "cpp"):
        for path in PACKAGES.glob(f"*/{folder}/**/*"):
            if path.suffix in (".py", ".cpp", ".hpp", ".h", ".c") and LISTENS.search(
                path.read_text(encoding="utf-8")
            ):
                results.add(str(path.relative_to(PACKAGES)))
    assert results == {*TESTS, *OTHERS}
    for test in TESTS.values():
        text = (PACKAGES / test).read_text(encoding="utf-8")
        assert re.search(r"range\(400\)|, 400\)|< 400", text), test
        assert "descriptors" in text, test
