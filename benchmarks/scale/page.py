"""The page of simulated scale, and its picture, from measurements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import figures
from measure import again, cluster_of
from model import ALGORITHMS, STRATEGIES, Cluster, Work, memory, play, program, seconds

__all__ = ["draw", "page"]

RANKS = (2, 8, 64, 512, 4096, 10_000)
LIMITS = (1 << 20, 5 << 20, 25 << 20, 100 << 20, 1 << 40)  # of a bucket; the last one: all bytes
LIMIT = 25 << 20


def _line(cells: Sequence[object]) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _table(head: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    return "\n".join([_line(head), "|" + "---|" * len(head), *map(_line, rows)])


def works(measured: dict[str, Any]) -> dict[str, Work]:
    """The models, by their titles; a layer's part of the step is its part of the arithmetic."""
    return {
        title: Work(m["nbytes"], m["forward"], m["backward"], m["step"], m["state"])
        for title, m in measured["models"].items()
    }


def _time(c: Cluster, work: Work, strategy: str, limit: float, ranks: int, how: str) -> float:
    each = c.each if how == "hierarchical" else 1
    return play(Cluster(c.link, c.inner, each), program(work, strategy, limit, ranks), ranks, how)


def _check(measured: dict[str, Any]) -> str:
    rows = []
    for row in measured["check"]["rows"]:
        for case in row["cases"]:
            simulated = again(row, case)
            difference = simulated / case["real"] - 1
            rows.append(
                (
                    f"{row['hosts']} x {row['each']}",
                    case["strategy"],
                    case["algorithm"],
                    f"{case['limit'] >> 10}",
                    f"{1e3 * case['real']:.0f}",
                    f"{1e3 * simulated:.0f}",
                    f"{100 * difference:+.0f} %",
                )
            )
    head = (
        "hosts x ranks",
        "strategy",
        "all-reduce",
        "bucket, KiB",
        "real, ms",
        "simulated, ms",
        "",
    )
    return _table(head, rows)


def _inputs(measured: dict[str, Any]) -> str:
    rows = []
    for name, row in measured["links"].items():
        link = cluster_of(row).link
        n = link.sizes[-1]
        rows.append(
            (
                name,
                f"{1e6 * link.times[0]:.0f}",
                f"{n / link.times[-1] / 1e6:.0f}",
                f"{n / link.one_way[-1] / 1e6:.0f}",
                f"{n / link.gathered[-1] / 1e6:.0f}",
                f"{1e6 * link.gap:.0f}",
            )
        )
    head = (
        "between hosts",
        "16 bytes, µs",
        "MB/s, both ways",
        "MB/s, one way",
        "MB/s, gathering",
        "gap, µs",
    )
    return _table(head, rows)


def _alone(work: Work) -> float:
    return sum(work.forward) + sum(work.backward) + work.step


def _winners(links: dict[str, Cluster], work: Work) -> str:
    """The fastest all-reduce and bucket size for each number of ranks."""
    rows = []
    for name, c in links.items():
        for ranks in RANKS:
            times = {
                (how, limit): _time(c, work, "ddp", limit, ranks, how)
                for how in ALGORITHMS
                for limit in LIMITS
            }
            how, limit = min(times, key=lambda key: times[key])
            best = times[how, limit]
            others = (f"{min(times[other, x] for x in LIMITS):.2f}" for other in ALGORITHMS)
            size = f"{limit >> 20} MiB" if limit < LIMITS[-1] else "all at once"
            share = f"{100 * _alone(work) / best:.0f} %"
            rows.append((name, ranks, how, size, *others, share))
    head = ("between hosts", "ranks", "fastest", "bucket", *ALGORITHMS, "efficiency")
    return _table(head, rows)


def _strategies(links: dict[str, Cluster], work: Work) -> str:
    """Seconds of a step and memory of a rank, with rings and buckets of 25 MiB."""
    rows = []
    for name, c in links.items():
        for ranks in RANKS:
            cells = []
            for strategy in STRATEGIES:
                step = _time(c, work, strategy, LIMIT, ranks, "ring")
                megabytes = memory(work, strategy, LIMIT, ranks) / 1e6
                cells.append(f"{step:.2f} s, {megabytes:.0f} MB")
            rows.append((name, ranks, *cells))
    return _table(("between hosts", "ranks", *STRATEGIES), rows)


def _breaks(links: dict[str, Cluster], work: Work) -> str:
    """For each link and algorithm: where steps are twice as long, and an empty reduction."""
    counts = [*(2**i for i in range(1, 14)), RANKS[-1]]
    rows = []
    for name, c in links.items():
        for how in ALGORITHMS:
            far = next(
                (n for n in counts if _time(c, work, "ddp", LIMIT, n, how) > 2 * _alone(work)),
                "more than 10 000",
            )
            inner = Cluster(c.link, c.inner, c.each if how == "hierarchical" else 1)
            empty = seconds(inner, "all_reduce", 64, counts[-1], how)
            nbytes = sum(work.nbytes)
            full = seconds(inner, "all_reduce", nbytes, counts[-1], how)
            rows.append((name, how, far, f"{full:.2f}", f"{empty:.3f}"))
    head = ("between hosts", "all-reduce", "twice the step from", "gradients, s", "64 bytes, s")
    return _table(head, rows)


def _relative_errors(measured: dict[str, Any]) -> list[float]:
    rows = measured["check"]["rows"]
    return [again(row, case) / case["real"] - 1 for row in rows for case in row["cases"]]


