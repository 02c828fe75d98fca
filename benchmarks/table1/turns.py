"""Workers of several sides that make steps in turns."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from peers import Peer, environment

__all__ = ["Case", "Record", "Side", "Worker", "neighbour", "opened", "run_case", "take_turn"]

WORKER = Path(__file__).parent / "worker.py"
TURN = 0.3
"""Seconds that a turn takes at least, if a step is shorter."""
PAUSE = 0.1
"""Seconds between turns, in which threads of the side before stop spinning."""


@dataclass(frozen=True)
class Case:
    """The case that all sides run in turns: a model in a mode, on so many threads."""

    section: str
    model: str
    mode: str
    batch: int
    threads: int = 2
    avx2: bool = False
    neighbour: bool = False


@dataclass
class Record:
    """The result of one side in a case.

    Attributes:
        case: the case.
        peer: the side's name.
        version: of its library.
        seconds: the mean of a step in each turn.
        cpu: the same of the processors' time, user and system, of all threads.
        first: seconds of the first step.
        second: seconds of the second step.
        memory: the peak of resident bytes.
        imported: the same before the model was built.
        missing: why there are no figures, or "".
    """

    case: Case
    peer: str
    version: str = ""
    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    first: float = math.nan
    second: float = math.nan
    memory: int = 0
    imported: int = 0
    missing: str = ""

    def values(self) -> dict[str, Any]:
        """As JSON has it."""
        return {key: None if value != value else value for key, value in asdict(self).items()}

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> Record:
        """The inverse of `values`."""
        fields = {key: math.nan if value is None else value for key, value in values.items()}
        return cls(**{**fields, "case": Case(**values["case"])})


class Worker:
    """A process that makes steps of one side."""

    def __init__(self, peer: Peer, python: str, case: Case) -> None:
        self._process = subprocess.Popen(
            [python, str(WORKER), peer.side],
            env=environment(peer, case.threads, case.avx2),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and return the answer, which has ``error`` if there was one."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            return {"error": f"the process ended with status {self._process.wait()}"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()


@dataclass
class Side:
    """A side of a case: its record, its process (or None), and the steps of a turn."""

    record: Record
    worker: Worker | None = None
    count: int = 1


@contextmanager
def neighbour(required: bool) -> Iterator[None]:
    """Run a process that keeps one processor busy, if ``required``."""
    if not required:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def run_case(case: Case, sides: Iterable[tuple[Peer, str]], rounds: int) -> list[Record]:
    """Make steps of all sides, (peer, its Python) each, in turns; return a record for each."""
    with ExitStack() as stack:
        stack.enter_context(neighbour(case.neighbour))
        running = [opened(case, peer, python, stack) for peer, python in sides]
        for _ in range(rounds):
            for side in running:
                take_turn(side)
        return [side.record for side in running]


def opened(case: Case, peer: Peer, python: str, stack: ExitStack) -> Side:
    """Start a side's process, which makes its first two steps; the stack ends it."""
    record = Record(case, peer.name)
    if not Path(python).exists():
        record.missing = python  # the reason, see places.py
        return Side(record)
    worker = Worker(peer, python, case)
    stack.callback(worker.close)
    requests = {key: getattr(case, key) for key in ("model", "mode", "batch", "threads")}
    answer = worker.ask(do="open", tuned=peer.tuned, **requests)
    if "error" in answer:
        record.missing = answer["error"].removeprefix("NotWritten: ")
        worker.close()
        return Side(record)
    for key, value in answer.items():
        setattr(record, key, value)
    count = math.ceil(TURN / max(record.second, TURN / 1000))
    return Side(record, worker, count)


def take_turn(side: Side) -> None:
    """Make the steps of a turn, if the side is there, and add their mean to its record.

    The first step is not counted: while others had their turns, caches went cold and freed memory
    went back to the system, which no loop of steps sees.
    """
    if side.worker is None:
        return
    time.sleep(PAUSE)
    side.worker.ask(do="steps", count=1)
    answer = side.worker.ask(do="steps", count=side.count)
    if "error" in answer:
        side.record.missing, side.worker = answer["error"], None
        return
    side.record.seconds.append(answer["seconds"])
    side.record.cpu.append(answer["cpu"])
    side.record.memory = answer["memory"]
