"""Data-parallel steps of whole models in two processes of one thread, beside the floor of each.

    python benchmarks/run.py --only parallel_steps
    python benchmarks/bench_parallel_steps.py resnet50 mobilenet    a table of the parts

The peer of ResNet-50 and MobileNetV2 is the same batch in one process with two threads. The others
have larger gradients for less arithmetic; their peer is the step of half a batch without reduction,
in both processes at once, and the bytes of the gradients over the bandwidth of an all-reduce. All
take turns, step by step, so that what else runs on the machine meets all of them. The table has the
processor time of a process too, which says what a step costs where other programs take turns.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from models import MODELS, PAPER
from timing import Seconds

__all__ = ["cases"]

BATCHES = {"alexnet": 16, "vgg19": 2, "resnet50": 8, "mobilenet": 16, "gnmt": 16, "neumf": 4096}
WHOLE = ("resnet50", "mobilenet")  # compared with one process
WHOLE_BAR = 1 / 0.95
FLOOR_BAR = 1.1
BUCKET = 25 << 18  # floats
TURNS = 7
CHEAP = False

Run = Callable[[], object]


def step(name: str, batch: int, parallel: Any) -> tuple[Callable[[], None], int]:
    """Return a function that trains a model for one step, and its number of gradients."""
    import plait

    model = MODELS[name]
    network = model.build(plait)
    wrapped = parallel(network) if parallel else network
    optimizer = model.optimizer(plait, network.parameters())
    *inputs, target = (plait.from_numpy(x) for x in model.data(batch))

    def run() -> None:
        optimizer.zero_grad()
        model.loss(plait, wrapped(*inputs), target).backward()
        optimizer.step()

    return run, sum(p.numel() for p in network.parameters())


def _reductions(count: int) -> Callable[[], None]:
    """Return a function that reduces so many floats as buckets are reduced."""
    import plait
    import plait.distributed as dist

    whole = plait.zeros(min(count, BUCKET)).share_memory_()
    rest = whole[: count % BUCKET]

    def run() -> None:
        for _ in range(count // BUCKET):
            dist.all_reduce(whole)
        dist.all_reduce(rest)

    return run


def work(orders: Any, rank: int, size: int, threads: int, place: str) -> None:
    """Do what is ordered, and answer with the seconds of a call, and of processor time."""
    import plait
    import plait.distributed as dist

    plait.set_num_threads(threads)
    dist.init_process_group(init_method=f"shm:{place}", rank=rank, world_size=size)
    known: dict[tuple[str, str], Callable[[], None]] = {}
    while True:
        try:
            name, kind = orders.recv()
        except EOFError:  # the benchmark is over
            break
        if (name, kind) not in known:
            known = {key: run for key, run in known.items() if key[0] == name}
            parallel = dist.DistributedDataParallel if kind == "parallel" else None
            run, count = step(name, BATCHES[name] // size, parallel)
            if kind == "reduce":
                run = _reductions(count)
            for _ in range(3):  # buckets have their order from the second step on
                run()
            known[name, kind] = run
        dist.barrier()
        begin, used = time.perf_counter(), time.process_time()
        known[name, kind]()
        orders.send((time.perf_counter() - begin, time.process_time() - used))
    dist.destroy_process_group()


class Side:
    """Processes that train together."""

    def __init__(self, size: int, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        place = f"bench_parallel_steps/{os.getpid()}/{size}"
        self.ends = []
        for rank in range(size):
            end, other = context.Pipe()
            arguments = (other, rank, size, threads, place)
            context.Process(target=work, args=arguments, daemon=True).start()
            other.close()
            self.ends.append(end)

    def times(self, name: str, kind: str) -> tuple[float, float]:
        """Return the seconds of a call, the slowest process's, and its processor time."""
        for end in self.ends:
            end.send((name, kind))
        answers = [end.recv() for end in self.ends]
        return max(x[0] for x in answers), max(x[1] for x in answers)

    def run(self, name: str, kind: str) -> Seconds:
        """Return the seconds of a call."""
        return Seconds(self.times(name, kind)[0])


def cases() -> list[tuple[str, Run, Run, float | None]]:
    """(name, two processes, their peer, the bar for the ratio of their times)."""
    one, two = Side(1, 2), Side(2, 1)
    results: list[tuple[str, Run, Run, float | None]] = []

    def floor(name: str) -> Seconds:
        return Seconds(two.run(name, "alone") + two.run(name, "reduce"))

    def add(name: str) -> None:
        title, batch = MODELS[name].title, BATCHES[name]
        ours = lambda: two.run(name, "parallel")  # noqa: E731
        if name in WHOLE:
            text = f"DDP step of {title}, batch {batch}; peer: one process of two threads"
            results.append((text, ours, lambda: one.run(name, "alone"), WHOLE_BAR))
        else:
            text = f"DDP step of {title}, batch {batch}; peer: half a batch and all-reduces"
            results.append((text, ours, lambda: floor(name), FLOOR_BAR))

    for name in PAPER:
        add(name)
    return results


def main(names: Sequence[str]) -> None:
    """Print a table of the medians."""
    one, two = Side(1, 2), Side(2, 1)
    print(f"ms, medians of {TURNS}; in brackets processor time of a process")
    for name in names or PAPER:
        times: dict[str, list[tuple[float, float]]] = {}
        for _ in range(TURNS):
            times.setdefault("one process", []).append(one.times(name, "alone"))
            for kind in ("parallel", "alone", "reduce"):
                times.setdefault(kind, []).append(two.times(name, kind))
        wall, used = (
            {kind: 1e3 * statistics.median(x[i] for x in result) for kind, result in times.items()}
            for i in range(2)
        )
        cells = [f"{kind} {wall[kind]:.1f} ({used[kind]:.1f})" for kind in times]
        ratios = [x["parallel"] / (x["alone"] + x["reduce"]) for x in (wall, used)]
        print(
            f"{MODELS[name].title:12}",
            *cells,
            f"one process / DDP {wall['one process'] / wall['parallel']:.3f}",
            f"DDP / floor {ratios[0]:.3f} ({ratios[1]:.3f})",
            sep=", ",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
