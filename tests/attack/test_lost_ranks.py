"""Ranks killed and stopped at random in a training: no sample lost or doubled, the same weights."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from elastic_job import ENVIRONMENT, MOST_FAULTS, RANKS, STEPS_PER_FAULT, Job, train


class Launched(Job):
    """A job of one host under the launcher."""

    def __init__(self, folder: pathlib.Path, steps: int, mode: str, restarts: int) -> None:
        super().__init__(folder, steps, mode)
        flags = ["-n", str(RANKS), "--elastic", "--max-restarts", str(restarts)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "plait_distributed.run", *flags, *self.program],
            env={**os.environ, **ENVIRONMENT},
            stderr=self.errors,
        )

    def pids(self) -> list[int]:
        """Return the ranks' processes; those of ranks that ended wait for the launcher."""
        pid = self.process.pid
        with contextlib.suppress(OSError):
            path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
            return [int(each) for each in path.read_text().split()]
        return []

    def runs(self) -> bool:
        """Return whether it has not ended."""
        return self.process.poll() is None

    def wait_for_end(self, seconds: float) -> int:
        """Return the launcher's exit code."""
        return self.process.wait(seconds)

    def end(self) -> None:
        """End whatever is left."""
        super().end()
        self.process.kill()
        self.process.wait()


@pytest.mark.parametrize("mode", ["replicated", "sharded", "fully sharded"])
def test_training_survives(rounds, mode: str, tmp_path: pathlib.Path) -> None:
    faults = min(MOST_FAULTS, max(3, int(rounds.seconds)))
    whole = train(tmp_path / "whole", mode, faults, None, Launched)
    counts = json.loads(whole[1])
    assert sum(counts) == (faults + 1) * STEPS_PER_FAULT * 12
    for source in rounds:
        result = train(tmp_path / f"round{rounds.number}", mode, faults, source, Launched)
        assert result[1] == whole[1]  # of each sample, how often it was used
        assert result[2] == whole[2] == str(RANKS)
        assert result[0] == whole[0]  # the bits of the weights
        assert abs(int(result[3]) - int(whole[3])) < 8  # descriptors
