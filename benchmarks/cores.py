"""What a step takes on 1 to 64 cores, told from one: each job's pieces are timed and dealt out.

    python benchmarks/cores.py                              the six models of the paper
    python benchmarks/cores.py resnet50                     one of them
    python benchmarks/cores.py --page docs/benchmarks/cores.md

Kernels cut their work by its size alone, so the pieces are the same on any number of cores. An
executor that only records runs a step's pieces one after the other and times each. They are then
dealt out to T threads as the pool does it: each thread has a range of them, and goes on with
another's when its own is empty. What is left of the step, between the jobs, is serial. Added are
what opening and closing a job costs, measured here between two threads.

Not in the model: clocks that fall when all cores work, caches that are shared, and the bandwidth of
memory, for which the page says how many bytes a step moves.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import datetime
import heapq
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "table1")]

from machine import description  # noqa: E402 - found in the folders above
from models import MODELS, PAPER, fill  # noqa: E402
from operator_groups import group_of  # noqa: E402

import plait  # noqa: E402
import plait_abi  # noqa: E402
from plait.profiler import profile  # noqa: E402

__all__ = ["Cost", "Job", "Recorder", "Step", "main", "makespan", "predicted"]

THREADS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Job:
    """Work that was cut into pieces: when it ran, and the nanoseconds of each piece."""

    begin: int
    end: int
    pieces: np.ndarray


@dataclass
class Step:
    """A training step on one thread: nanoseconds in all, and its jobs in order."""

    total: float
    jobs: list[Job]

    @property
    def serial(self) -> float:
        """The nanoseconds between jobs."""
        return self.total - sum(job.end - job.begin for job in self.jobs)


@dataclass(frozen=True)
class Cost:
    """What a job costs beside its pieces, nanoseconds: once, and again for each thread."""

    job: float
    thread: float

    def of(self, threads: int) -> float:
        """The cost with so many threads."""
        return 0.0 if threads == 1 else self.job + self.thread * threads


def shared(pieces: np.ndarray) -> np.ndarray:
    """Return the pieces of a job; evenly long ones if the first has done nearly all of the work.

    Recurrent layers take all their steps in one job, whose pieces meet after each step, and take
    over what others are late with. The first one to run, alone, does it all.
    """
    total = float(pieces.sum())
    if len(pieces) > 1 and pieces[0] > 0.95 * total:
        return np.full(len(pieces), total / len(pieces))
    return pieces


def makespan(pieces: Sequence[float], threads: int) -> float:
    """Return when the last piece ends, if the pool deals them out to ``threads`` threads.

    >>> makespan([4.0, 1.0, 1.0, 1.0], 2)  # the second thread takes one of the first's
    4.0
    """
    count = len(pieces)
    parts = min(threads, count)
    if parts <= 1:
        return float(sum(pieces))
    sizes = [count // parts + (i < count % parts) for i in range(parts)]
    ends = np.cumsum(sizes)
    following = [int(end) - size for end, size in zip(ends, sizes, strict=True)]
    free = [(0.0, thread) for thread in range(parts)]
    last = 0.0
    while free:
        at, thread = heapq.heappop(free)
        for k in range(parts):
            part = (thread + k) % parts
            if following[part] < ends[part]:
                at += float(pieces[following[part]])
                following[part] += 1
                heapq.heappush(free, (at, thread))
                break
        else:
            last = max(last, at)
    return last


def predicted(step: Step, threads: int, cost: Cost) -> float:
    """Return the nanoseconds of a step on so many threads."""
    jobs = sum(makespan(job.pieces, threads) + cost.of(threads) for job in step.jobs)
    return step.serial + jobs


class Recorder:
    """The executor of recording_executor.c, compiled and loaded into this process."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        library = Path(self._folder.name) / "recording_executor.so"
        compiler = sysconfig.get_config_var("CC") or "cc"
        command = [
            shutil.which(compiler.split()[0]) or "cc",
            "-std=gnu11",
            "-O2",
            "-shared",
            "-fPIC",
        ]
        source = HERE / "recording_executor.c"
        include = f"-I{plait_abi.paths()['include']}"
        subprocess.run([*command, include, str(source), "-o", str(library)], check=True)
        self._path = str(library)
        plait_abi.load(self._path)
        self._library = ctypes.CDLL(self._path)

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Give the pool its place back for a block."""
        plait_abi.detach("recording-executor")
        try:
            yield
        finally:
            plait_abi.load(self._path)

    def cost(self) -> Cost:
        """Return what a job costs in the pool that the recorder replaced: half of what one on two
        threads takes longer than its pieces is opening and closing it, half is the cache lines' way
        to each thread.
        """
        call = self._library.recording_cost
        call.restype, call.argtypes = ctypes.c_double, [ctypes.c_uint32, ctypes.c_uint64]
        two = float(np.median([call(2, 5000) for _ in range(15)]))
        return Cost(two / 2, two / 4)

    def step(self, run: Callable[[], Any]) -> Step:
        """Return what was recorded of one call."""
        counts = [
            ctypes.c_uint64.in_dll(self._library, f"recording_{name}_count")
            for name in ("job", "piece")
        ]
        on = ctypes.c_uint32.in_dll(self._library, "recording_on")
        for each in counts:
            each.value = 0
        on.value = 1
        begin = time.monotonic_ns()
        run()
        total = time.monotonic_ns() - begin
        on.value = 0
        jobs, pieces = (each.value for each in counts)
        rows = np.array((ctypes.c_uint64 * (4 * jobs)).in_dll(self._library, "recording_jobs"))
        times = np.array((ctypes.c_float * pieces).in_dll(self._library, "recording_pieces"))
        found = [
            Job(int(b), int(e), shared(times[int(first) : int(first) + int(n)].astype(np.float64)))
            for b, e, n, first in rows.reshape(-1, 4)
        ]
        return Step(total, found)


def step_of(name: str, batch: int | None) -> Callable[[], None]:
    """Return a training step of a model."""
    choice = MODELS[name]
    network = fill(plait, choice.build(plait))
    data = [plait.from_numpy(array) for array in choice.data(batch or choice.batch)]
    optimizer = choice.optimizer(plait, network.parameters())

    def step() -> None:
        optimizer.zero_grad()
        choice.loss(plait, network(*data[:-1]), data[-1]).backward()
        optimizer.step()

    return step


@dataclass
class Loss:
    """A group of operators of a step, milliseconds: on one thread; on many, what is serial in it,
    and what its pieces take beyond an even share, because they are few or uneven."""

    name: str
    time: float = 0.0
    serial: float = 0.0
    uneven: float = 0.0
    jobs: int = 0
    pieces: list[int] = field(default_factory=list)

    @property
    def median(self) -> int:
        """The median of the numbers of pieces of its jobs; 0 if it has none."""
        return int(np.median(self.pieces)) if self.pieces else 0


def losses(recorder: Recorder, run: Callable[[], None], threads: int) -> tuple[list[Loss], float]:
    """Return what keeps each group of operators from ``threads`` times its speed, worst first, and
    the bytes that all operators move."""
    with profile(record_shapes=True) as recording:
        step = recorder.step(run)
    events = [e for e in recording.events() if e.category == "operator"]
    events.sort(key=lambda e: e.start)
    groups: dict[str, Loss] = {}
    starts = np.array([job.begin / 1e3 for job in step.jobs])
    for event in events:
        name = group_of(_text(event))
        group = groups.setdefault(name, Loss(name))
        own = event.self_cpu_time_total
        group.time += own / 1e3
        low, high = np.searchsorted(starts, [event.start, event.end])
        inside = sum((step.jobs[i].end - step.jobs[i].begin) / 1e3 for i in range(low, high))
        if own + 1e-3 < inside:
            continue  # the jobs belong to an operator that it calls
        group.serial += (own - inside) / 1e3
        for job in step.jobs[low:high]:
            even = float(job.pieces.sum()) / threads
            group.uneven += (makespan(job.pieces, threads) - even) / 1e6
            group.jobs += 1
            group.pieces.append(len(job.pieces))
    moved = sum(float(average.self_bytes) for average in recording.key_averages())
    return sorted(groups.values(), key=lambda g: -(g.serial + g.uneven)), moved


def _text(event: Any) -> str:
    """Return the name and the shapes of an event as `group_of` reads them."""
    end = " (backward)" if event.backward else ""
    inputs = ", ".join(
        "None" if v is None else str(list(v)) if isinstance(v, tuple) and len(v) != 2 else str(v)
        for v in event._signature.inputs
    )
    return f"{event.name}({inputs}){end}".replace(",)", ")")


@dataclass
class Result:
    """A model's step: its threads, milliseconds and ratios; on real threads; and what stops it."""

    title: str
    step: Step
    rows: list[tuple[int, float, float]]
    two: float  # milliseconds on two threads, measured
    bytes: float  # that the operators move
    losses: list[Loss]


