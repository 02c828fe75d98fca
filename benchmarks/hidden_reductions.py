"""The share of the reductions of a data-parallel step that its backward pass hides.

    python benchmarks/hidden_reductions.py                       the six models
    python benchmarks/hidden_reductions.py resnet50 --trace DIR  one, and its timeline

Two processes of one thread train; rank 0's profiler records collectives on the communicator's
thread and operators on the main one. A reduction is *hidden* while an operator runs on the main
thread; what is left is what the step waits for. Where processes have one processor each, hidden
work still takes time from the operators: the difference of DDP's step and of the same step without
it says how much.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import pathlib
from collections.abc import Iterable
from typing import Any

from bench_parallel_steps import BATCHES, step
from models import MODELS, PAPER

__all__: list[str] = []

STEPS = 3

Spans = list[tuple[float, float]]


def union(spans: Iterable[tuple[float, float]]) -> Spans:
    """Join spans that overlap."""
    results: Spans = []
    for begin, end in sorted(spans):
        if results and begin <= results[-1][1]:
            results[-1] = (results[-1][0], max(end, results[-1][1]))
        else:
            results.append((begin, end))
    return results


def common(a: Spans, b: Spans) -> float:
    """Length of what two lists of disjoint spans have in common."""
    total, i, j = 0.0, 0, 0
    while i < len(a) and j < len(b):
        total += max(0.0, min(a[i][1], b[j][1]) - max(a[i][0], b[j][0]))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return total


def work(rank: int, name: str, place: str, trace: str | None) -> None:
    """Train for some steps; rank 0 prints a row."""
    import plait
    import plait.distributed as dist
    from plait.profiler import profile

    plait.set_num_threads(1)
    dist.init_process_group(init_method=f"shm:{place}", rank=rank, world_size=2)
    run, count = step(name, BATCHES[name] // 2, dist.DistributedDataParallel)
    for _ in range(3):
        run()
    dist.barrier()
    with profile() as prof:
        for _ in range(STEPS):
            run()
    if rank == 0:
        rows = prof.events()
        reduced = [e for e in rows if e.category == "collective" and e.name == "all_reduce"]
        main = {e.thread for e in rows if e.category == "backward"}
        busy = union(
            (e.start, e.end) for e in rows if e.category == "operator" and e.thread in main
        )
        collectives = union((e.start, e.end) for e in reduced)
        whole = sum(end - begin for begin, end in collectives)
        hidden = common(collectives, busy)
        print(
            f"{MODELS[name].title:12} {len(reduced) // STEPS:3} buckets {4e-6 * count:6.0f} MB"
            f" {whole / STEPS / 1e3:8.1f} ms reduced, {100 * hidden / whole:3.0f} % hidden",
            flush=True,
        )
        if trace:
            pathlib.Path(trace).mkdir(parents=True, exist_ok=True)
            prof.export_chrome_trace(os.path.join(trace, f"{name}.json"))
    dist.destroy_process_group()


def main() -> None:
    """Train each model in two processes."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("models", nargs="*", default=list(PAPER), help="default: all six")
    parser.add_argument("--trace", help="a folder for timelines, for chrome://tracing or Perfetto")
    flags = parser.parse_args()
    context: Any = multiprocessing.get_context("spawn")
    for name in flags.models:
        place = f"hidden_reductions/{os.getpid()}/{name}"
        ranks = [
            context.Process(target=work, args=(rank, name, place, flags.trace)) for rank in range(2)
        ]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()


if __name__ == "__main__":
    main()