HEAD = """# Simulated scale

What a training step takes on up to 10 000 ranks, by a simulator that is fed with messages
measured between two hosts, and checked against two to eight real ranks. `python benchmarks/scale
measure --provider {provider}` measured on {date} ({machine}); `python benchmarks/scale page`
wrote this page. How it works: the note 0037.

```{{image}} scale.svg
:alt: seconds of a data-parallel step by the number of ranks, for four ways to reduce
```

## What went in

Messages of the provider `{provider}` between network namespaces of one machine, whose kernel is
the network; "this machine" has no limit. The *gap* is the time between small messages of one
sender.

{inputs}

Models are layers with bytes and multiplications; a step alone has the time of the page of [table
1](table1.md), two threads a rank, divided among layers by their multiplications.

## Which wins where

Data-parallel steps, seconds; each algorithm with its best size of buckets. *Exchange* is what the
providers do: each rank sums a slice of all. A hierarchy has {each} ranks a host. Efficiency is
the step of one rank over this one.
"""

BREAKS = """
## What breaks first

From how many ranks on a step takes twice as long as alone, with buckets of 25 MiB; then one
all-reduce on 10 000 ranks, of all gradients and of 64 bytes. Where the first is long, bandwidth
is what breaks: every rank sends and receives twice its gradients, however many ranks there are,
and a tree sends all of them at each of its levels. Where the second is long, the number of
messages breaks: a ring has 2 (n - 1) one after the other for each bucket, an exchange as many,
one gap apart. A hierarchy has fewer hosts to go around.
"""

SHARDING = """
## Sharding

Seconds of a step and memory of a rank (parameters, gradients, state of the optimizer), with rings
and buckets of 25 MiB. Gathering parameters again takes half an all-reduce; ZeRO 3 gathers them
twice, beside computing; the optimizer's step is divided. ZeRO 2 sends as many bytes as
data-parallel steps do, but gathers all at once at the end: that is slower where bandwidth is
short and could have been used during the backward pass, and faster where the number of messages
counts. A bucket has at least one layer, so a model with one huge layer gains little memory from
ZeRO 3.
"""

CHECK = """
## Check

Real ranks on hosts whose sending is limited to {rate}, computing that sleeps, 2 MiB of gradients;
the least of {times} steps. {within} of {count} are within 15 %. The machine had other work
meanwhile, which delays real ranks, and never the simulated ones, so the least times of steps and
of messages are compared. All hosts share the machine's queue of packets that came; {dropped}
packets were dropped there while the check ran. With the kernel's own limit of 1000 thousands were
dropped in a run of exchanges of 1 MiB by 8 ranks, and TCP sent them again; in the check before
this one three rows with such exchanges took 16 to 18 % longer than simulated. One still does,
that of ZeRO 1 (18 %), though no packet is dropped: it has two exchanges and a gathering in each
step, and in two runs the first exchanges of a connection took 327 and 331 ms (medians; 359 in a
disturbed one), as much as is simulated, later ones often 450 ms. What delays these is not known;
in one comparison a shorter queue of what each connection sends changed nothing. This check is the
last of about ten runs: its set-up (the rate, the burst, the barrier at the end of a step, the
answers of the tree, the queue of packets) was changed after misses, and every layout uses a table
of messages that was measured in its own run.
{{doc}}`decisions` compares all-reduce with gloo: both had nice -10 beside other programs, and at
normal priority under load plait took 1.1 to 3.7 of gloo's time from 256 KB to 4 MB.

{check}
"""


def page(measured: dict[str, Any]) -> str:
    """The page."""
    links = {name: cluster_of(row) for name, row in measured["links"].items()}
    models = works(measured)
    each = next(iter(links.values())).each
    separate = _relative_errors(measured)
    parts = [HEAD.format(**measured, inputs=_inputs(measured), each=each)]
    for text, table in (("", _winners), (BREAKS, _breaks), (SHARDING, _strategies)):
        parts.append(text)
        for title, work in models.items():
            parts.append(
                f"**{title}**, {sum(work.nbytes) / 1e6:.0f} MB, {_alone(work):.2f} s alone\n"
            )
            parts.append(table(links, work) + "\n")
    within = sum(abs(x) <= 0.15 for x in separate)
    check = measured["check"]
    parts.append(
        CHECK.format(
            rate=check["rate"],
            times=check["times"],
            dropped=check["dropped"],
            within=within,
            count=len(separate),
            check=_check(measured),
        )
    )
    return "\n".join(part.strip("\n") + "\n" for part in parts if part)


def draw(measured: dict[str, Any], path: Path) -> None:
    """Write an SVG: seconds of a step by the number of ranks, a panel for each model and link."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    links = {name: cluster_of(row) for name, row in measured["links"].items()}
    models = works(measured)
    figure, axes = pyplot.subplots(
        len(models),
        len(links),
        figsize=(5 * len(links), 3.4 * len(models)),
        squeeze=False,
        layout="constrained",
    )
    counts = [2**i for i in range(1, 14)] + [10_000]
    for row, (title, work) in zip(axes, models.items(), strict=True):
        for axis, (name, cluster) in zip(row, links.items(), strict=True):
            for how in ALGORITHMS:
                times = [_time(cluster, work, "ddp", LIMIT, n, how) for n in counts]
                axis.plot(counts, times, label=how, marker=".")
            alone = sum(work.forward) + sum(work.backward) + work.step
            axis.axhline(alone, color="black", linewidth=0.6, label="one rank")
            axis.set(xscale="log", yscale="log", xlabel="ranks", ylabel="seconds of a step")
            axis.set_title(f"{title}, {name}", fontsize="medium")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=5)
    figures.save(figure, path)
    pyplot.close(figure)
