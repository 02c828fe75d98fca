"""Two processes: all-reduces of several sizes, and steps of data-parallel training; peer: gloo.

    python benchmarks/run.py --only distributed
    PLAIT_BENCH_PROVIDER=mpi python benchmarks/run.py --only distributed

The provider is shared memory, or that of the environment variable; `mpi` needs an mpiexec.

Each side has two processes of one thread that live as long as the benchmark. They take turns: one
side's wait for an order while the other's work. Rank 0 measures, between barriers.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Client, Connection
from typing import Any

from timing import Seconds

__all__ = ["cases"]

SIZES = {
    "4 KB": 1 << 10,
    "64 KB": 1 << 14,
    "1 MB": 1 << 18,
    "16 MB": 1 << 22,
    "64 MB": 1 << 24,
    "256 MB": 1 << 26,
}
PROVIDER = os.environ.get("PLAIT_BENCH_PROVIDER", "shared_memory")
OVER = "" if PROVIDER == "shared_memory" else f" over {PROVIDER}"
REDUCE_BAR = 0.25 if PROVIDER == "shared_memory" else 1.0
STEP_BAR = 1.0
CHEAP = False
STARTED_IN = 60  # seconds
# As the other side's processes, ours may run on any processor, and as whoever runs the benchmark.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
}

Run = Callable[[], object]


def rows(library: Any, dist: Any, size: int) -> Callable[[], None]:
    """Return a function that reduces some floats once."""
    x = library.ones(size)
    x.fill_(0.0)  # sums of sums stay as they are; written once, so that it has memory

    def run() -> None:
        dist.all_reduce(x)

    return run


def step(library: Any, parallel: Any, width: int) -> Callable[[], None]:
    """Return a function that takes one step of a network of three layers."""
    nn = importlib.import_module(f"{library.__name__}.nn")
    optim = importlib.import_module(f"{library.__name__}.optim")
    layers = [nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    model = parallel(nn.Sequential(*layers, nn.Linear(width, 10)))
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    x = library.randn(32, width)

    def run() -> None:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

    return run


def work(
    library_name: str, backend: str, orders: Any, rank: int, where: str, size: int = 2
) -> None:
    """Do what is ordered, and answer with the seconds of one call."""
    library = importlib.import_module(library_name)
    library.set_num_threads(1)
    dist = importlib.import_module(f"{library_name}.distributed")
    place = importlib.import_module(
        "plait.distributed.parallel" if library_name == "plait" else "torch.nn.parallel"
    )
    dist.init_process_group(backend, init_method=where, rank=rank, world_size=size)
    known: dict[tuple[str, int], Callable[[], None]] = {}
    while True:
        try:
            kind, size, times = orders.recv()
        except EOFError:  # the benchmark is over
            break
        if (kind, size) not in known:
            known[kind, size] = (
                rows(library, dist, size)
                if kind == "reduce"
                else step(library, place.DistributedDataParallel, size)
            )
        run = known[kind, size]
        run()
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(times):
            run()
        orders.send((time.perf_counter() - begin) / times)
    dist.destroy_process_group()


def work_in_a_job(address: str, port: int) -> None:
    """Be one of two processes that a launcher started."""
    with Client(address) as orders:
        rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "0")))
        orders.send(rank)
        work("plait", PROVIDER, orders, rank, f"tcp://127.0.0.1:{port}")


def launched(port: int) -> list[Any]:
    """Start two processes by mpiexec; return the ends of their pipes, by rank."""
    code = (
        "import sys; sys.path[:0] = sys.argv[3:]; import bench_distributed as b; "
        "b.work_in_a_job(sys.argv[1], int(sys.argv[2]))"
    )
    beside = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    mpiexec = beside if os.path.exists(beside) else "mpiexec"
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.join(folder, "orders"))
        server.listen()
        server.settimeout(STARTED_IN)
        arguments = [server.getsockname(), str(port), *filter(None, sys.path)]
        command = [mpiexec, "-n", "2", sys.executable, "-c", code, *arguments]
        job = subprocess.Popen(command, env={**os.environ, **OPEN_MPI})
        try:
            ends = [Connection(server.accept()[0].detach()) for _ in range(2)]
        except TimeoutError:
            job.kill()
            raise RuntimeError(
                f"two processes did not start in {STARTED_IN} seconds: {' '.join(command[:3])}"
            ) from None
    ranks = [end.recv() for end in ends]
    return [ends[ranks.index(rank)] for rank in range(2)]


class Side:
    """Two processes with one library."""

    def __init__(self, library: str, backend: str) -> None:
        context = multiprocessing.get_context("spawn")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.ends = []
        if backend == "mpi":
            self.ends = launched(port)
            return
        for rank in range(2):
            end, other = context.Pipe()
            arguments = (library, backend, other, rank, f"tcp://127.0.0.1:{port}")
            context.Process(target=work, args=arguments, daemon=True).start()
            other.close()
            self.ends.append(end)

    def run(self, kind: str, size: int, times: int) -> Seconds:
        """Return the seconds of a call, in both processes the slower one's."""
        for end in self.ends:
            end.send((kind, size, times))
        return Seconds(max(end.recv() for end in self.ends))


def cases() -> list[tuple[str, Run, Run, float | None]]:
    """(name, plait's processes, gloo's, the bar for their ratio)."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    ours, theirs = Side("plait", PROVIDER), Side("torch", "gloo")
    results: list[tuple[str, Run, Run, float | None]] = []

    def add(name: str, kind: str, size: int, times: int, bar: float) -> None:
        results.append(
            (
                f"2 processes{OVER}, {name}; peer: gloo",
                lambda: ours.run(kind, size, times),
                lambda: theirs.run(kind, size, times),
                bar,
            )
        )

    for text, size in SIZES.items():
        times = max(3, min(200, (1 << 22) // size))
        add(f"all_reduce of {text}", "reduce", size, times, REDUCE_BAR)
    add("DDP step, 3 layers of 256", "step", 256, 50, STEP_BAR)
    add("DDP step, 3 layers of 1024", "step", 1024, 10, STEP_BAR)
    return results
