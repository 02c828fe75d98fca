"""What every attack has: seeds that repeat, a time budget, a clean exit, and a report.

An attack asks for the fixture `rounds` and loops over it::

    def test_anything(rounds):
        for random in rounds:
            attack(random)

Each round gets a fresh `random.Random`, drawn from the seed of the run, the name of the test and
the number of the round, so it is the same in every process. Rounds go on until the time of one test
is over; there is always at least one. Environment:

- ``PLAIT_ATTACK_SEED``: the seed; by default one is drawn from the clock. pytest's header shows it.
- ``PLAIT_ATTACK_SECONDS``: how many seconds one test may start rounds for; default 2.
- ``PLAIT_ATTACK_MINUTES``: instead of that, the minutes that all tests together may.
- ``PLAIT_ATTACK_ROUND``: only the round with this number. The report of a failing test shows the
  command that repeats exactly the round that failed.
- ``PLAIT_ATTACK_LOG``: a file that holds the command of the round that runs now, for when the
  process dies.
- ``PLAIT_ATTACK_RESULTS``: a file that gets one line of JSON for each test, see results.py.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import random
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import pytest

SEED = "PLAIT_ATTACK_SEED"
SECONDS = "PLAIT_ATTACK_SECONDS"
ROUND = "PLAIT_ATTACK_ROUND"
ROUNDS = pytest.StashKey["Rounds"]()
KEPT = pytest.StashKey[list[str]]()
# multiprocessing's servants, and the folder of its sockets, live as long as the process.
SERVANTS = (b"resource_tracker", b"forkserver")
FOLDERS_OF_MULTIPROCESSING = "pymp-"
PATIENCE = 60.0  # seconds for what a test has started to end, on a loaded machine


class Rounds:
    """The rounds of one test: iterating yields a `random.Random` a round until time is over."""

    def __init__(self, item: pytest.Item) -> None:
        self.seed = int(os.environ[SEED])
        self.seconds = float(os.environ.get(SECONDS, "2"))
        # Neither the folder pytest was started in nor its root may change the rounds.
        self.test = item.path.name + item.nodeid[item.nodeid.find("::") :]
        self.path = item.nodeid
        self.number = -1
        self.count = 0

    @property
    def command(self) -> str:
        """What repeats the current round, to be run in the folder that pytest calls rootdir."""
        only = f" {ROUND}={self.number}" if self.number >= 0 else ""
        return f"{SEED}={self.seed}{only} python -m pytest {shlex.quote(self.path)}"

    def random(self, number: int) -> random.Random:
        """Return the source of random numbers of one round."""
        key = f"{self.seed}/{self.test}/{number}".encode()
        return random.Random(int.from_bytes(hashlib.sha256(key).digest()[:8], "big"))

    def __iter__(self) -> Iterator[random.Random]:
        only = os.environ.get(ROUND)
        end = time.monotonic() + self.seconds
        self.number = int(only) if only else 0
        while True:
            self._note()
            yield self.random(self.number)
            self.count += 1
            if only or time.monotonic() >= end:
                return
            self.number += 1

    def _note(self) -> None:
        log = os.environ.get("PLAIT_ATTACK_LOG")
        if log:
            pathlib.Path(log).write_text(self.command + "\n", encoding="utf-8")


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> Rounds:
    """Rounds of random attacks; see the head of this file."""
    result = Rounds(request.node)
    request.node.stash[ROUNDS] = result
    return result


@pytest.fixture(autouse=True)
def _nothing_left_behind(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[None]:
    """Fail a test that leaves processes, or files in the folder for temporary ones."""
    tmp_path_factory.getbasetemp()  # lies where it would without this fixture
    # A short path: sockets of multiprocessing lie in it.
    folder = tempfile.mkdtemp(prefix="attack-")
    monkeypatch.setenv("TMPDIR", folder)
    monkeypatch.setattr(tempfile, "tempdir", None)
    before = _children()
    try:
        yield
        end = time.monotonic() + PATIENCE
        while (left := _children() - before) and time.monotonic() < end:
            time.sleep(0.02)
        assert not left, f"{request.node.name} left processes: {sorted(left)}"
        files = [
            path.name
            for path in pathlib.Path(folder).iterdir()
            if not path.name.startswith(FOLDERS_OF_MULTIPROCESSING)
        ]
        assert not files, f"{request.node.name} left temporary files: {files}"
    finally:
        monkeypatch.undo()
        if not any(pathlib.Path(folder).glob(FOLDERS_OF_MULTIPROCESSING + "*")):
            shutil.rmtree(folder, ignore_errors=True)
        else:
            request.session.stash.setdefault(KEPT, []).append(folder)


def _children() -> set[tuple[int, str]]:
    """Return this process's children: their numbers and command lines."""
    results = set()
    for file in pathlib.Path("/proc/self/task").glob("*/children"):
        try:
            numbers = file.read_text(encoding="ascii").split()
        except OSError:  # the thread has ended
            continue
        for number in numbers:
            try:
                line = pathlib.Path(f"/proc/{number}/cmdline").read_bytes()
            except OSError:
                continue
            if not any(servant in line for servant in SERVANTS):
                text = line.replace(b"\0", b" ").decode("utf-8", "replace")
                results.add((int(number), text.strip()))
    return results


def pytest_configure(config: pytest.Config) -> None:
    # In the environment, so that all workers of pytest-xdist have the same one.
    os.environ.setdefault(SEED, str(time.time_ns() // 1000 % 1_000_000_000))


def pytest_report_header() -> str:
    return f"attack: {SEED}={os.environ[SEED]}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Divide the time that is given for all among the tests that have rounds."""
    minutes = os.environ.get("PLAIT_ATTACK_MINUTES")
    sharing = sum("rounds" in getattr(item, "fixturenames", ()) for item in items)
    if minutes and sharing:
        os.environ[SECONDS] = f"{float(minutes) * 60 / sharing:.2f}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    result = item.stash.get(ROUNDS, None)
    if result is not None:
        if report.failed:
            report.sections.append(("repeat this round by", result.command))
        if call.when == "call":
            report.user_properties.append(("rounds", result.count))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    path = os.environ.get("PLAIT_ATTACK_RESULTS")
    # With pytest-xdist only the controller sees all reports; its workers have this variable.
    if not path or "PYTEST_XDIST_WORKER" in os.environ:
        return
    if report.when != "call" and not report.failed and not report.skipped:
        return
    line = {
        "test": report.nodeid,
        "outcome": "known" if report.skipped and hasattr(report, "wasxfail") else report.outcome,
        "rounds": dict(report.user_properties).get("rounds"),
        "seconds": round(report.duration, 2),
        "repeat": [text for name, text in report.sections if name.startswith("repeat")],
    }
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def pytest_sessionfinish(session: pytest.Session) -> None:
    for folder in session.stash.get(KEPT, []):
        shutil.rmtree(folder, ignore_errors=True)
