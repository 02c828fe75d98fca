"""The page of simulated scale, and its picture, from measurements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measure import again, cluster_of
from model import ALGORITHMS, STRATEGIES, Cluster, Work, memory, play, program, seconds

__all__ = ["draw", "page", "tables"]

RANKS = (2, 8, 64, 512, 4096, 10_000)
LIMITS = (1 << 20, 25 << 20, 1 << 40)  # bytes of a bucket; the last one: all gradients
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
            apart = simulated / case["real"] - 1
            rows.append(
                (
                    f"{row['hosts']} x {row['each']}",
                    case["strategy"],
                    case["algorithm"],
                    f"{case['limit'] >> 10}",
                    f"{1e3 * case['real']:.0f}",
                    f"{1e3 * simulated:.0f}",
                    f"{100 * apart:+.0f} %",
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
                f"{1e6 * link.gap:.0f}",
            )
        )
    head = ("between hosts", "16 bytes, µs", "MB/s, both ways", "MB/s, one way", "gap, µs")
    return _table(head, rows)


def _algorithms(c: Cluster, work: Work) -> str:
    rows = []
    for ranks in RANKS:
        cells: list[object] = [ranks]
        for how in ALGORITHMS:
            cells.append(f"{_time(c, work, 'ddp', LIMIT, ranks, how):.2f}")
        rows.append(cells)
    return _table(("ranks", *ALGORITHMS), rows)


def _limits(c: Cluster, work: Work, how: str) -> str:
    rows = [
        (ranks, *(f"{_time(c, work, 'ddp', limit, ranks, how):.2f}" for limit in LIMITS))
        for ranks in RANKS
    ]
    return _table(("ranks", "1 MiB", "25 MiB", "one bucket"), rows)


def _strategies(c: Cluster, work: Work) -> str:
    rows = []
    for ranks in RANKS:
        cells: list[object] = [ranks]
        for strategy in STRATEGIES:
            step = _time(c, work, strategy, LIMIT, ranks, "ring")
            cells.append(f"{step:.2f} s, {memory(work, strategy, LIMIT, ranks) / 1e6:.0f} MB")
        rows.append(cells)
    return _table(("ranks", *STRATEGIES), rows)


def _breaks(links: dict[str, Cluster], work: Work) -> str:
    """For each link and algorithm: where steps are twice as long, and an almost empty reduction."""
    alone = sum(work.forward) + sum(work.backward) + work.step
    counts = [2**i for i in range(1, 14)] + [10_000]
    rows = []
    for name, c in links.items():
        for how in ALGORITHMS:
            times = {n: _time(c, work, "ddp", LIMIT, n, how) for n in counts}
            far = next((n for n in counts if times[n] > 2 * alone), None)
            inner = Cluster(c.link, c.inner, c.each if how == "hierarchical" else 1)
            empty = seconds(inner, "all_reduce", 64, counts[-1], how)
            rows.append(
                (
                    name,
                    how,
                    far if far else "never",
                    f"{times[counts[-1]]:.2f}",
                    f"{empty:.3f}",
                )
            )
    head = ("between hosts", "all-reduce", "twice the step from", "step at 10^4, s", "64 bytes, s")
    return _table(head, rows)


def tables(measured: dict[str, Any]) -> dict[str, str]:
    """The tables of the page, by name."""
    links = {name: cluster_of(row) for name, row in measured["links"].items()}
    found = {"check": _check(measured), "inputs": _inputs(measured)}
    for title, work in works(measured).items():
        found[f"breaks {title}"] = _breaks(links, work)
        for name, cluster in links.items():
            found[f"algorithms {title} {name}"] = _algorithms(cluster, work)
            found[f"buckets {title} {name}"] = _limits(cluster, work, "ring")
            found[f"strategies {title} {name}"] = _strategies(cluster, work)
    return found


def draw(measured: dict[str, Any], path: Path) -> None:
    """Write an SVG: seconds of a step by the number of ranks, a panel for each model and link."""
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = "plait"  # the same measurements give the same bytes
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
    axes[0, 0].legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def page(measured: dict[str, Any]) -> str:
    """The page."""
    return "\n".join(f"{k}\n\n{v}\n" for k, v in tables(measured).items())
