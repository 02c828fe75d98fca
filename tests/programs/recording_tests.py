"""A plugin of pytest that lists tests, or runs chosen ones and records how each ended.

library_tests.py loads it with `-p recording_tests`. Two environment variables say what it does:
TESTS_RECORD is the file to write, one line of JSON for each event, so that a process that dies says
in which test; TESTS_CHOSEN is a file with the ids and places of the tests to run, one a line.
Connections to other machines are refused, so that a test that downloads fails at once.
"""

from __future__ import annotations

import collections
import json
import os
import pathlib
import socket
import sys
from typing import Any

import pytest

RECORD = os.environ.get("TESTS_RECORD", "")
CHOSEN = os.environ.get("TESTS_CHOSEN", "")
NAMES: dict[str, str] = {}  # for the ids of the chosen tests, those on PyTorch
connect = socket.socket.connect
look_up = socket.getaddrinfo
HERE = ("127.", "::1", "localhost", "0.0.0.0", "")


def record(**event: Any) -> None:
    """Append an event to the record, at once."""
    with open(RECORD, "a") as file:
        file.write(json.dumps(event) + "\n")


def connect_here(self: socket.socket, address: Any) -> None:
    """Connect to this machine; refuse others."""
    if isinstance(address, tuple) and not str(address[0]).startswith(HERE[:4]):
        raise OSError("library_tests.py runs tests without the network")
    connect(self, address)


def look_up_here(host: Any, *words: Any, **named: Any) -> Any:
    """Look this machine's names up; refuse others."""
    name = host.decode() if isinstance(host, bytes) else str(host or "")
    if name and not name.startswith(HERE[:4]) and name != socket.gethostname():
        raise socket.gaierror("library_tests.py runs tests without the network")
    return look_up(host, *words, **named)


def pytest_configure() -> None:
    """Close the network."""
    socket.socket.connect = connect_here  # type: ignore[method-assign, assignment]
    socket.getaddrinfo = look_up_here


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the chosen tests, in their order; or list all."""
    result = places(items)
    if not CHOSEN:
        with open(RECORD, "a") as file:
            for item, place in zip(items, result, strict=True):
                file.write(json.dumps({"listed": item.nodeid, "place": place}) + "\n")
        return
    expected = [json.loads(line) for line in pathlib.Path(CHOSEN).read_text().splitlines()]
    by_name = {item.nodeid: item for item in reversed(items)}
    by_place = dict(zip(result, items, strict=True))
    references = []
    for name, place in expected:
        # the place is that of PyTorch, where objects among the parameters may print another id
        item = by_name.get(name) or by_place.get(place)
        if item is not None and item.nodeid not in NAMES:
            NAMES[item.nodeid] = name
            references.append(item)
    selection = set(map(id, references))
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in selection])
    items[:] = references


def places(items: list[pytest.Item]) -> list[str]:
    """Return for each test its function and its place among all tests of that function."""
    functions = [item.nodeid.partition("[")[0] for item in items]
    counts = collections.Counter(functions)
    seen: collections.Counter[str] = collections.Counter()
    result = []
    for function in functions:
        seen[function] += 1
        result.append(f"{function} {seen[function]}/{counts[function]}")
    return result


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Record a file that could not be collected."""
    if report.failed:
        record(file=report.nodeid, error=reason(report))


def pytest_runtest_logstart(nodeid: str) -> None:
    """Record that a test begins."""
    record(begun=NAMES.get(nodeid, nodeid))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record how a step of a test ended, and at the last one that the test is done."""
    name = NAMES.get(report.nodeid, report.nodeid)
    if report.when == "call" or not report.passed:
        outcome = "skipped" if hasattr(report, "wasxfail") else report.outcome
        event = {"outcome": outcome, "when": report.when, "seconds": report.duration}
        record(step=name, error="" if report.passed else reason(report), **event)
    if report.when == "teardown":
        record(ended=name)


def reason(report: Any) -> str:
    """Return the error of a report in a line, and where it was raised."""
    result = report.longrepr
    if isinstance(result, tuple):
        return str(result[2])
    crash = getattr(result, "reprcrash", None)
    text = crash.message if crash else str(result)
    if not crash:  # an error of a file's collection ends with the exception
        lines = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
        return " ".join((lines or text.strip().splitlines() or [""])[-1].split())
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = " ".join(lines[:3] if lines and lines[0].endswith(":") else lines[:1])
    return f"{first} [{place(crash.path)}:{crash.lineno}]"


def place(path: str) -> str:
    """Return a path without the folders above what is installed."""
    for folder in [*sys.path, os.getcwd()]:
        if folder and path.startswith(folder + os.sep):
            return path[len(folder) + 1 :]
    return pathlib.Path(path).name
