"""The meeting of processes: the rank, the size and the place that a launcher or a program gives."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import socket
import urllib.parse
from collections.abc import Mapping
from typing import Any

from plait_distributed._launch_environment import find_launch

# variables of launchers, in the order in which they are looked at
_RANK = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_SIZE = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
# and those with which they say that there are several hosts: the number of hosts, or the number of
# processes on one and on all
_HOSTS = ("SLURM_JOB_NUM_NODES", "SLURM_NNODES", "GROUP_WORLD_SIZE")
_ON_HOST = (
    ("LOCAL_WORLD_SIZE", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE"),
    ("MPI_LOCALNRANKS", "PMI_SIZE"),
)
# what names one job among those of a user
_JOB = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID", "SLURM_STEP_ID")
_NAMES_OF_JOBS = ("SLURM_JOB_ID", "OMPI_COMM_WORLD_JOBID", "PMIX_NAMESPACE")
# schemes of a place that is only a name, of those that know it
_NAMES = ("shm", "mpi")
# a launcher of MPI started the process
_OF_MPI = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK")


@dataclasses.dataclass(frozen=True)
class Meeting:
    """The name of the place, and this process's rank there.

    `address` is that of the host and port that the launcher or the program gave, if it did.
    `several` says why the processes are on several hosts; '' if they are on one.
    """

    name: str
    rank: int
    size: int
    address: tuple[str, int] | None = None
    several: str = ""
    by_mpi: bool = False  # a launcher of MPI started the process

    def at(self, provider: str) -> str:
        """Return the place in the form of a provider of the role `communicator`.

        Raises:
            NotImplementedError: the processes are on several hosts, and shared memory is requested.
        """
        if provider == "shared_memory":
            if self.several:
                raise NotImplementedError(
                    f"init_process_group: {self.several}, and shared memory reaches the processes "
                    "of one host; processes of several hosts need a provider of the role "
                    "communicator over MPI or UCX: install plait-mpi and start the program with "
                    "mpiexec, or install plait-ucx"
                )
            return f"shm:{self.name}"
        if provider == "ucx" and self.address is None and self.several:
            raise ValueError(
                f"init_process_group: {self.several}, so the processes need an address to meet at: "
                "set MASTER_ADDR and MASTER_PORT, or give `init_method` tcp://HOST:PORT"
            )
        if provider == "ucx" and self.address is not None:
            host, port = self.address
            return f"tcp://{f'[{host}]' if ':' in host else host}:{port}/{self.name}"
        return f"{'local' if provider == 'ucx' else provider}:{self.name}"


def find_meeting(
    init_method: str | None, rank: int, size: int, environment: Mapping[str, str] | None = None
) -> Meeting:
    """Return where the processes meet; -1 stands for a rank or size that is not given."""
    environ = os.environ if environment is None else environment
    method = init_method or "env://"
    scheme, colon, rest = method.partition(":")
    several = _several_hosts(environ)
    by_mpi = any(name in environ for name in _OF_MPI)
    if scheme in _NAMES and rest:
        rank, size = _numbers(method, rank, size, environ)
        return _checked(Meeting(rest, rank, size, None, several, by_mpi))
    url = urllib.parse.urlparse(method)
    if not colon or url.scheme not in ("env", "tcp", "file"):
        raise ValueError(
            "init_process_group: `init_method` must begin with env://, tcp://, file:// or shm:, "
            f"got {init_method!r}"
        )
    request = urllib.parse.parse_qs(url.query)
    rank = int(request["rank"][0]) if rank < 0 and "rank" in request else rank
    size = int(request["world_size"][0]) if size < 0 and "world_size" in request else size
    rank, size = _numbers(method, rank, size, environ)
    address = None
    if url.scheme == "file":
        place = "file " + os.path.realpath(url.path)
        if not url.path or not os.path.isdir(os.path.dirname(os.path.realpath(url.path))):
            raise ValueError(
                "init_process_group: `init_method` file:// must have the path of a file in a "
                f"folder that exists, got {init_method!r}"
            )
    elif url.scheme == "tcp":
        if not url.hostname or url.port is None:
            raise ValueError(
                f"init_process_group: `init_method` must be tcp://HOST:PORT, got {init_method!r}"
            )
        address = url.hostname, url.port
        place = f"tcp {url.port}"
    else:
        place, address, nameless = _from_environment(environ, by_mpi)
        several = several or nameless
    if address is not None and size > 1 and not several and not is_here(address[0]):
        several = f"the address {address[0]} is of another host"
    name = _digest(place, environ)  # localhost and the host's own names mean one place
    return _checked(Meeting(name, rank, size, address, several, by_mpi))


def _numbers(method: str, rank: int, size: int, environ: Mapping[str, str]) -> tuple[int, int]:
    results = []
    for value, argument, names in ((rank, "rank", _RANK), (size, "world_size", _SIZE)):
        name = next((name for name in names if name in environ), None)
        if value >= 0:
            results.append(value)
        elif name is None:
            raise ValueError(
                f"init_process_group: `{argument}` is not given, and none of the environment "
                f"variables {', '.join(names)} is set; start the program with "
                "python -m plait.distributed.run, or give `rank` and `world_size`"
            )
        else:
            results.append(_integer(name, environ[name]))
    return results[0], results[1]


def _integer(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(
            f"init_process_group: the environment variable {name} must be a number, got {text!r}"
        ) from None


def _checked(meeting: Meeting) -> Meeting:
    size = meeting.size
    if size < 1:
        raise ValueError(f"init_process_group: `world_size` must be positive, got {size}")
    if not 0 <= meeting.rank < size:
        raise ValueError(
            f"init_process_group: `rank` must be in [0, {size - 1}], got {meeting.rank}"
        )
    return meeting


def _from_environment(
    environ: Mapping[str, str], by_mpi: bool
) -> tuple[str, tuple[str, int] | None, str]:
    """Return the place, its address, and why shared memory cannot be it."""
    host, port = environ.get("MASTER_ADDR"), environ.get("MASTER_PORT")
    jobs = [name for name in _NAMES_OF_JOBS if name in environ]
    if host is None and port is None and (jobs or by_mpi):
        place = "job " + " ".join(environ.get(name, "") for name in _NAMES_OF_JOBS)
        return (
            place,
            _address_in_slurm(environ),
            "" if jobs else "the launcher gives the job no name",
        )
    for name, value in (("MASTER_ADDR", host), ("MASTER_PORT", port)):
        if value is None:
            raise ValueError(
                f"init_process_group: the environment variable {name} is not set, which "
                "`init_method` env:// needs; start the program with python -m plait_distributed.run"
            )
    assert host is not None and port is not None
    number = _integer("MASTER_PORT", port)
    return f"tcp {number}", (host, number), ""


def _address_in_slurm(environ: Mapping[str, str]) -> tuple[str, int] | None:
    """Return the first host of Slurm's job, with a port that other jobs there do not have."""
    if "SLURM_JOB_ID" not in environ or not _several_hosts(environ):
        return None
    result = find_launch(environ)
    if result is None or not result.master_addr:
        return None
    job = _integer("SLURM_JOB_ID", environ["SLURM_JOB_ID"])
    return (
        result.master_addr,
        20000 + job % 12000,
    )  # below the ports that systems give by themselves


