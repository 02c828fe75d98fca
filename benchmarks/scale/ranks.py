"""Real ranks: measure messages between two, and run programs with computing that only sleeps.

    python ranks.py RANK SIZE PROVIDER WHERE EACH ORDERS

Ranks of one host (`EACH` of them) also meet in shared memory, for the hierarchical all-reduce.
Times are the least of some: what else runs on the machine stops one of eight ranks now and then for
longer than a step takes, and a step waits for the slowest.
"""

from __future__ import annotations

import importlib
import json
import queue
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import plait_abi
import plait_core as pc
import plait_multiprocessing as _mp  # noqa: F401 - the provider shared_memory

__all__: list[str] = []

SIZES = (16, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 2 << 20)
REPEATS = 3
IN_A_ROW = (4, 16)  # messages without a pause, as collectives send them: of large and small ones
SMALL = 200  # messages one after the other


class Ranks:
    """This rank's communicators, and the algorithms over messages."""

    def __init__(self, rank: int, size: int, provider: str, where: str, each: int) -> None:
        self.rank, self.size, self.each = rank, size, each
        importlib.import_module(f"plait_{provider}")
        self.raw = plait_abi.Communicator.open(provider, where, rank, size, 60.0)
        name = f"shm:{where[-40:]}/{rank // each}".replace("//", "/")
        self.host = plait_abi.Communicator.open("shared_memory", name, rank % each, each, 60.0)

    def swap(self, to: int, sent: Any, source: int, got: Any) -> None:
        """Send and receive at once."""
        works = [
            self.raw.start("send", (sent,), (), peer=to, asynchronous=True),
            self.raw.start("recv", (), (got,), peer=source, asynchronous=True),
        ]
        for work in works:
            work.wait()

    def ring(self, x: Any, ranks: Sequence[int]) -> None:
        """All-reduce x around some ranks."""
        n, me = len(ranks), ranks.index(self.rank)
        slices = [x[x.numel() * i // n : x.numel() * (i + 1) // n] for i in range(n)]
        got = pc.empty(max(s.numel() for s in slices))
        to, source = ranks[(me + 1) % n], ranks[(me - 1) % n]
        for i in range(2 * (n - 1)):
            sent, came = slices[(me - i) % n], slices[(me - i - 1) % n]
            part = got[: came.numel()]
            self.swap(to, sent, source, part)
            if i < n - 1:
                came += part
            else:
                came.copy_(part)

    def tree(self, x: Any) -> None:
        """All-reduce x up and down a binomial tree.

        On the way down a rank sends to one after the other, the largest subtree first. A send
        returns when its bytes are in the socket, so each is answered: two on their way at once
        would share the link, and the larger subtree would wait.
        """
        got, there, step = pc.empty(x.numel()), pc.empty(1), 1
        while step < self.size:
            if self.rank & step:
                self.raw.start("send", (x,), (), peer=self.rank - step)
                self.raw.start("recv", (), (x,), peer=self.rank - step)
                self.raw.start("send", (there,), (), peer=self.rank - step)
                break
            if self.rank + step < self.size:
                self.raw.start("recv", (), (got,), peer=self.rank + step)
                x += got
            step *= 2
        while step > 1:
            step //= 2
            if self.rank + step < self.size:
                self.raw.start("send", (x,), (), peer=self.rank + step)
                self.raw.start("recv", (), (there,), peer=self.rank + step)

    def hierarchical(self, x: Any) -> None:
        """All-reduce x within hosts, around their first ranks, and within hosts again."""
        self.host.start("all_reduce", (x,), (x,))
        if self.rank % self.each == 0:
            self.ring(x, range(0, self.size, self.each))
        self.host.start("broadcast", (x,), (x,))

    def run(self, kind: str, x: Any, algorithm: str) -> None:
        """Run a collective."""
        if kind == "all_reduce" and algorithm == "ring":
            self.ring(x, range(self.size))
        elif kind == "all_reduce" and algorithm in ("tree", "hierarchical"):
            getattr(self, algorithm)(x)
        elif kind == "all_reduce":
            self.raw.start("all_reduce", (x,), (x,))
        else:
            count = x.numel() // self.size
            parts = tuple(x[i * count : (i + 1) * count] for i in range(self.size))
            own = (parts[self.rank],)
            if kind == "reduce_scatter":
                self.raw.start("reduce_scatter", parts, own)
            else:
                self.raw.start("all_gather", own, parts)


def messages(ranks: Ranks) -> dict[str, Any]:
    """Measure messages between the first ranks of hosts: around, and from one to the next."""
    first = range(0, ranks.size, ranks.each)
    me = first.index(ranks.rank) if ranks.rank in first else None
    to = first[((me or 0) + 1) % len(first)]
    source = first[((me or 0) - 1) % len(first)]
    pair = ranks.raw.split(-1 if me is None else me // 2, ranks.rank)
    times, one_way, gathered = [], [], []
    for nbytes in SIZES:
        x, y, result, single = pc.zeros(nbytes // 4), pc.zeros(nbytes // 4), [], []
        row = min(max((2 << 20) // nbytes, IN_A_ROW[0]), IN_A_ROW[1])
        for _ in range(REPEATS):
            ranks.raw.start("barrier", (), ())
            begin = time.perf_counter()
            for _ in range(row if me is not None else 0):
                ranks.swap(to, x, source, y)
            result.append((time.perf_counter() - begin) / row)
            ranks.raw.start("barrier", (), ())
            begin = time.perf_counter()
            for i in range(2 * row if me in (0, 1) else 0):
                there = to if me == 0 else source
                if i % 2 == me:
                    ranks.raw.start("send", (x,), (), peer=there)
                else:
                    ranks.raw.start("recv", (), (x,), peer=there)
            single.append((time.perf_counter() - begin) / (2 * row))
        phase = []
        for _ in range(REPEATS):
            ranks.raw.start("barrier", (), ())
            begin = time.perf_counter()
            for _ in range(row if pair is not None else 0):
                pair.start("all_gather", (x,), (x, y) if pair.rank == 0 else (y, x))
            phase.append((time.perf_counter() - begin) / row)
        gathered.append(min(phase))
        times.append(min(result))
        one_way.append(min(single))
    x = pc.zeros(4)
    ranks.raw.start("barrier", (), ())
    begin = time.perf_counter()
    if ranks.rank == 0:
        sent = [
            ranks.raw.start("send", (x,), (), peer=ranks.each, asynchronous=True)
            for _ in range(SMALL)
        ]
        for work in sent:
            work.wait()
    elif me == 1:
        for _ in range(SMALL):
            ranks.raw.start("recv", (), (x,), peer=0)
    gap = (time.perf_counter() - begin) / SMALL
    return {
        "sizes": list(SIZES),
        "times": times,
        "one_way": one_way,
        "gathered": gathered,
        "gap": gap,
    }


def inner(ranks: Ranks) -> list[float]:
    """Measure the all-reduce within a host: seconds for each of the sizes."""
    times = []
    for nbytes in SIZES:
        x, result = pc.zeros(nbytes // 4), []
        for _ in range(REPEATS):
            ranks.host.start("barrier", (), ())
            begin = time.perf_counter()
            ranks.host.start("all_reduce", (x,), (x,))
            result.append(time.perf_counter() - begin)
        times.append(min(result))
    return times


def steps(ranks: Ranks, order: dict[str, Any]) -> float:
    """Run a program some times, and return the least of its seconds."""
    room = {
        n: pc.zeros(int(amount) // 4) for step, amount, _, n in order["program"] if step == "begin"
    }
    results = []
    for _ in range(order["times"]):
        jobs: queue.Queue[Callable[[], None] | None] = queue.Queue()
        ends: dict[int, threading.Event] = {n: threading.Event() for n in room}

        def communicate(jobs: Any = jobs) -> None:
            while (job := jobs.get()) is not None:
                job()

        thread = threading.Thread(target=communicate)
        ranks.raw.start("barrier", (), ())
        begin = time.perf_counter()
        thread.start()
        for step, amount, kind, n in order["program"]:
            if step == "compute":
                time.sleep(amount)
            elif step == "begin":

                def job(kind: str = kind, n: int = n, ends: Any = ends) -> None:
                    ranks.run(kind, room[n], order["algorithm"])
                    ends[n].set()

                jobs.put(job)
            else:
                ends[n].wait()
        jobs.put(None)
        thread.join()
        ranks.raw.start("barrier", (), ())  # the slowest rank's end counts
        results.append(time.perf_counter() - begin)
    return min(results)


def main() -> None:
    """Do what is ordered, and print the answers of rank 0."""
    rank, size, each = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[5])
    pc.set_num_threads(1)
    ranks = Ranks(rank, size, sys.argv[3], sys.argv[4], each)
    with open(sys.argv[6], encoding="utf-8") as file:
        orders = json.load(file)
    answers: list[Any] = []
    for order in orders:
        if order["what"] == "messages":
            answers.append(messages(ranks))
        elif order["what"] == "inner":
            answers.append(inner(ranks))
        else:
            answers.append(steps(ranks, order))
    if rank == 0:
        print(json.dumps(answers), flush=True)
    ranks.raw.start("barrier", (), ())


if __name__ == "__main__":
    main()
