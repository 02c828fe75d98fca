"""Programs on several hosts: network namespaces with names and addresses of their own."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from hosts import Network, network_of_hosts
from providers import find_mpiexec

PROGRAM = str(pathlib.Path(__file__).with_name("several_hosts_program.py"))
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "PLAIT_NUM_THREADS": "1"}


def start_by_mpi(network: Network, each: int, task: str) -> subprocess.Popen[str]:
    """Start the program in `each` processes of every host."""
    mpiexec = find_mpiexec()
    arguments = [sys.executable, PROGRAM, task]
    command, environment = network.mpiexec(mpiexec, each, arguments, "--with-ft", "ulfm")
    return network.start(
        0,
        command,
        {**environment, **ENVIRONMENT},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def lines_of(process: subprocess.Popen[str], timeout: float = 300.0) -> list[str]:
    """Return what the ranks printed, in order."""
    try:
        text, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    lines = sorted(line for line in text.splitlines() if line.startswith("rank "))
    assert lines, text
    return lines


def check_training(network: Network, each: int) -> None:
    size = 2 * each
    lines = lines_of(start_by_mpi(network, each, "train"))
    total = size * (size - 1) // 2
    assert lines == [
        f"rank {rank} of {size} on host{rank // each} over mpi: {total} True"
        for rank in range(size)
    ]


@pytest.mark.parametrize("each", [1, 2, 4])
def test_training_over_mpi(tmp_path: pathlib.Path, each: int) -> None:
    with network_of_hosts(2, tmp_path) as network:
        check_training(network, each)


@pytest.mark.parametrize("shape", [("rate", "1gbit"), ("delay", "1ms", "loss", "0.1%")], ids=str)
def test_training_over_a_slow_network(tmp_path: pathlib.Path, shape: tuple[str, ...]) -> None:
    with network_of_hosts(2, tmp_path, shape) as network:
        check_training(network, 1)


def test_different_calls_are_told_on_all_hosts(tmp_path: pathlib.Path) -> None:
    with network_of_hosts(2, tmp_path) as network:
        lines = lines_of(start_by_mpi(network, 1, "differ"))
    for line in lines:
        assert "MismatchError: the same call on all ranks is required; " in line
        assert "rank 0 called broadcast(float32[5], src=0) #" in line
        assert "rank 1 called all_reduce(float32[5], sum) #" in line
    assert len(lines) == 2


def test_a_host_that_is_cut_off_is_named(tmp_path: pathlib.Path) -> None:
    with network_of_hosts(2, tmp_path) as network:
        process = start_by_mpi(network, 1, "cut")
        assert process.stdout is not None
        while "begun" not in process.stdout.readline():
            assert process.poll() is None
        cut = threading.Timer(1.0, network.cut_off, (1,))
        cut.start()
        results: list[str] = []
        for line in process.stdout:
            if line.startswith("rank 0"):
                results.append(line)
                break
        process.kill()
        process.wait()
        process.stdout.close()  # others may have it open until their host is gone
    assert results, "rank 0 told nothing"
    assert "RankLost: rank 1 (host host1, pid " in results[0]
    assert "last collective all_reduce(float32[70000], " in results[0]
