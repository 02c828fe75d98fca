"""The environment variables of launchers for their processes: torchrun, Slurm, MPI's mpiexec."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator, Mapping

_MOST_HOSTS = 1 << 20


@dataclasses.dataclass(frozen=True)
class Launch:
    """A process's place in the job that a launcher started; -1 and None where it did not say."""

    launcher: str
    rank: int
    size: int
    local_rank: int = -1
    local_size: int = -1
    node_rank: int = -1
    nodes: int = -1
    master_addr: str | None = None
    master_port: int | None = None
    job: str = ""
    secret: str | None = None

    def is_on_several_hosts(self) -> bool:
        """Return whether the launcher says that the processes are on more than one host."""
        return self.nodes > 1 or 0 < self.local_size < self.size


# For each launcher the variables of: rank, size, local rank, local size, node's rank, nodes; and
# those that name the job. Each process of mpiexec under Slurm has Slurm's variables of the batch
# step too, with one rank; so those of MPI come first.
_LAUNCHERS = {
    "torchrun": (
        ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE"),
        ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"),
    ),
    "Open MPI": (
        (
            "OMPI_COMM_WORLD_RANK",
            "OMPI_COMM_WORLD_SIZE",
            "OMPI_COMM_WORLD_LOCAL_RANK",
            "OMPI_COMM_WORLD_LOCAL_SIZE",
            "",
            "",
        ),
        ("PMIX_NAMESPACE", "OMPI_COMM_WORLD_JOBID"),
    ),
    "MPICH": (
        ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "", ""),
        ("PMI_JOBID",),
    ),
    "Slurm": (
        (
            "SLURM_PROCID",
            "SLURM_NTASKS",
            "SLURM_LOCALID",
            "",
            "SLURM_NODEID",
            "SLURM_STEP_NUM_NODES",
        ),
        ("SLURM_JOB_ID", "SLURM_STEP_ID"),
    ),
}


def find_launch(environment: Mapping[str, str] | None = None) -> Launch | None:
    """Return what the launcher of this process says; None if none started it.

    The first launcher of which both rank and size are set is taken: torchrun's names, then Open
    MPI's, MPICH's (and other users of PMI), Slurm's. MASTER_ADDR and MASTER_PORT are the user's and
    are taken with any. Slurm's list of hosts gives the address where MASTER_ADDR is not set: its
    first host has rank 0.

    Args:
        environment: the variables; None: those of this process.

    Raises:
        ValueError: a variable does not have the form that it must have.

    Example:
        >>> from plait_distributed._launch_environment import find_launch
        >>> slurm = {"SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1"}
        >>> slurm |= {"SLURM_STEP_NODELIST": "node[01-02]", "SLURM_STEP_TASKS_PER_NODE": "4(x2)"}
        >>> found = find_launch({**slurm, "SLURM_NODEID": "1"})
        >>> found.rank, found.size, found.local_size, found.nodes, found.master_addr
        (5, 8, 4, 2, 'node01')
    """
    environ = os.environ if environment is None else environment
    launcher = next(
        (
            name
            for name, ((rank, size, *_), _) in _LAUNCHERS.items()
            if {rank, size} <= set(environ)
        ),
        None,
    )
    if launcher is None:
        return None
    numbers, job = _LAUNCHERS[launcher]
    results = [_number(name, environ) for name in numbers]
    if launcher == "Slurm":
        results = _completed_by_slurm(results, environ)
    if results[5] < 0 and results[3] == results[1]:
        results[5] = 1
    _check(launcher, results)
    address = environ.get("MASTER_ADDR")
    if address is None and launcher == "Slurm":
        address = next(iter(_hosts_of_slurm(environ)), None)
    port = _number("MASTER_PORT", environ)
    rank, size, local_rank, local_size, node_rank, nodes = results
    return Launch(
        launcher,
        rank,
        size,
        local_rank,
        local_size,
        node_rank,
        nodes,
        master_addr=address,
        master_port=port if port >= 0 else None,
        job=" ".join(f"{name}={environ[name]}" for name in job if name in environ),
        secret=environ.get("PLAIT_JOB_SECRET"),
    )


def _number(name: str, environ: Mapping[str, str]) -> int:
    if not name or name not in environ:
        return -1
    if not re.fullmatch(r"\d+", environ[name].strip()):
        raise ValueError(
            f"init_process_group: the environment variable {name} must be a number, got "
            f"{environ[name]!r}"
        )
    return int(environ[name])


