"""Ranks killed and stopped at random in a training: no sample lost or doubled, the same weights."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

PROGRAM = pathlib.Path(__file__).with_name("elastic_training.py")
RANKS = 4
STEPS_PER_FAULT = 12
PAUSE = 0.01  # seconds of a step
MOST_FAULTS = 100
LONG = 60.0  # seconds for one fault; what takes longer hangs


class Launched:
    """A job under the launcher, and the processes of its ranks."""

    def __init__(self, folder: pathlib.Path, steps: int, mode: str, restarts: int) -> None:
        self.folder = folder
        environment = {**os.environ, "PLAIT_STOPPED_TIMEOUT": "1", "PLAIT_NUM_THREADS": "1"}
        flags = ["-n", str(RANKS), "--elastic", "--max-restarts", str(restarts)]
        program = [str(PROGRAM), str(folder), str(steps), str(PAUSE), mode]
        self.shared: set[str] = set()  # files in /dev/shm of ranks that were struck
        self.errors = (folder / "errors").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "plait_distributed.run", *flags, *program],
            env=environment,
            stderr=self.errors,
        )

    def pids(self) -> list[int]:
        """Return the ranks' processes; those of ranks that ended wait for the launcher."""
        pid = self.process.pid
        with contextlib.suppress(OSError):
            path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
            return [int(each) for each in path.read_text().split()]
        return []

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
        found = self.folder.glob("entry*")
        return {int(path.name[len("entry") :]): path.read_text() for path in found}

    def wait(self, seconds: float) -> list[str]:
        """Wait for the end; return the lines of the result."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            said = (self.folder / "errors").read_text()[-4000:]
            states = [pathlib.Path(f"/proc/{p}/stat").read_text()[:60] for p in self.pids()]
            raise AssertionError(f"it hangs at step {self.steps()}: {states}\n{said}") from None
        assert code == 0, (self.folder / "errors").read_text()[-4000:]
        return (self.folder / "result").read_text().splitlines()

    def end(self) -> None:
        """End whatever is left."""
        for pid in [*self.pids(), self.process.pid]:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.errors.close()


def strike(job: Launched, source: random.Random, faults: int, struck: list[str]) -> None:
    """Kill or stop ranks at random times, when all ranks have come back and gone some steps.

    At some faults two are struck, the second one while the others recover. It is the same rank, or
    one that is no neighbour of it, as shards of a rank and its neighbour cannot be lost together.
    """
    at, last = 0, (faults + 1) * STEPS_PER_FAULT - 1
    for _ in range(faults):
        at = min(at + source.randrange(1, STEPS_PER_FAULT), last)
        while job.steps() < at and job.process.poll() is None:
            time.sleep(0.002)
        rank = source.randrange(RANKS)
        ranks = [(rank, 0.03)]
        if source.random() < 0.25:
            ranks.append((source.choice([rank, (rank + 2) % RANKS]), 2.0))
        for each, delay in ranks:
            time.sleep(source.uniform(0, delay))
            which = source.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP])
            entries = job.entries()
            while not job.strike(each, which) and job.process.poll() is None:
                time.sleep(0.002)  # it is being started again
            struck.append(which.name)
        while job.process.poll() is None:
            now = job.entries()
            if len(now) == RANKS and all(now[r] != entries.get(r) for r in now):
                break
            time.sleep(0.002)
        at = job.steps()
    (job.folder / "struck").touch()


def train(folder: pathlib.Path, mode: str, faults: int, source: random.Random | None) -> list[str]:
    """Run the training, with faults if there is a source of them; return its result's lines."""
    folder.mkdir()
    steps = (faults + 1) * STEPS_PER_FAULT
    struck: list[str] = []
    job = Launched(folder, steps, mode, 3 * faults)
    try:
        if source is not None:
            thread = threading.Thread(target=strike, args=(job, source, faults, struck))
            thread.start()
        else:
            (folder / "struck").touch()
        result = job.wait(LONG + (LONG / 4) * faults)
        if source is not None:
            thread.join()
            left = [name for name in job.shared if os.path.exists(f"/dev/shm/{name}")]
            assert not left, "what a killed rank had in shared memory is there"
            print(f"{mode}: {struck.count('SIGKILL')} kills, {struck.count('SIGSTOP')} stops")
        return result
    finally:
        job.end()


@pytest.mark.parametrize("mode", ["replicated", "sharded", "fully sharded"])
def test_training_survives(rounds, mode: str, tmp_path: pathlib.Path) -> None:
    faults = min(MOST_FAULTS, max(3, int(rounds.seconds)))
    whole = train(tmp_path / "whole", mode, faults, None)
    counts = json.loads(whole[1])
    assert sum(counts) == (faults + 1) * STEPS_PER_FAULT * 12
    for source in rounds:
        found = train(tmp_path / f"round{rounds.number}", mode, faults, source)
        assert found[1] == whole[1]  # of each sample, how often it was used
        assert found[2] == whole[2] == str(RANKS)
        assert found[0] == whole[0]  # the bits of the weights
        assert abs(int(found[3]) - int(whole[3])) < 8  # descriptors
