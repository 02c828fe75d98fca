"""Times of collectives and of training steps on many ranks, from times measured between two.

A *program* is what one rank does in a step: computing, beginning collectives, waiting for them. The
simulator adds up its times (`play`), real ranks run it (ranks.py); so the two can be compared.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = [
    "ALGORITHMS",
    "STRATEGIES",
    "Cluster",
    "Instruction",
    "Link",
    "Work",
    "buckets",
    "memory",
    "play",
    "program",
    "seconds",
]


@dataclass(frozen=True)
class Link:
    """Messages between ranks of two hosts, as they were measured.

    Attributes:
        sizes: bytes, ascending.
        times: seconds until a message of each size is there, while every rank sends and receives.
        one_way: the same, while nothing else is sent.
        gathered: seconds of an all-gather of so many bytes of each of two ranks: within a
            collective both sides know what comes, which messages must tell.
        gap: seconds between small messages that one rank sends one after the other.
    """

    sizes: Sequence[float]
    times: Sequence[float]
    one_way: Sequence[float]
    gathered: Sequence[float]
    gap: float

    def time(self, nbytes: float, table: str = "times") -> float:
        """Seconds of one message: interpolated, beyond the table by its last slope.

        At least its bytes over the bandwidth of large ones: what a device sends at once without
        waiting, a link that is always in use does not.
        """
        times: Sequence[float] = getattr(self, table)
        i = min(max(bisect.bisect_left(self.sizes, nbytes), 1), len(self.sizes) - 1)
        (a, b), (s, t) = self.sizes[i - 1 : i + 1], times[i - 1 : i + 1]
        between = s + (t - s) * (nbytes - a) / (b - a)
        return max(times[0], between, nbytes * times[-1] / self.sizes[-1])


@dataclass(frozen=True)
class Cluster:
    """Ranks, some on each host.

    Attributes:
        link: between hosts. The ranks of a host share one.
        inner: seconds of an all-reduce within a host of so many bytes by so many ranks.
        each: ranks of a host.
        add: seconds of adding one byte of a tensor to another.
        jitter: standard deviation of a step's computing over ranks, as a share of it.
    """

    link: Link
    inner: Callable[[float, int], float]
    each: int = 1
    add: float = 0.0
    jitter: float = 0.0


def _exchange(c: Cluster, nbytes: float, ranks: int, phases: int) -> float:
    """Each rank sends a slice to each other one; in the second phase the sums go back."""
    if ranks == 1:
        return 0.0
    if ranks <= c.each:
        return c.inner(nbytes, ranks) * phases / 2
    outside = min(c.each, ranks) * (ranks - min(c.each, ranks))  # messages through a host's link
    once = c.link.time(outside * nbytes / ranks, "gathered") + (outside - 1) * c.link.gap
    return phases * once + nbytes * c.add


def _ring(c: Cluster, nbytes: float, ranks: int) -> float:
    """Slices go around, each rank adds its own, then the sums go around."""
    steps = 2 * (ranks - 1)
    return steps * c.link.time(nbytes / ranks) + nbytes * c.add if ranks > 1 else 0.0


def _tree(c: Cluster, nbytes: float, ranks: int) -> float:
    """Up a binomial tree, and down again."""
    depth = math.ceil(math.log2(ranks))
    return depth * (2 * c.link.time(nbytes, "one_way") + nbytes * c.add)


def _hierarchical(c: Cluster, nbytes: float, ranks: int) -> float:
    """Within each host, then a ring of one rank a host, then within each host again."""
    inside = min(c.each, ranks)
    around = _ring(c, nbytes, math.ceil(ranks / inside))
    return around + (2 * c.inner(nbytes, inside) if inside > 1 else 0.0)


ALGORITHMS = ("exchange", "ring", "tree", "hierarchical")


def seconds(c: Cluster, kind: str, nbytes: float, ranks: int, algorithm: str = "exchange") -> float:
    """Seconds of a collective; reduce_scatter and all_gather are one phase of an exchange."""
    if kind != "all_reduce":
        if algorithm == "exchange":
            return _exchange(c, nbytes, ranks, 1)
        return _ring(c, nbytes, ranks) / 2  # the other algorithms share the work as a ring does
    if algorithm == "exchange":
        return _exchange(c, nbytes, ranks, 2)
    return {"ring": _ring, "tree": _tree, "hierarchical": _hierarchical}[algorithm](
        c, nbytes, ranks
    )


@dataclass(frozen=True)
class Work:
    """A model: for each layer its bytes of parameters and seconds of computing, for one rank.

    Attributes:
        nbytes, forward, backward: one entry a layer, in the order of the forward pass.
        step: seconds of the optimizer for all parameters.
        state: bytes of optimizer state for each byte of parameters.
    """

    nbytes: Sequence[float]
    forward: Sequence[float]
    backward: Sequence[float]
    step: float
    state: float = 2.0


STRATEGIES = ("ddp", "zero1", "zero2", "zero3")
Instruction = tuple[str, float, str, int]
"""(what, seconds or bytes, kind of a collective, its number): compute, begin or wait."""


def buckets(work: Work, limit: float) -> list[list[int]]:
    """Divide layers, from the last one, into buckets of at least `limit` bytes."""
    results: list[list[int]] = [[]]
    filled = 0.0
    for i in reversed(range(len(work.nbytes))):
        if filled >= limit:
            results.append([])
            filled = 0.0
        results[-1].append(i)
        filled += work.nbytes[i]
    return results


def program(work: Work, strategy: str, limit: float, ranks: int) -> list[Instruction]:
    """The work of a rank in one step.

    - ``ddp``: buckets are all-reduced while the backward pass runs.
    - ``zero1``: so too; each rank steps its share, and the parameters are gathered.
    - ``zero2``: gradients are reduced to their owners only, then as ``zero1``.
    - ``zero3``: a bucket's parameters are gathered before its forward and its backward computing,
      one bucket ahead, and gradients are reduced to their owners.
    """
    done: list[Instruction] = []
    parts = buckets(work, limit)
    size = [sum(work.nbytes[i] for i in part) for part in parts]
    number = 0
    pending: list[int] = []

    def begin(kind: str, nbytes: float) -> int:
        nonlocal number
        number += 1
        done.append(("begin", nbytes, kind, number))
        return number

    def wait(which: int) -> None:
        done.append(("wait", 0.0, "", which))

    def through(order: Sequence[int], times: Sequence[float], reduce: str) -> None:
        ahead = begin("all_gather", size[order[0]]) if strategy == "zero3" else 0
        for at, b in enumerate(order):
            if strategy == "zero3":
                wait(ahead)
                if at + 1 < len(order):
                    ahead = begin("all_gather", size[order[at + 1]])
            done.append(("compute", sum(times[i] for i in parts[b]), "", 0))
            if reduce:
                pending.append(begin(reduce, size[b]))

    through(list(reversed(range(len(parts)))), work.forward, "")
    kind = "all_reduce" if strategy in ("ddp", "zero1") else "reduce_scatter"
    through(range(len(parts)), work.backward, kind)
    for each in pending:
        wait(each)
    done.append(("compute", work.step / (1 if strategy == "ddp" else ranks), "", 0))
    if strategy in ("zero1", "zero2"):
        wait(begin("all_gather", sum(work.nbytes)))
    return done


def play(c: Cluster, steps: Sequence[Instruction], ranks: int, algorithm: str) -> float:
    """Seconds of a program: collectives run one after the other, beside the computing.

    All ranks wait for the slowest one's computing: of normally distributed times the expected
    largest one lies about sqrt(2 ln n) standard deviations above the mean.
    """
    slowest = 1 + c.jitter * math.sqrt(2 * math.log(ranks))
    now = free = 0.0
    ends: dict[int, float] = {}
    for step, amount, kind, number in steps:
        if step == "compute":
            now += amount * slowest
        elif step == "begin":
            free = max(free, now) + seconds(c, kind, amount, ranks, algorithm)
            ends[number] = free
        else:
            now = max(now, ends[number])
    return max(now, free)


def memory(work: Work, strategy: str, limit: float, ranks: int) -> float:
    """Bytes of parameters, gradients and optimizer state of a rank; buckets of ``zero3`` too."""
    whole = sum(work.nbytes)
    largest = max(sum(work.nbytes[i] for i in part) for part in buckets(work, limit))
    divided = STRATEGIES.index(strategy)
    state = work.state * whole / (ranks if divided >= 1 else 1)
    gradients = whole / ranks + largest if divided >= 2 else whole
    parameters = whole / ranks + 2 * largest if divided >= 3 else whole
    return parameters + gradients + state
