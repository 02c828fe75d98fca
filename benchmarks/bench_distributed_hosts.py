"""All-reduces of two hosts with two ranks each, over UCX; peer: gloo.

    python benchmarks/run.py --only distributed_hosts       as root

The hosts are network namespaces of this machine; each may send 1 Gbit/s. Ranks have one thread.
Rank 0 measures, between barriers; the sides take turns.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pathlib
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Client, Listener

from bench_distributed import work
from scale.hosts import hosts
from timing import Seconds

__all__ = ["cases"]

SIZES = {"64 KB": 1 << 14, "1 MB": 1 << 18, "16 MB": 1 << 22, "64 MB": 1 << 24}
HOSTS, EACH = 2, 2
RATE, BURST = "1gbit", "512kb"
BAR = 1.0
CHEAP = False

_kept = contextlib.ExitStack()  # hosts, until the benchmark ends
atexit.register(_kept.close)


def work_on_a_host(address: str, library: str, backend: str, rank: str, where: str) -> None:
    """Be one of the ranks."""
    with Client(address) as orders:
        orders.send(int(rank))
        work(library, backend, orders, int(rank), where, HOSTS * EACH)


class Side:
    """The ranks of one library."""

    def __init__(
        self, result: list[tuple[str, str]], library: str, backend: str, port: int
    ) -> None:
        where = f"tcp://{result[0][1]}:{port}"
        code = (
            "import sys; sys.path[:0] = sys.argv[6:]; import bench_distributed_hosts as b; "
            "b.work_on_a_host(*sys.argv[1:6])"
        )
        environment = {
            **os.environ,
            "PLAIT_JOB_SECRET": secrets.token_hex(16),
            "UCX_TLS": "tcp,self",  # the hosts are of one machine, and would share its memory
            "GLOO_SOCKET_IFNAME": "eth0",
            "TP_SOCKET_IFNAME": "eth0",
        }
        with tempfile.TemporaryDirectory() as folder:
            address = os.path.join(folder, "orders")
            with Listener(address, backlog=HOSTS * EACH) as listener:
                for rank in range(HOSTS * EACH):
                    name = result[rank // EACH][0]
                    # a name for each host: ranks of one name would share memory
                    command = ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c"]
                    command += ['hostname $0 && exec "$@"', name, sys.executable, "-c", code]
                    command += [address, library, backend, str(rank), where]
                    subprocess.Popen([*command, *filter(None, sys.path)], env=environment)
                ends = [listener.accept() for _ in range(HOSTS * EACH)]
        by_rank = {end.recv(): end for end in ends}
        self.ends = [by_rank[rank] for rank in range(HOSTS * EACH)]

    def run(self, size: int, times: int) -> Seconds:
        """Return the seconds of a call, in all ranks the slowest one's."""
        for end in self.ends:
            end.send(("reduce", size, times))
        return Seconds(max(end.recv() for end in self.ends))


def cases() -> list[tuple[str, Callable[[], object], Callable[[], object], float | None]]:
    """(name, plait's ranks, gloo's, the bar for their ratio)."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path.append(str(pathlib.Path(__file__).parent))
    result = _kept.enter_context(hosts(HOSTS, RATE, BURST))
    ours = Side(result, "plait", "ucx", 29500)
    theirs = Side(result, "torch", "gloo", 29600)
    all_cases: list[tuple[str, Callable[[], object], Callable[[], object], float | None]] = []
    for text, size in SIZES.items():
        times = max(1, min(20, (1 << 21) // size))
        all_cases.append(
            (
                f"2 hosts of 2 ranks over ucx at 1 Gbit/s, all_reduce of {text}; peer: gloo",
                lambda size=size, times=times: ours.run(size, times),
                lambda size=size, times=times: theirs.run(size, times),
                BAR,
            )
        )
    return all_cases
