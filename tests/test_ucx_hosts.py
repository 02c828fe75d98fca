"""plait-ucx on several hosts: values, the launcher, and faults, each of which all ranks notice."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from hosts import Network, network_of_hosts
from providers import skip_without_ucx

# seconds; PLAIT_TEST_SOON=5 for what the guide says of machines that are not busy
SOON = float(os.environ.get("PLAIT_TEST_SOON", "100"))
PROGRAM = """
import json, os, sys, time
import plait_core as pc, plait_distributed as dist
pc.set_num_threads(1)
folder, way = sys.argv[1:3]
dist.init_process_group(timeout=300)
rank, size = dist.get_rank(), dist.get_world_size()
x = pc.full((1000,), float(rank + 1))
dist.all_reduce(x)
big = pc.full((300_000,), float(rank + 1))
dist.all_reduce(big)
group = dist.new_group(range(0, size, 2))
even = pc.full((3,), float(rank))
if rank % 2 == 0:
    dist.all_reduce(even, group=group)
objects = [None] * size
dist.all_gather_object(objects, {"rank": rank, "host": os.uname().nodename})
told = {"sum": x[0].item(), "big": big[-1].item(), "even": even[0].item(), "objects": objects,
        "provider": dist.get_default_group().provider, "pid": os.getpid()}
def tell(name):
    with open(f"{folder}/{name}{rank}.part", "w") as file:
        json.dump(told, file)
    os.rename(f"{folder}/{name}{rank}.part", f"{folder}/{name}{rank}")
tell("ready")
if way == "ends":
    dist.barrier()
    sys.exit()
if way == "raises" and rank == size - 1:
    while not os.path.exists(f"{folder}/fault"):
        time.sleep(0.01)
    raise KeyError("a fault")
try:
    while True:
        dist.all_reduce(x)
except dist.DistBackendError as error:
    told = {"kind": type(error).__name__, "text": str(error), "time": time.time()}
    tell("error")
