"""Faults at random in a training, on one host or several, and what the training wrote."""

from __future__ import annotations

import contextlib
import os
import pathlib
import random
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

__all__ = [
    "CUT",
    "ENVIRONMENT",
    "MOST_FAULTS",
    "RANKS",
    "SIGNALS",
    "STEPS_PER_FAULT",
    "Job",
    "train",
]

PROGRAM = pathlib.Path(__file__).with_name("elastic_training.py")
RANKS = 4
STEPS_PER_FAULT = 12
PAUSE = 0.01  # seconds of a step
MOST_FAULTS = 100
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP)
CUT = "cut off"  # the fault of a host
LONG = 60.0  # seconds for one fault; what takes longer hangs


ENVIRONMENT = {"PLAIT_STOPPED_TIMEOUT": "1", "PLAIT_NUM_THREADS": "1"}


class Job:
    """The processes of a training, and what they wrote."""

    faults: tuple[Any, ...] = SIGNALS
    ranks = RANKS

    def __init__(self, folder: pathlib.Path, steps: int, mode: str) -> None:
        self.folder = folder
        self.program = [str(PROGRAM), str(folder), str(steps), str(PAUSE), mode]
        self.shared: set[str] = set()  # files in /dev/shm of ranks that were struck
        self.errors = (folder / "errors").open("w+")

    def pids(self) -> list[int]:
        """Return the ranks' processes."""
        raise NotImplementedError

    def runs(self) -> bool:
        """Return whether it has not ended."""
        raise NotImplementedError

    def wait_for_end(self, seconds: float) -> int:
        """Return the exit code; raise `subprocess.TimeoutExpired`."""
        raise NotImplementedError

    def cut(self, source: random.Random) -> None:
        """Cut a host off for some seconds, where there are several."""
        raise NotImplementedError

    def strike(self, rank: int, which: signal.Signals) -> bool:
        """Send a rank a signal; return whether it was there."""
        for pid in self.pids():
            with contextlib.suppress(OSError):
                variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                if b"RANK=%d" % rank in variables:
                    maps = pathlib.Path(f"/proc/{pid}/maps").read_text(errors="replace")
                    self.shared.update(re.findall(r"/dev/shm/([^\s/]+)", maps))
                    os.kill(pid, which)
                    return True
        return False

    def steps(self) -> int:
        """Return how far the training is."""
        texts = [path.read_text() for path in self.folder.glob("steps*")]
        return max([int(text) for text in texts if text.strip()], default=0)

    def entries(self) -> dict[int, str]:
        """Return what each rank wrote when it last began to train."""
        result = self.folder.glob("entry*")
        texts = {int(path.name[len("entry") :]): path.read_text() for path in result}
        return {rank: text for rank, text in texts.items() if text}  # '' is being written

    def wait(self, seconds: float) -> list[str]:
        """Wait for the end; return the lines of the result."""
        try:
            code = self.wait_for_end(seconds)
        except subprocess.TimeoutExpired:
            text = (self.folder / "errors").read_text()[-4000:]
            states = [pathlib.Path(f"/proc/{p}/stat").read_text()[:60] for p in self.pids()]
            raise AssertionError(f"it hangs at step {self.steps()}: {states}\n{text}") from None
        assert code == 0, (self.folder / "errors").read_text()[-4000:]
        return (self.folder / "result").read_text().splitlines()

    def no_neighbour(self, rank: int) -> int:
        """Return a rank that has no copy of this one's shards, nor this one of its."""
        return (rank + self.ranks // 2) % self.ranks

    def end(self) -> None:
        """End whatever is left."""
        for pid in self.pids():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self.errors.close()


def strike(job: Job, source: random.Random, faults: int, struck: list[str]) -> None:
    """Kill, stop or cut off ranks at random times, when all ranks have come back and gone on.

    At some faults two are struck, the second one while the others recover. It is the same rank, or
    one that is no neighbour of it, as shards of a rank and its neighbour cannot be lost together.
    """
    at, last = 0, (faults + 1) * STEPS_PER_FAULT - 1
    for _ in range(faults):
        at = min(at + source.randrange(1, STEPS_PER_FAULT), last)
        while job.steps() < at and job.runs():
            time.sleep(0.002)
        entries = job.entries()
        which = source.choice(job.faults)
        if which == CUT:
            struck.append(CUT)
            job.cut(source)
        else:
            rank = source.randrange(job.ranks)
            ranks = [(rank, 0.03)]
            if source.random() < 0.25:
                ranks.append((source.choice([rank, job.no_neighbour(rank)]), 2.0))
            for each, delay in ranks:
                time.sleep(source.uniform(0, delay))
                entries = job.entries()
                while not job.strike(each, which) and job.runs():
                    time.sleep(0.002)  # it is being started again
                struck.append(which.name)
                which = source.choice(SIGNALS)
        at = job.steps()
        while job.runs():
            now = job.entries()
            changed = [r for r in now if now[r] != entries.get(r)]
            if len(changed) == job.ranks:
                break
            # a short cut is no loss
            if struck[-1] == CUT and not changed and job.steps() > at + 3:
                break
            time.sleep(0.002)
        at = job.steps()
    (job.folder / "struck").touch()


def train(
    folder: pathlib.Path,
    mode: str,
    faults: int,
    source: random.Random | None,
    start: Callable[[pathlib.Path, int, str, int], Job],
) -> list[str]:
    """Run the training, with faults if there is a source of them; return its result's lines."""
    folder.mkdir()
    steps = (faults + 1) * STEPS_PER_FAULT
    struck: list[str] = []
    job = start(folder, steps, mode, 3 * faults)
    try:
        if source is not None:
            thread = threading.Thread(target=strike, args=(job, source, faults, struck))
            thread.start()
        else:
            (folder / "struck").touch()
        result = job.wait(LONG + (LONG / 4) * faults)
        fell = folder / "fell_back"
        assert not fell.exists(), fell.read_text()
        if source is not None:
            thread.join()
            left = [name for name in job.shared if os.path.exists(f"/dev/shm/{name}")]
            assert not left, "what a killed rank had in shared memory is there"
            counts = [f"{struck.count(name)} {name}" for name in sorted(set(struck))]
            fewer = folder / "fewer"  # sums of fewer ranks have other bits
            counts += [f"fewer ranks, {fewer.read_text()}"] if fewer.exists() else []
            print(f"{mode}: {', '.join(counts)}")
        return result
    finally:
        job.end()
