"""Collectives of processes on several hosts, of which some share a host: the bits of shared memory,
bytes between hosts, and ranks that are lost."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from hosts import Network, network_of_hosts
from providers import find_mpiexec, skip_without_ucx

PROGRAM = str(pathlib.Path(__file__).with_name("collectives_over_hosts_program.py"))
ENVIRONMENT = {
    "PLAIT_JOB_SECRET": "of these tests",
    "UCX_TLS": "tcp,self",  # the hosts are of one machine, and would share its memory
    "PLAIT_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
# the host of each rank
LAYOUTS = {
    "2 x 2": (0, 0, 1, 1),
    "2 x 4": (0, 0, 0, 0, 1, 1, 1, 1),
    "1 + 3": (0, 1, 1, 1),
    "2 + 1 + 2": (0, 0, 1, 2, 2),
    "interleaved": (0, 1, 0, 1),
}


@pytest.fixture(name="network")
def three_hosts(tmp_path: pathlib.Path) -> Iterator[Network]:
    (tmp_path / "network").mkdir()
    with network_of_hosts(3, tmp_path / "network") as network:
        yield network


class Job:
    """Processes of the program; what they tell is in a folder."""

    def __init__(self, folder: pathlib.Path, provider: str, size: int) -> None:
        self.folder, self.provider, self.size = folder, provider, size
        self.processes: list[subprocess.Popen[str]] = []

    def told(self, ranks: Sequence[int] | None = None, seconds: float = 200.0) -> list[Any]:
        """Return what ranks told, all if none are given."""
        result, deadline = [], time.monotonic() + seconds
        for rank in range(self.size) if ranks is None else ranks:
            path = self.folder / f"{self.provider}{rank}"
            while not path.exists():
                assert time.monotonic() < deadline, self.errors()
                # mpiexec has ended all ranks when it ends
                ended = self.provider == "mpi" and self.processes[0].poll() is not None
                assert not ended or path.exists(), self.errors()
                assert ranks or all(not process.poll() for process in self.processes), self.errors()
                time.sleep(0.02)
            result.append(json.loads(path.read_text()))
        return result

    def errors(self) -> str:
        self.end()
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("stderr*")))

    def wait(self) -> None:
        """Wait until all have ended as they should."""
        for process in self.processes:
            assert process.wait(200) == 0, self.errors()

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


def over_ucx(network: Network, folder: pathlib.Path, task: str, hosts: Sequence[int]) -> Job:
    skip_without_ucx()
    job = Job(folder, "ucx", len(hosts))
    where = f"tcp://host{hosts[0]}:29400"
    for rank, host in enumerate(hosts):
        environment = {**ENVIRONMENT, "RANK": str(rank), "WORLD_SIZE": str(len(hosts))}
        command = [sys.executable, PROGRAM, task, "ucx", where, str(folder)]
        with open(folder / f"stderr{rank}", "w", encoding="utf-8") as errors:
            job.processes.append(network.start(host, command, environment, stderr=errors))
    return job


def over_mpi(network: Network, folder: pathlib.Path, task: str, each: int, *options: str) -> Job:
    mpiexec = find_mpiexec()
    two = Network(network.hosts[:2], "", folder)
    job = Job(folder, "mpi", 2 * each)
    arguments = [sys.executable, PROGRAM, task, "mpi", "mpi:all", str(folder)]
    command, environment = two.mpiexec(mpiexec, each, arguments, "--with-ft", "ulfm", *options)
    with open(folder / "stderr", "w", encoding="utf-8") as errors:
        job.processes.append(
            two.start(0, command, {**environment, **ENVIRONMENT}, stdout=errors, stderr=errors)
        )
    return job


@pytest.fixture(name="expected", scope="module")
def told_on_one_host(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], list[Any]]:
    """What as many ranks tell that use shared memory."""

    @functools.cache
    def told(size: int) -> list[Any]:
        folder = tmp_path_factory.mktemp("shared")
        job = Job(folder, "shared_memory", size)
        where = f"shm:{folder.name}-{os.getpid()}"
        command = [sys.executable, PROGRAM, "values", "shared_memory", where, str(folder)]
        for rank in range(size):
            own = {"RANK": str(rank), "WORLD_SIZE": str(size)}
            environment = {**os.environ, **ENVIRONMENT, **own}
            with open(folder / f"stderr{rank}", "w", encoding="utf-8") as errors:
                job.processes.append(
                    subprocess.Popen(command, env=environment, stderr=errors, text=True)
                )
        result = job.told()
        job.wait()
        return result

    return told


def check_values(job: Job, hosts: Sequence[int], expected: Sequence[Any]) -> None:
    for rank, (result, same) in enumerate(zip(job.told(), expected, strict=True)):
        assert result.pop("host") == f"host{hosts[rank]}"
        assert len(result) > 100
        assert [name for name in result if result[name] != same[name]] == []
    job.wait()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bits_over_ucx(
    network: Network, tmp_path: pathlib.Path, expected: Any, layout: str
) -> None:
    hosts = LAYOUTS[layout]
    check_values(over_ucx(network, tmp_path, "values", hosts), hosts, expected(len(hosts)))


@pytest.mark.parametrize("way", ["slot", "node"])
def test_bits_over_mpi(network: Network, tmp_path: pathlib.Path, expected: Any, way: str) -> None:
    hosts = LAYOUTS["2 x 2" if way == "slot" else "interleaved"]
    job = over_mpi(network, tmp_path, "values", 2, "--map-by", way)
    check_values(job, hosts, expected(4))


@pytest.mark.parametrize("each", [2, 4])
def test_bytes_between_hosts(network: Network, tmp_path: pathlib.Path, each: int) -> None:
    """One copy of the elements goes each way, not one for each rank."""
    job = over_ucx(network, tmp_path, "bytes", (0,) * each + (1,) * each)
    message = job.told()
    job.wait()
    for host in range(2):
        result = message[host * each]
        once = result["bytes"]
        # an exchange of slices sends `each` times that, and headers take some per cent
        assert 0.9 * once < result["all_reduce"] < 1.15 * once, result
        # an exchange sends what `each` ranks have to `each` ranks
        assert 0.4 * once < result["all_gather"] < 0.6 * once, result
        assert result["reduce_scatter"] < 1.15 * once, result
        # the parts of `each` ranks for `each` ranks cross once
        assert result["all_to_all"] < 1.15 * once * each / 2, result
    for sender, kind in ((1, "gather"), (0, "scatter")):
        assert message[sender * each][kind] < 0.6 * once, message
        assert message[(1 - sender) * each][kind] < 0.1 * once, message
    assert 0.9 * once < message[0]["broadcast"] < 1.15 * once, message[0]
    assert message[each]["broadcast"] < 0.1 * once, message[each]


@pytest.mark.parametrize("how", ["kill", "stop"])
@pytest.mark.parametrize("provider", ["ucx", "mpi"])
def test_a_rank_is_lost(
    network: Network, tmp_path: pathlib.Path, provider: str, how: str, left_in_shared_memory: Any
) -> None:
    if provider == "ucx":
        job = over_ucx(network, tmp_path, how, (0, 0, 1, 1))
    else:
        # Open MPI over TCP locks itself more often without it (docs/design/0041)
        job = over_mpi(network, tmp_path, how, 2, "--mca", "btl_tcp_flags", "1")
    try:
        for message in job.told((0, 2, 3)):
            # A rank whose Open MPI has locked itself hears of no other rank: it says so instead.
            if provider == "mpi" and "has not returned from MPI_" in message["text"]:
                continue
            assert "rank 1 (pid " in message["text"] and "died" in message["text"], message
    finally:
        job.end()
        lost = tmp_path / "pid1"
        subprocess.run(["kill", "-9", lost.read_text()], check=False, capture_output=True)
    if provider == "ucx":
        assert not left_in_shared_memory()