def result(recorder: Recorder, cost: Cost, name: str, batch: int | None) -> Result:
    """Record a model's step, predict it, and time it on two threads of the pool."""
    run = step_of(name, batch)
    run()
    run()
    step = sorted((recorder.step(run) for _ in range(3)), key=lambda s: s.total)[1]
    one = predicted(step, 1, cost)
    rows = [(t, predicted(step, t, cost) / 1e6, one / predicted(step, t, cost)) for t in THREADS]
    groups, moved = losses(recorder, run, THREADS[-1])
    with recorder.away():
        plait.set_num_threads(2)
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            run()
            times.append((time.perf_counter() - begin) * 1e3)
    return Result(MODELS[name].title, step, rows, float(np.median(times)), moved, groups)


def text(found: Result) -> str:
    """Return what was found as lines."""
    step = found.step
    pieces = sum(len(job.pieces) for job in step.jobs)
    lines = [
        f"{found.title}: {step.total / 1e6:.1f} ms, {step.serial / 1e6:.1f} ms of it serial,"
        f" {len(step.jobs)} jobs, {pieces} pieces; two real threads {found.two:.1f} ms"
    ]
    lines += [f"  {t:3d} threads {ms:9.2f} ms  {ratio:6.2f}" for t, ms, ratio in found.rows]
    lines += [
        f"    {loss.name:34s} {loss.time:8.2f} ms  serial {loss.serial:7.2f}"
        f"  uneven {loss.uneven:7.2f}  jobs {loss.jobs:5d}  pieces {loss.median}"
        for loss in found.losses[:10]
    ]
    return "\n".join(lines)


