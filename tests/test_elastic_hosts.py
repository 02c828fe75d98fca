"""The launcher on several hosts with --elastic: ranks and whole hosts that go, and come back."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from hosts import Network, network_of_hosts
from providers import skip_without_ucx

PROGRAM = pathlib.Path(__file__).parent / "attack" / "elastic_training.py"
HOSTS, EACH, STEPS = 3, 2, 60
SIZE = HOSTS * EACH
ENVIRONMENT = {
    "PLAIT_NUM_THREADS": "1",
    "PLAIT_STOPPED_TIMEOUT": "1",
    "UCX_TLS": "tcp,self",  # the hosts are of one machine, and would share its memory
    "PLAIT_JOB_SECRET": "of the launchers",
    "TRAINING_TIMEOUT": "300",
}
PATIENCE = 400.0  # seconds for what happens on a machine at work


class Launchers:
    """A training with one launcher on each host."""

    def __init__(self, network: Network, folder: pathlib.Path, *flags: str, **env: str) -> None:
        self._network, self._folder, self._flags = network, folder, flags
        # a launcher that is killed leaves its folder
        self._environment = {**ENVIRONMENT, "TMPDIR": str(folder), **env}
        self.errors = (folder / "errors").open("w+")
        self.processes = {host: self.start(host) for host in range(HOSTS)}

    def start(self, host: int) -> subprocess.Popen[str]:
        """Start the launcher of a host, at first or again."""
        command = [sys.executable, "-m", "plait_distributed.run", "-n", str(EACH), "--elastic"]
        command += ["--nnodes", str(HOSTS), "--node-rank", str(host), "--master-addr", "host0"]
        command += [*self._flags, str(PROGRAM), str(self._folder), str(STEPS), "0.03", "replicated"]
        return self._network.start(host, command, self._environment, stderr=self.errors)

    def ranks(self) -> dict[int, int]:
        """Return the processes of ranks that have begun to train, by rank."""
        return {rank: int(text.split()[0]) for rank, text in self.entries().items()}

    def entries(self) -> dict[int, str]:
        """Return what each rank wrote when it last began to train."""
        result = self._folder.glob("entry*")
        texts = {int(path.name[len("entry") :]): path.read_text() for path in result}
        return {rank: text for rank, text in texts.items() if text}  # '' is being written

    def steps(self) -> int:
        """Return how far the training is."""
        texts = [path.read_text() for path in self._folder.glob("steps*")]
        return max([int(text) for text in texts if text.strip()], default=0)

    def said(self) -> str:
        """Return what launchers and ranks wrote."""
        return (self._folder / "errors").read_text()

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, (self.steps(), self.said()[-6000:])
            time.sleep(0.02)

    def until_all_began_again(self, before: dict[int, str], ranks: int = SIZE) -> None:
        """Wait until as many ranks have begun to train since."""
        self.until(lambda: sum(before.get(r) != e for r, e in self.entries().items()) >= ranks)

    def codes(self) -> list[int]:
        """Let the training end; return the launchers' exit codes."""
        (self._folder / "struck").touch()
        results = []
        for process in self.processes.values():
            try:
                results.append(process.wait(PATIENCE))
            except subprocess.TimeoutExpired:
                raise AssertionError((self.steps(), self.said()[-6000:])) from None
        return results

    def check(self, size: int) -> None:
        """Check that each sample was used as often as it is wanted, and who was there."""
        _, counts, result, _ = (self._folder / "result").read_text().splitlines()
        assert set(json.loads(counts)) == {STEPS * 12 // 48}
        assert int(result) == size
        assert not (self._folder / "fell_back").exists()

    def end(self) -> None:
        """End whatever is left."""
        for process in self.processes.values():
            process.kill()
            process.wait()
        self.errors.close()


@pytest.fixture(name="network", scope="module")
def network_with_ucx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    skip_without_ucx()
    with network_of_hosts(HOSTS, tmp_path_factory.mktemp("network")) as network:
        yield network


@contextlib.contextmanager
def training(network: Network, folder: pathlib.Path, *flags: str, **env: str) -> Iterator[Any]:
    """Start a training, and wait for its first steps."""
    job = Launchers(network, folder, *flags, **env)
    try:
        job.until(lambda: job.steps() > 4)
        yield job
    finally:
        job.end()


def test_ranks_are_started_again(network: Network, tmp_path: pathlib.Path) -> None:
    with training(network, tmp_path, "--max-restarts", "4") as job:
        for rank, number in ((3, signal.SIGKILL), (0, signal.SIGKILL), (4, signal.SIGSTOP)):
            before = job.entries()
            os.kill(job.ranks()[rank], number)
            job.until_all_began_again(before)
        assert job.codes() == [0] * HOSTS, job.said()
        job.check(SIZE)
        assert job.said().count("it is started again") == 3


def has_ended(pid: int) -> bool:
    """Return whether a process is gone, or nobody has read its exit status yet."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


@pytest.mark.parametrize("host", [0, 2])
def test_a_host_comes_back(network: Network, tmp_path: pathlib.Path, host: int) -> None:
    with training(network, tmp_path, "--max-restarts", "4") as job:
        before, ranks = job.entries(), job.ranks()
        job.processes[host].kill()  # its ranks end with it
        job.processes[host].wait()
        job.until(lambda: all(has_ended(ranks[EACH * host + i]) for i in range(EACH)))
        job.processes[host] = job.start(host)
        job.until_all_began_again(before)
        before = job.entries()
        os.kill(job.ranks()[2 * host + 1], signal.SIGKILL)
        job.until_all_began_again(before)
        assert job.codes() == [0] * HOSTS, job.said()
        job.check(SIZE)


@pytest.mark.parametrize(("way", "host"), [("dies", 0), ("is cut off", 2)])
def test_a_host_does_not_come_back(
    network: Network, tmp_path: pathlib.Path, way: str, host: int
) -> None:
    with training(network, tmp_path, TRAINING_TIMEOUT="30") as job:
        before = job.entries()
        if way == "is cut off":
            network.cut_off(host, plugged=True)
        else:
            job.processes[host].kill()
        try:
            job.until_all_began_again(before, SIZE - EACH)
            codes = job.codes()
        finally:
            if way == "is cut off":
                network.join_again(host)
        assert [code != 0 for code in codes] == [each == host for each in range(HOSTS)], job.said()
        job.check(SIZE - EACH)


def test_a_host_is_cut_off_for_a_while(network: Network, tmp_path: pathlib.Path) -> None:
    with training(network, tmp_path, "--max-restarts", "4") as job:
        before = job.entries()
        network.cut_off(1, plugged=True)
        time.sleep(8.0)
        network.join_again(1)
        job.until_all_began_again(before)
        assert job.codes() == [0] * HOSTS, job.said()
        job.check(SIZE)
        assert "was lost" not in job.said()


def test_what_does_not_fit(network: Network, tmp_path: pathlib.Path) -> None:
    with training(network, tmp_path) as job:
        job.processes[2].kill()
        job.processes[2].wait()
        command = [sys.executable, "-m", "plait_distributed.run", "-n", "3", "--elastic"]
        command += ["--nnodes", str(HOSTS), "--master-addr", "host0"]
        for node, expected in (
            ("-1", "3 processes do not fit the place of host 2, which had 2"),
            ("1", "no host of it whose place is wanted is lost"),
        ):
            arguments = [*command, "--node-rank", node, str(PROGRAM)]
            late = network.start(2, arguments, ENVIRONMENT, stderr=subprocess.PIPE)
            _, text = late.communicate(timeout=PATIENCE)
            assert late.returncode != 0 and expected in text, text
