"""Hosts cut off at random beside kills and stops: one part goes on, no sample lost or doubled."""

from __future__ import annotations

import contextlib
import json
import pathlib
import random
import re
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from plait_distributed._peers import Watch, end_process, process_state

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from elastic_job import CUT, ENVIRONMENT, MOST_FAULTS, RANKS, SIGNALS, STEPS_PER_FAULT, Job, train
from hosts import Network, network_of_hosts
from providers import skip_without_ucx

LONGEST_CUT = 8.0  # seconds


class OnHosts(Job):
    """A job of several hosts, whose ranks are started again when they end."""

    faults = (*SIGNALS, CUT, CUT)

    def __init__(
        self,
        network: Network,
        folder: pathlib.Path,
        steps: int,
        mode: str,
        restarts: int,
        each: int,
        **env: str,
    ) -> None:
        super().__init__(folder, steps, mode)
        self._network = network
        self._each = each
        self.ranks = each * len(network.hosts)
        self._restarts = restarts
        self._watch = Watch()
        self._environment = {
            **ENVIRONMENT,
            "PLAIT_JOB_SECRET": secrets.token_hex(8),
            "PLAIT_ELASTIC_RESTARTS": str(restarts),
            "MASTER_ADDR": "host0",
            "MASTER_PORT": "29400",
            "WORLD_SIZE": str(self.ranks),
            "LOCAL_WORLD_SIZE": str(self._each),
            "UCX_TLS": "tcp,self",  # the hosts are of one machine, and would share its memory
            **env,
        }
        self.codes: dict[int, int] = {}
        self._running = {rank: self._start(rank) for rank in range(self.ranks)}
        self._ends = threading.Event()
        self._supervisor = threading.Thread(target=self._supervise)
        self._supervisor.start()

    def _start(self, rank: int) -> subprocess.Popen[str]:
        notes = self.folder / f"host{rank // self._each}"
        notes.mkdir(exist_ok=True)
        environment = {
            "RANK": str(rank),
            "LOCAL_RANK": str(rank % self._each),
            "PLAIT_ELASTIC_FOLDER": str(notes),
        }
        return self._network.start(
            rank // self._each,
            [sys.executable, *self.program],
            {**self._environment, **environment},
            stderr=self.errors,
        )

    def _supervise(self) -> None:
        """Do what launchers do on each host: start ranks again that fail, end those that stop."""
        while self._running and not self._ends.wait(0.01):
            for rank, process in list(self._running.items()):
                state, started = process_state(process.pid)
                if self._watch.look_at_state(process.pid, state) == "lost":
                    end_process(process.pid, started)
                code = process.poll()
                if code is None:
                    continue
                if code and self._restarts > 0 and 0 not in self.codes.values():
                    self._restarts -= 1
                    self._running[rank] = self._start(rank)
                else:
                    self.codes[rank] = code
                    del self._running[rank]

    def pids(self) -> list[int]:
        """Return the ranks' processes."""
        return [process.pid for process in list(self._running.values())]

    def runs(self) -> bool:
        """Return whether it has not ended."""
        return self._supervisor.is_alive()

    def wait_for_end(self, seconds: float) -> int:
        """Return an exit code of the ranks that is not 0, or 0."""
        self._supervisor.join(seconds)
        if self.runs():
            raise subprocess.TimeoutExpired("the ranks", seconds)
        return max(self.codes.values(), key=abs)

    def no_neighbour(self, rank: int) -> int:
        """Return the rank itself on two hosts: copies go to the other one, and the last rank is on
        this host, which would be lost as a whole.
        """
        return rank if len(self._network.hosts) == 2 else super().no_neighbour(rank)

    def cut(self, source: random.Random) -> None:
        """Cut a host off for some seconds."""
        host = source.randrange(len(self._network.hosts))
        self._network.cut_off(host, plugged=source.random() < 0.5)
        time.sleep(source.uniform(0.1, LONGEST_CUT))
        self._network.join_again(host)

    def end(self) -> None:
        """End whatever is left."""
        self._ends.set()
        self._supervisor.join()
        super().end()
        for process in self._running.values():
            process.wait()


@contextlib.contextmanager
def network_of(hosts: int, folder: pathlib.Path) -> Iterator[Network]:
    """Make hosts with UCX between them, or skip the test."""
    skip_without_ucx()
    (folder / "network").mkdir()
    with network_of_hosts(hosts, folder / "network") as network:
        yield network


@pytest.mark.parametrize("mode", ["replicated", "fully sharded"])
@pytest.mark.parametrize(("hosts", "each"), [(2, 2), (4, 1), (4, 2)])
def test_training_survives_partitions(
    rounds: Any, hosts: int, each: int, mode: str, tmp_path: pathlib.Path
) -> None:
    if rounds.seconds < 4 and hosts > 2:
        pytest.skip("in the long form")
    faults = min(MOST_FAULTS, max(2, int(rounds.seconds / 4)))

    def start(folder: pathlib.Path, steps: int, mode: str, restarts: int) -> Job:
        return OnHosts(network, folder, steps, mode, restarts, each)

    with network_of(hosts, tmp_path) as network:
        whole = train(tmp_path / "whole", mode, faults, None, start)
        assert sum(json.loads(whole[1])) == (faults + 1) * STEPS_PER_FAULT * 12
        for source in rounds:
            result = train(tmp_path / f"round{rounds.number}", mode, faults, source, start)
            # the weights' bits, how often each sample was used, ranks
            assert result[:3] == whole[:3]


@pytest.mark.parametrize("mode", ["replicated", "fully sharded"])
@pytest.mark.parametrize(
    ("hosts", "cut", "ended"),
    [(2, 0, {2, 3}), (2, 1, {2, 3}), (4, 0, {0}), (4, 3, {3})],
    ids=["half with rank 0", "half without it", "most, the first host not", "most of the hosts"],
)
def test_only_one_part_continues(
    hosts: int, cut: int, ended: set[int], mode: str, rounds: Any, tmp_path: pathlib.Path
) -> None:
    # each takes 35 seconds, of which the other part waits 30
    if rounds.seconds < 4 and (mode == "replicated" or hosts == 2):
        pytest.skip("in the long form")
    folder = tmp_path / "job"
    folder.mkdir()
    with network_of(hosts, tmp_path) as network:
        job = OnHosts(
            network, folder, 2 * STEPS_PER_FAULT, mode, 0, RANKS // hosts, TRAINING_TIMEOUT="20"
        )
        try:
            while job.steps() < 5:
                time.sleep(0.01)
            network.cut_off(cut, plugged=True)
            (folder / "struck").touch()
            job.wait_for_end(120)
            text = (folder / "errors").read_text()
        finally:
            job.end()
    assert job.codes == {rank: int(rank in ended) for rank in range(RANKS)}, text
    _, counts, size, _ = (folder / "result").read_text().splitlines()
    assert set(json.loads(counts)) == {2 * STEPS_PER_FAULT * 12 // 48}
    assert int(size) == RANKS - len(ended)
    messages = [line for line in text.splitlines() if "MeetingFailed: elastic" in line]
    assert len(messages) == len(ended)
    for line in messages:
        assert re.search(r"lost rank \d \(host host\d, pid \d+\)", line), line