"""


@pytest.fixture(name="network")
def two_hosts(tmp_path: pathlib.Path) -> Iterator[Network]:
    skip_without_ucx()
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "network").mkdir()
    with network_of_hosts(2, tmp_path / "network", ("rate", "1gbit")) as network:
        yield network


ENVIRONMENT = {
    "PLAIT_JOB_SECRET": "of these tests",
    "MASTER_ADDR": "host0",
    "MASTER_PORT": "29400",
    "UCX_TLS": "tcp,self",  # the hosts are of one machine, and would share its memory
    "PLAIT_NUM_THREADS": "1",
}


class Ranks:
    """Processes on two hosts, without a launcher."""

    def __init__(self, network: Network, folder: pathlib.Path, size: int, way: str) -> None:
        self.folder, self.size, self.way = folder, size, way
        self.processes: list[subprocess.Popen[str]] = []
        each = size // 2
        for rank in range(size):
            environment = {
                "RANK": str(rank),
                "WORLD_SIZE": str(size),
                "LOCAL_RANK": str(rank % each),
                "LOCAL_WORLD_SIZE": str(each),
            }
            command = [sys.executable, str(folder / "program.py"), str(folder), way]
            with open(folder / f"stderr{rank}", "w", encoding="utf-8") as errors:
                self.processes.append(
                    network.start(
                        rank // each, command, {**ENVIRONMENT, **environment}, stderr=errors
                    )
                )

    def all_told(self, name: str, ranks: Any, seconds: float = 200.0) -> list[Any]:
        deadline = time.monotonic() + seconds
        paths = [self.folder / f"{name}{rank}" for rank in ranks]
        while not all(path.exists() for path in paths):
            assert time.monotonic() < deadline, self.errors()
            time.sleep(0.02)
        return [json.loads(path.read_text()) for path in paths]

    def errors(self) -> str:
        self.end()
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("stderr*")))

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()


@pytest.mark.parametrize("size", [2, 4, 8])
def test_values(network: Network, tmp_path: pathlib.Path, size: int) -> None:
    ranks = Ranks(network, tmp_path, size, "ends")
    total = size * (size + 1) / 2
    for message in ranks.all_told("ready", range(size)):
        assert (message["sum"], message["big"], message["provider"]) == (total, total, "ucx")
        assert message["objects"] == [
            {"rank": rank, "host": f"host{rank // (size // 2)}"} for rank in range(size)
        ]
    for process in ranks.processes:
        assert process.wait(200) == 0, ranks.errors()


@pytest.mark.parametrize("way", ["killed", "stopped", "raises", "cut off"])
def test_a_fault_is_named_on_all_others(
    network: Network, tmp_path: pathlib.Path, way: str, left_in_shared_memory: Any
) -> None:
    size = 4
    ranks = Ranks(network, tmp_path, size, "raises" if way == "raises" else "runs")
    message = ranks.all_told("ready", range(size))
    began = time.time()
    lost: Any = {size - 1}
    if way == "killed":
        os.kill(message[-1]["pid"], signal.SIGKILL)
    elif way == "stopped":
        os.kill(message[-1]["pid"], signal.SIGSTOP)
    elif way == "raises":
        (tmp_path / "fault").touch()
    else:
        network.cut_off(1)
        lost = {2, 3}
    try:
        rest = range(size if way == "cut off" else size - 1)
        for rank, error in zip(rest, ranks.all_told("error", rest), strict=True):
            assert error["kind"] == "RankLost", error
            others = {0, 1} if way == "cut off" and rank in lost else lost
            assert any(f"rank {other} (host host" in error["text"] for other in others), error
            assert "all_reduce(float32[1000], sum) #" in error["text"]
            assert "at program.py:" in error["text"]
            assert error["time"] - began < SOON, error
    finally:
        ranks.end()
    assert not left_in_shared_memory()


@pytest.mark.parametrize(("way", "code"), [("ends", 0), ("raises", 1)])
def test_launchers_of_two_hosts(
    network: Network, tmp_path: pathlib.Path, way: str, code: int
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the launchers\n")
    secret.chmod(0o600)
    (tmp_path / "fault").touch()
    environment = {k: v for k, v in ENVIRONMENT.items() if k.startswith(("UCX", "PLAIT_NUM"))}
    launchers = []
    for node in (1, 0):
        command = [sys.executable, "-m", "plait_distributed.run", "--nnodes", "2", "-n", "2"]
        command += ["--node-rank", str(node), "--master-addr", "host0"]
        command += ["--secret-file", str(secret), str(tmp_path / "program.py"), str(tmp_path), way]
        launchers.append(network.start(node, command, environment, stderr=subprocess.PIPE))
    for launcher in launchers:
        _, errors = launcher.communicate(timeout=300)
        assert launcher.returncode == code, errors
        assert ("on host host1, rank 3 (pid " in errors) == (way == "raises"), errors
        assert ("KeyError: 'a fault'" in errors) == (way == "raises"), errors


def test_a_wrong_secret(network: Network, tmp_path: pathlib.Path) -> None:
    ranks = []
    for rank, secret in enumerate(("one", "another")):
        environment = {**ENVIRONMENT, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1"}
        ranks.append(
            network.start(
                rank,
                [sys.executable, "-c", SHORT],
                {**environment, "PLAIT_JOB_SECRET": secret},
                stdout=subprocess.PIPE,
            )
        )
    results = [process.communicate(timeout=300)[0] for process in ranks]
    assert "CollectiveTimeout" in results[0] and "for rank 1 at tcp://host0:29400" in results[0]
    assert "is not a process of this job, or has another secret" in results[1]


SHORT = """
import os
import plait_distributed as dist
try:
    # rank 0 waits until the other one has come, on a busy machine too; that one ends at once
    dist.init_process_group(timeout=200 if int(os.environ["RANK"]) else 20)
except Exception as error:
    print(type(error).__name__, error)
"""
