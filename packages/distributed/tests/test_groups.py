"""Groups of some processes, ranks in them, and how processes meet."""

from __future__ import annotations

import datetime
import pathlib
import re
import secrets
import socket
import sys
import time
from typing import Any

import pytest

import plait_core as pc
import plait_distributed as dist
from plait_distributed._meeting import find_meeting


def test_groups_of_some_processes(ranks: Any) -> None:
    def work(rank: int) -> Any:
        odd = dist.new_group([1, 3])
        even = dist.new_group([2, 0], timeout=datetime.timedelta(seconds=9))
        own_value = odd if rank % 2 else even
        other = even if rank % 2 else odd
        assert other == dist.GroupMember.NON_GROUP_MEMBER
        x = pc.full((1,), float(rank))
        dist.all_reduce(x, group=own_value)
        y = pc.full((1,), float(rank))
        dist.broadcast(y, 2 + rank % 2, group=own_value)
        z = pc.full((1,), float(rank))
        dist.broadcast(z, group=own_value, group_src=0)
        with pytest.warns(UserWarning, match="not a member of the group"):
            dist.all_reduce(x, group=other)
        assert dist.get_rank(other) == -1 and dist.get_world_size(other) == -1
        assert dist.get_process_group_ranks(own_value) == [rank % 2, 2 + rank % 2]
        assert dist.get_group_rank(own_value, rank) == dist.get_rank(own_value) == rank // 2
        assert dist.get_global_rank(own_value, rank // 2) == rank
        with pytest.raises(ValueError, match="must be a member"):
            dist.get_group_rank(own_value, 1 - rank % 2)
        own, groups = dist.new_subgroups(2)
        assert own is groups[rank // 2] and own.ranks == (rank - rank % 2, rank - rank % 2 + 1)
        if rank < 2:
            local = dist.new_group([0, 1], use_local_synchronization=True)
            dist.barrier(local)
        dist.destroy_process_group(own_value)
        with pytest.raises(ValueError, match="destroyed"):
            dist.barrier(own_value)
        dist.barrier()
        dist.destroy_process_group()
        return x.item(), y.item(), z.item()

    assert ranks(4, work) == [(2.0, 2.0, 0.0), (4.0, 3.0, 1.0), (2.0, 2.0, 0.0), (4.0, 3.0, 1.0)]


def test_groups_that_processes_disagree_about(outcomes: Any) -> None:
    result = outcomes(2, lambda rank: dist.new_group([rank]))
    for error in result:
        assert isinstance(error, dist.MismatchError)
        assert re.search(r"rank 0 asked for (\w+) \[0\], rank 1 asked for \1 \[1\]", str(error))


def test_a_group_is_made_again(ranks: Any) -> None:
    where = f"shm:{secrets.token_hex(8)}"

    def work(rank: int) -> Any:
        for _ in range(3):
            dist.destroy_process_group()
            dist.init_process_group(init_method=where, rank=rank, world_size=2, timeout=100)
            dist.barrier(dist.new_group([0, 1]))
        return dist.is_initialized()

    assert ranks(2, work) == [True, True]


def test_without_a_group() -> None:
    assert not dist.is_initialized() and dist.group.WORLD is None
    for call in (dist.get_rank, dist.get_world_size, dist.barrier, dist.destroy_process_group):
        with pytest.raises(ValueError, match="there is no process group"):
            call()


def test_a_store_as_meeting_place(tmp_path: Any, ranks: Any) -> None:
    path = str(tmp_path / "store")

    def work(rank: int) -> Any:
        dist.destroy_process_group()
        store = dist.FileStore(path, 2, timeout=100)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
        return dist.get_backend()

    assert ranks(2, work) == ["gloo", "gloo"]


# ---- where processes meet


LAUNCHED = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}


def test_the_launchers_variables() -> None:
    result = find_meeting(None, -1, -1, LAUNCHED)
    assert (result.rank, result.size) == (1, 2) and result.at("shared_memory").startswith("shm:")
    assert find_meeting("env://", 0, 3, LAUNCHED).size == 3
    # a host's names are one place; jobs, ports and secrets are others
    assert find_meeting(None, -1, -1, {**LAUNCHED, "MASTER_ADDR": "127.0.0.1"}).name == result.name
    assert (
        find_meeting(None, -1, -1, {**LAUNCHED, "MASTER_ADDR": socket.gethostname()}).name
        == result.name
    )
    for name, value in {
        "MASTER_PORT": "29501",
        "PLAIT_JOB_SECRET": "x",
        "TORCHELASTIC_RUN_ID": "2",
    }.items():
        assert find_meeting(None, -1, -1, {**LAUNCHED, name: value}).name != result.name
    assert find_meeting("tcp://localhost:29500", 1, 2, {}) == result
    slurm = {"SLURM_PROCID": "2", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "77", "SLURM_NNODES": "1"}
    assert (find_meeting(None, -1, -1, slurm).rank, find_meeting(None, -1, -1, slurm).size) == (
        2,
        4,
    )
    assert find_meeting("file:///tmp/x?rank=1&world_size=2", -1, -1, {}).rank == 1
    assert find_meeting("shm:name", 0, 1, {}).at("shared_memory") == "shm:name"


@pytest.mark.parametrize(
    ("method", "env", "text"),
    [
        ("env://", {}, r"`rank` is not given, .* RANK, SLURM_PROCID"),
        ("env://", {"RANK": "0", "WORLD_SIZE": "1"}, "variable MASTER_ADDR is not set"),
        ("env://", {**LAUNCHED, "RANK": "two"}, "RANK must be a number, got 'two'"),
        ("env://", {**LAUNCHED, "RANK": "2"}, r"`rank` must be in \[0, 1\], got 2"),
        ("tcp://localhost", LAUNCHED, "must be tcp://HOST:PORT"),
        ("file:///no/such/folder/x", LAUNCHED, "a folder that exists"),
        ("http://x", LAUNCHED, "must begin with env://"),
    ],
)
def test_what_is_missing_is_named(method: str, env: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        find_meeting(method, -1, -1, env)


@pytest.mark.parametrize(
    "more",
    [
        {"MASTER_ADDR": "192.0.2.1"},
        {"LOCAL_WORLD_SIZE": "1"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE": "1", "OMPI_COMM_WORLD_SIZE": "2"},
        {"GROUP_WORLD_SIZE": "2"},
        {"SLURM_NNODES": "2"},
    ],
)
def test_several_hosts_need_another_provider(more: dict[str, str]) -> None:
    result = find_meeting(None, -1, -1, {**LAUNCHED, **more})
    with pytest.raises(NotImplementedError, match=r"several hosts need a provider .* MPI or UCX"):
        result.at("shared_memory")
    assert result.at("mpi") == f"mpi:{result.name}"
    host = more.get("MASTER_ADDR", "localhost")
    assert result.at("ucx") == f"tcp://{host}:29500/{result.name}"


def test_slurm_on_several_hosts_names_the_first() -> None:
    slurm = {"SLURM_PROCID": "2", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "77", "SLURM_NNODES": "2"}
    slurm |= {"SLURM_NODELIST": "node[03-04]", "SLURM_LOCALID": "0", "SLURM_NODEID": "1"}
    result = find_meeting(None, -1, -1, slurm)
    assert result.at("ucx") == f"tcp://node03:20077/{result.name}"
    with pytest.raises(ValueError, match="set MASTER_ADDR and MASTER_PORT"):
        find_meeting("shm:name", -1, -1, slurm).at("ucx")


def test_a_launcher_of_mpi_needs_no_address() -> None:
    mpich = {"PMI_RANK": "1", "PMI_SIZE": "4", "MPI_LOCALNRANKS": "4"}
    result = find_meeting(None, -1, -1, mpich)
    assert (result.rank, result.size, result.by_mpi) == (1, 4, True)
    with pytest.raises(NotImplementedError, match="gives the job no name"):
        result.at("shared_memory")
    openmpi = {
        "OMPI_COMM_WORLD_RANK": "0",
        "OMPI_COMM_WORLD_SIZE": "4",
        "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
        "PMIX_NAMESPACE": "prterun-b-7@1",
    }
    result = find_meeting(None, -1, -1, openmpi)
    assert not result.several and result.at("shared_memory").startswith("shm:")


def test_names_of_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    def backend(name: str | None) -> str:
        where = f"shm:{secrets.token_hex(8)}"
        dist.init_process_group(name, where, rank=0, world_size=1)
        result = dist.get_backend()
        dist.destroy_process_group()
        return result

    assert backend("GLOO") == "gloo" and backend(None) == "shared_memory"
    assert backend("cpu:gloo,cuda:nccl") == "gloo"
    with pytest.warns(UserWarning, match="'nccl' is not available; processes communicate through"):
        assert backend("nccl") == "gloo"
    assert backend("nccl") == "gloo"  # it warns once
    with pytest.raises(ValueError, match="no communicator named other"):
        backend("other")
    monkeypatch.setenv("PLAIT_DISTRIBUTED_BACKEND", "gloo")
    assert backend(None) == "gloo"


OWN_LINES = {"_new_group", "_agree", "open_communicator", "__init__"}


def make_group_with_interrupt(at: int) -> bool:
    """Make a group, with an interrupt at a line of `new_group` or of what it calls; return whether
    it came to that line.
    """
    count = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        code = frame.f_code
        if "plait_distributed" not in code.co_filename or code.co_name not in OWN_LINES:
            return None if code.co_name != "new_group" else trace
        if event == "line":
            count += 1
            if count == at:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        dist.new_group([0, 1])
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


def test_an_interrupt_at_any_line_of_new_group(ranks: Any, tmp_path: pathlib.Path) -> None:
    """The other rank does not wait for the one that was interrupted, which goes on."""
    name = secrets.token_hex(8)

    def work(rank: int) -> int:
        at = 0
        while True:
            at += 1
            dist.destroy_process_group()
            dist.init_process_group("gloo", f"shm:{name} {at}", 100.0, 2, rank)
            heard = tmp_path / str(at)
            if rank == 1 and make_group_with_interrupt(at):
                until = time.monotonic() + 60
                while not heard.exists() and time.monotonic() < until:
                    time.sleep(0.001)
                continue
            try:
                if rank == 0:
                    dist.new_group([0, 1])
                dist.barrier()
            except dist.RankLost as error:
                assert "was interrupted during new_group" in str(error) and error.ranks == (1,)
                assert error.ranks == (1,)
                heard.touch()
            else:
                return at

    first, second = ranks(2, work)
    assert first == second > 20


def _shared_bytes() -> int:
    """Return how many bytes of memory this process shares with others."""
    total = 0
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        bounds, rights = line.split()[:2]
        if rights == "rw-s":
            low, high = (int(text, 16) for text in bounds.split("-"))
            total += high - low
    return total


@pytest.mark.parametrize("way", ["abort", "interrupt"])
def test_groups_that_a_member_ends_leave_no_memory(ranks: Any, way: str) -> None:
    def work(rank: int) -> Any:
        x, found = pc.ones(1 << 20), []
        for _ in range(8):
            group = dist.new_group([0, 1, 2])
            for _ in range(2):  # the second time in memory that the host's ranks share
                dist.all_reduce(x, group=group)
            dist.barrier()
            if rank == 0:
                getattr(group, way)("the step")
            with pytest.raises(dist.DistBackendError):
                dist.all_reduce(x, group=group)
            dist.destroy_process_group(group)
            del group
            dist.barrier()
            time.sleep(0.1)  # a thread gives the memory back
            found.append(_shared_bytes())
        return found[-1] - found[1]

    assert max(ranks(3, work)) < 32 << 20