def _check(launcher: str, numbers: list[int]) -> None:
    for label, rank, size in (
        ("rank", numbers[0], numbers[1]),
        ("local rank", numbers[2], numbers[3]),
        ("node's rank", numbers[4], numbers[5]),
    ):
        if rank >= 0 and 0 <= size <= rank:
            raise ValueError(
                f"init_process_group: {launcher} says that the {label} is {rank} of {size}"
            )


# Slurm


def _of_slurm(name: str, environ: Mapping[str, str]) -> str:
    """Return a variable of the step, or else of the job."""
    for prefix in ("SLURM_STEP_", "SLURM_JOB_", "SLURM_"):
        if prefix + name in environ:
            return environ[prefix + name]
    return ""


def _hosts_of_slurm(environ: Mapping[str, str]) -> list[str]:
    return host_names(_of_slurm("NODELIST", environ))


def _completed_by_slurm(numbers: list[int], environ: Mapping[str, str]) -> list[int]:
    rank, size, local_rank, local_size, node_rank, nodes = numbers
    hosts = _hosts_of_slurm(environ)
    if nodes < 0:
        text = _of_slurm("NUM_NODES", environ) or environ.get("SLURM_NNODES", "")
        nodes = int(text) if text.isdigit() else len(hosts) or -1
    counts = _tasks_per_node(_of_slurm("TASKS_PER_NODE", environ))
    if 0 <= node_rank < len(counts):
        local_size = counts[node_rank]
    elif nodes == 1:
        local_size = size
    return [rank, size, local_rank, local_size, node_rank, nodes]


def _tasks_per_node(text: str) -> list[int]:
    """Return the numbers of a text such as ``4(x2),3``: 4, 4, 3."""
    results: list[int] = []
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part.strip())
        if match is None:
            raise ValueError(
                "init_process_group: the environment variable SLURM_TASKS_PER_NODE must be like "
                f"4(x2),3, got {text!r}"
            )
        results += [int(match[1])] * int(match[2] or 1)
    return results


def host_names(text: str) -> list[str]:
    """Return the names in a list of hosts as Slurm writes it.

    Names are divided by commas. Numbers in brackets, with ranges, stand for one name each, with as
    many digits as they are written with; a name may have several brackets.

    Raises:
        ValueError: the text does not have this form, or has more than a million names.

    Example:
        >>> from plait_distributed._launch_environment import host_names
        >>> host_names("node[01-03,07],login")
        ['node01', 'node02', 'node03', 'node07', 'login']
        >>> host_names("r[1-2]n[8-9]-ib")
        ['r1n8-ib', 'r1n9-ib', 'r2n8-ib', 'r2n9-ib']
    """
    results: list[str] = []
    for part in _outer_parts(text):
        names = [""]
        for piece in re.findall(r"\[[^\[\]]*\]|[^\[\]]+", part):
            ends = list(_numbers_of(piece[1:-1], text)) if piece[0] == "[" else [piece]
            if len(names) * len(ends) + len(results) > _MOST_HOSTS:
                raise ValueError(f"the list of hosts has more than {_MOST_HOSTS} names: {text!r}")
            names = [name + end for name in names for end in ends]
        results += names
    return results


def _outer_parts(text: str) -> Iterator[str]:
    """Yield the parts of a list between commas that are in no brackets."""
    depth, part = 0, ""
    for letter in text + ",":
        depth += (letter == "[") - (letter == "]")
        if depth not in (0, 1):
            raise ValueError(f"the list of hosts has brackets that do not match: {text!r}")
        if letter == "," and depth == 0:
            if part.strip():
                yield part.strip()
            part = ""
        else:
            part += letter
    if depth:
        raise ValueError(f"the list of hosts has brackets that do not match: {text!r}")


def _numbers_of(inside: str, text: str) -> Iterator[str]:
    for part in inside.split(","):
        match = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", part)
        if match is None:
            raise ValueError(f"the list of hosts must be like node[01-03,07], got {text!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        if not first <= last < first + _MOST_HOSTS:
            raise ValueError(f"the list of hosts has the range {part}: {text!r}")
        for number in range(first, last + 1):
            yield str(number).zfill(len(match[1]))
