"""Variables of launchers."""

from __future__ import annotations

import pytest

from plait_distributed._launch_environment import Launch, find_launch, host_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", []),
        ("a", ["a"]),
        ("a, b", ["a", "b"]),
        ("node[01-03,07]", ["node01", "node02", "node03", "node07"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("n[098-101].x", ["n098.x", "n099.x", "n100.x", "n101.x"]),
        ("r[1-2]n[8,9],c", ["r1n8", "r1n9", "r2n8", "r2n9", "c"]),
        ("gpu-a-[3]", ["gpu-a-3"]),
    ],
)
def test_lists_of_hosts(text: str, names: list[str]) -> None:
    assert host_names(text) == names


@pytest.mark.parametrize(
    "text",
    ["n[1-2", "n1-2]", "n[[1]]", "n[]", "n[a-b]", "n[3-1]", "n[1-]", "n[1-9999999]",
     "n[1-2000][1-2000]"],
)  # fmt: skip
def test_wrong_lists_of_hosts(text: str) -> None:
    with pytest.raises(ValueError, match="list of hosts"):
        host_names(text)


def test_without_a_launcher() -> None:
    assert find_launch({"MASTER_ADDR": "a", "MASTER_PORT": "1"}) is None
    assert find_launch({"RANK": "0"}) is None  # the size is the program's to give


TORCHRUN = {
    "RANK": "5",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "4",
    "GROUP_RANK": "1",
    "GROUP_WORLD_SIZE": "2",
    "MASTER_ADDR": "10.0.0.1",
    "MASTER_PORT": "29500",
    "TORCHELASTIC_RUN_ID": "job",
    "PLAIT_JOB_SECRET": "s",
}
SLURM = {
    "SLURM_PROCID": "5",
    "SLURM_NTASKS": "7",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
    "SLURM_JOB_ID": "123",
    "SLURM_STEP_ID": "0",
    "SLURM_JOB_NUM_NODES": "2",
    "SLURM_JOB_NODELIST": "node[01-02]",
    "SLURM_TASKS_PER_NODE": "4,3",
}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "5",
    "OMPI_COMM_WORLD_SIZE": "8",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
    "OMPI_COMM_WORLD_NODE_RANK": "1",  # of this process on its host, in spite of the name
    "PMIX_NAMESPACE": "prterun-a-1@1",
}
MPICH = {"PMI_RANK": "5", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "4"}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (
            TORCHRUN,
            Launch("torchrun", 5, 8, 1, 4, 1, 2, "10.0.0.1", 29500, "TORCHELASTIC_RUN_ID=job", "s"),
        ),
        (
            SLURM,
            Launch(
                "Slurm", 5, 7, 1, 3, 1, 2, "node01", None, "SLURM_JOB_ID=123 SLURM_STEP_ID=0", None
            ),
        ),
        (
            OPEN_MPI,
            Launch("Open MPI", 5, 8, 1, 4, job="PMIX_NAMESPACE=prterun-a-1@1"),
        ),
        (MPICH, Launch("MPICH", 5, 8, 1, 4)),
    ],
    ids=["torchrun", "Slurm", "Open MPI", "MPICH"],
)
def test_what_launchers_say(environment: dict[str, str], expected: Launch) -> None:
    result = find_launch(environment)
    assert result == expected
    assert result is not None and result.is_on_several_hosts()


def test_one_host_by_its_number_of_ranks() -> None:
    result = find_launch({**MPICH, "MPI_LOCALNRANKS": "8"})
    assert result is not None and result.nodes == 1 and not result.is_on_several_hosts()


def test_mpiexec_within_a_job_of_slurm() -> None:
    batch = {**SLURM, "SLURM_PROCID": "0", "SLURM_NTASKS": "8"}
    result = find_launch({**batch, **OPEN_MPI})
    assert result is not None and (result.launcher, result.rank) == ("Open MPI", 5)


def test_the_step_of_slurm_before_the_job() -> None:
    step = {"SLURM_STEP_NODELIST": "node02", "SLURM_STEP_NUM_NODES": "1"}
    step |= {"SLURM_STEP_TASKS_PER_NODE": "7", "SLURM_NODEID": "0"}
    result = find_launch({**SLURM, **step})
    assert result is not None and not result.is_on_several_hosts()
    assert (result.master_addr, result.nodes, result.local_size) == ("node02", 1, 7)


def test_the_users_address_is_taken() -> None:
    result = find_launch({**SLURM, "MASTER_ADDR": "c", "MASTER_PORT": "7"})
    assert result is not None and (result.master_addr, result.master_port) == ("c", 7)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"RANK": "x"}, "RANK must be a number, got 'x'"),
        ({"RANK": "-1"}, "RANK must be a number, got '-1'"),
        ({"RANK": "8"}, "the rank is 8 of 8"),
        ({"LOCAL_RANK": "4"}, "the local rank is 4 of 4"),
        ({"MASTER_PORT": "p"}, "MASTER_PORT must be a number, got 'p'"),
    ],
)
def test_wrong_variables(changed: dict[str, str], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        find_launch({**TORCHRUN, **changed})


def test_wrong_tasks_per_node() -> None:
    with pytest.raises(ValueError, match="SLURM_TASKS_PER_NODE must be like"):
        find_launch({**SLURM, "SLURM_TASKS_PER_NODE": "4(y2)"})