def is_here(host: str) -> bool:
    """Return whether a name or address is of this host."""
    if host in ("localhost", "0.0.0.0", "::1", "::", socket.gethostname(), socket.getfqdn()):
        return True
    try:
        results = {info[4][0] for info in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}
    except OSError:
        raise ValueError(f"init_process_group: the host {host!r} is not known") from None
    return any(_is_own_address(str(address)) for address in results)


def _is_own_address(address: str) -> bool:
    """Whether an address is one of this host's: others cannot be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def _several_hosts(environ: Mapping[str, str]) -> str:
    """Return with which words a launcher says that there are several hosts; '' if it does not."""
    for name in _HOSTS:
        if name in environ and _integer(name, environ[name]) > 1:
            return f"{name} is {environ[name]}"
    for here, everywhere in _ON_HOST:
        if here in environ and everywhere in environ:
            size = _integer(everywhere, environ[everywhere])
            if _integer(here, environ[here]) < size:
                return f"{here} is {environ[here]} of {size} processes"
    return ""


def _digest(place: str, environ: Mapping[str, Any]) -> str:
    job = [f"{name}={environ[name]}" for name in _JOB if name in environ]
    secret = environ.get("PLAIT_JOB_SECRET", "")
    text = "\0".join([place, *job, secret])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