PAGE = """# Many cores: a step of each model on 1 to 64 threads, predicted

`python benchmarks/cores.py --page docs/benchmarks/cores.md` wrote this page on {date}, on
{machine}.

Kernels cut their work into pieces. An executor that only records ran the pieces of a training step
one after the other and timed each of them. The pieces are then dealt out to T threads as plait's
pool does it: each thread has a range of them, and goes on with another's when its own is empty.
What lies between the jobs is serial. Pieces that meet while they run, those of recurrent layers,
count as evenly long. A job on more than one thread costs {job:.0f} ns, and
{thread:.0f} ns for each thread, measured between two threads of this machine.

The model knows nothing of clocks that fall when all cores work, of shared caches, and of the
bandwidth of memory: the last column says what the bytes of all operators take at 200 GB/s, if none
of them are in a cache. The column *2, measured* is the same step on two threads of the pool.

## Milliseconds of a step

| model | {threads} | 2, measured | bytes at 200 GB/s |
|---|{dashes}---|---|
{milliseconds}

## Times faster than one thread

| model | {threads} | serial |
|---|{dashes}---|
{ratios}

## What stops it on {most} threads

Milliseconds of a step beyond an even share: what an operator does outside of jobs, and what its
jobs take longer because pieces are few or uneven. *Pieces* is the median of its jobs.

| model | operators | on one thread | serial | few or uneven | jobs | pieces |
|---|---|---|---|---|---|---|
{losses}
"""


def page(results: list[Result], cost: Cost) -> str:
    """Return the page."""

    def row(*cells: Any) -> str:
        return "| " + " | ".join(str(cell) for cell in cells) + " |"

    stops = [
        row(
            r.title, g.name, f"{g.time:.1f}", f"{g.serial:.2f}", f"{g.uneven:.2f}", g.jobs, g.median
        )
        for r in results
        for g in r.losses[:4]
    ]
    about = description()
    return PAGE.format(
        date=datetime.date.today().isoformat(),
        machine=f"{about['processor']} ({about['instruction sets']}), {about['processors']} cores",
        job=cost.job,
        thread=cost.thread,
        threads=" | ".join(map(str, THREADS)),
        dashes="---|" * len(THREADS),
        most=THREADS[-1],
        milliseconds="\n".join(
            row(
                r.title,
                *(f"{ms:.1f}" for _, ms, _ in r.rows),
                f"{r.two:.1f}",
                f"{r.bytes / 2e8:.1f}",
            )
            for r in results
        ),
        ratios="\n".join(
            row(
                r.title,
                *(f"{ratio:.1f}" for _, _, ratio in r.rows),
                f"{r.step.serial / r.step.total:.1%}",
            )
            for r in results
        ),
        losses="\n".join(stops),
    )


def main(arguments: list[str] | None = None) -> None:
    """Read the flags, record the models, and print a table for each."""
    parser = argparse.ArgumentParser("benchmarks/cores.py", description=__doc__)
    parser.add_argument("models", nargs="*", default=PAPER, metavar="MODEL")
    parser.add_argument("--batch", type=int, help="samples of a step; the model's own by default")
    parser.add_argument("--page", type=Path, help="write the page")
    flags = parser.parse_args(arguments)
    plait.ones(2)  # the pool is there before the recorder
    recorder = Recorder()
    cost = recorder.cost()
    print(f"a job costs {cost.job:.0f} ns, and {cost.thread:.0f} ns for each thread")
    results = []
    for name in flags.models:
        results.append(result(recorder, cost, name, flags.batch))
        print(f"\n{text(results[-1])}", flush=True)
    if flags.page:
        flags.page.write_text(page(results, cost))


if __name__ == "__main__":
    main()
