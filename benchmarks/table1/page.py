"""The page of the site, written from records."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from models import MODELS
from peers import PEERS
from summary import by_case, mean_ratio, ratio, summary, throughput
from turns import Case, Record

__all__ = ["markdown", "rows"]

HEAD = """# Table 1: whole models

Table 1 of PyTorch's paper on a CPU: training steps of six models in float32, then inference. Every
library runs in a process of its own, and they make steps in turns, A B C A B C, on the same
processors. A figure is the median of {rounds} turns; behind ± is half the distance of their
quartiles. The models of plait and PyTorch are one source, `benchmarks/models`, with the same
weights and the same batch; those of the others are in `benchmarks/table1/sides`. Dropout is zero.

| | |
|---|---|
{machine}

{versions}
"""

TAIL = """## Measuring it

```console
$ python3 tools/run.py table1 -- --quick       # plait and PyTorch, some minutes
$ python3 tools/run.py table1                  # everything on this page, hours
$ python3 tools/run.py table1 -- --models resnet50 --peers plait torch --sections training
```

Each library gets a virtual environment of its own; one that pip does not find is "N/A", with the
reason. One library works at a time, after a pause in which threads of the one before stop spinning,
but all hold their memory. A turn is one step, or as many as take 0.3 seconds. "torch tuned" is what
PyTorch's guide recommends: `channels_last` for images, `fused=True` optimizers, `inference_mode`,
and tcmalloc preloaded where the system has it.

Measure on a machine that does nothing else, and repeat runs: other work hits most those libraries
whose threads spin while they wait, so that one run's ratios are no better than its spreads.
"""

SECTIONS: dict[str, tuple[str, str]] = {
    "training": ("Training", "Forward, backward and the optimizer's step, on {threads} threads."),
    "inference": ("Inference", "Forward passes, on {threads} threads."),
    "one-thread": ("Training with one thread", "Every library keeps to one processor."),
    "avx2": (
        "Training without AVX-512",
        "Every library keeps to AVX2, by its own environment variables, on {threads} threads.",
    ),
    "neighbour": (
        "Training beside a busy process",
        "Another process computes all the time on one of the processors; {threads} threads.",
    ),
}


def markdown(
    records: Sequence[Record], machine: dict[str, str], date: str, picture: str | None
) -> str:
    """Return the page.

    Args:
        records: of all sections that were measured.
        machine: what is said of it, see `machine.description`.
        date: of the measurement.
        picture: the path of the picture from the page, or None.
    """
    turns = {len(record.seconds) for record in records if record.seconds} or {0}
    rounds = " to ".join(str(n) for n in sorted({min(turns), max(turns)}))
    lines = "\n".join(f"| {key} | {value} |" for key, value in [*machine.items(), ("date", date)])
    text = HEAD.format(rounds=rounds, machine=lines, versions=versions(records))
    if picture:
        text += f"\n![Throughput of each model over that of PyTorch]({picture})\n"
    for name, (title, words) in SECTIONS.items():
        cases = by_case(records, name)
        if cases:
            threads = next(iter(cases)).threads
            text += f"\n## {title}\n\n{words.format(threads=threads)}\n\n{section(cases)}\n"
    for mode in ("training", "inference"):
        if cases := by_case(records, f"batches-{mode}"):
            text += f"\n## Batch sizes, {mode}\n\n{batches(cases)}\n"
    if cases := by_case(records, "training"):
        text += f"\n## Memory and first steps\n\n{memory(cases)}\n"
    text += missing(records)
    return text + "\n" + TAIL


def rows(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """Return a table of Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in body])


def versions(records: Iterable[Record]) -> str:
    """Return a table of the libraries that ran: names, versions, how they run."""
    results: dict[str, str] = {}
    for record in records:
        if record.version:
            results[record.peer] = record.version
    body = [(name, version, PEERS[name].note) for name, version in results.items()]
    return rows(("library", "version", ""), body)


def section(cases: dict[Case, dict[str, Record]]) -> str:
    """Return the tables of a section: throughput, milliseconds, and plait's ratios."""
    head = ["", *(heading(case) for case in cases)]
    peers = list(dict.fromkeys(peer for result in cases.values() for peer in result))

    def table(text: Callable[[Case, Record], str], best: Callable[[Any], Any]) -> str:
        body = []
        for peer in peers:
            row = [peer]
            for case, result in cases.items():
                record = result.get(peer)
                there = record is not None and bool(record.seconds)
                cell = text(case, record) if there and record else "N/A"
                row.append(f"**{cell}**" if there and record is best(result) else cell)
            body.append(row)
        return rows(head, body)

    def fastest(result: dict[str, Record]) -> Record | None:
        there = [record for record in result.values() if record.seconds]
        return min(there, key=lambda record: summary(record.seconds).median, default=None)

    def speed(case: Case, record: Record) -> str:
        per_second = throughput(record, MODELS[case.model].items)
        return f"{number(per_second)} ± {summary(record.seconds).spread:.0%}"

    def milliseconds(case: Case, record: Record) -> str:
        return number(summary(record.seconds).median * 1e3)

    def processors(case: Case, record: Record) -> str:
        return number(summary(record.cpu).median * 1e3)

    def least(result: dict[str, Record]) -> Record | None:
        there = [record for record in result.values() if record.seconds]
        return min(there, key=lambda record: summary(record.cpu).median, default=None)

    ratios = []
    for peer in peers:
        if peer != "plait":
            empty = Record(next(iter(cases)), peer)
            values = [
                ratio(result.get("plait", empty), result.get(peer, empty))
                for result in cases.values()
            ]
            if not all(map(math.isnan, values)):
                mean = mean_ratio(values)
                ratios.append([f"to {peer}", *map(fixed, values), fixed(mean)])
    parts = [
        "Throughput (more is better):",
        table(speed, fastest),
        "Milliseconds of a step (less is better):",
        table(milliseconds, fastest),
        "Milliseconds of the processors' time, of all threads, in a step (less is better):",
        table(processors, least),
    ]
    if ratios:
        parts += [
            "plait's time over the other's (below 1 plait is faster):",
            rows([*head, "geometric mean"], ratios),
        ]
    return "\n\n".join(parts)


def heading(case: Case) -> str:
    """Return a column's title: model, batch, unit."""
    model = MODELS[case.model]
    return f"{model.title}, {case.batch}, {model.unit}"


def batches(cases: dict[Case, dict[str, Record]]) -> str:
    """Return a table of milliseconds by model and batch, and plait's ratios."""
    peers = list(dict.fromkeys(peer for result in cases.values() for peer in result))
    others = [peer for peer in peers if peer != "plait"]
    body = []
    for case, result in cases.items():
        times = [
            number(summary(result[peer].seconds).median * 1e3)
            if peer in result and result[peer].seconds
            else "N/A"
            for peer in peers
        ]
        empty = Record(case, "")
        ours = result.get("plait", empty)
        compared = [fixed(ratio(ours, result.get(peer, empty))) for peer in others]
        body.append([MODELS[case.model].title, str(case.batch), *times, *compared])
    return rows(
        ["model", "batch", *(f"{p}, ms" for p in peers), *(f"plait to {p}" for p in others)], body
    )


def memory(cases: dict[Case, dict[str, Record]]) -> str:
    """Return the tables of peak memory and of first steps."""
    peers = list(dict.fromkeys(peer for result in cases.values() for peer in result))
    head = ["", *(MODELS[case.model].title for case in cases)]

    def table(text: Callable[[Record], str]) -> str:
        body = []
        for peer in peers:
            cells = [result.get(peer) for result in cases.values()]
            row = [text(cell) if cell is not None and cell.seconds else "N/A" for cell in cells]
            body.append([peer, *row])
        return rows(head, body)

    return "\n\n".join(
        [
            "The largest resident size of the process in training, in MB:",
            table(lambda record: f"{record.memory / 1e6:.0f}"),
            "Milliseconds of the first step and of the second one, each made once:",
            table(lambda record: f"{number(record.first * 1e3)}; {number(record.second * 1e3)}"),
        ]
    )


def missing(records: Iterable[Record]) -> str:
    """Return a list of what is not available, and why, or nothing."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for record in records:
        if record.missing:
            title = MODELS[record.case.model].title
            titles = reasons.setdefault((record.peer, record.missing), [])
            if title not in titles:
                titles.append(title)
    if not reasons:
        return ""
    lines = [
        f"- {peer}, {', '.join(titles)}: {reason}" for (peer, reason), titles in reasons.items()
    ]
    return "\n## What is not available\n\n" + "\n".join(lines) + "\n"


def number(value: float) -> str:
    """Return three significant digits."""
    if value >= 1e6:
        return f"{value / 1e6:.3g}e6"
    return f"{value:.3g}" if value < 1000 else f"{float(f'{value:.3g}'):.0f}"


def fixed(value: float) -> str:
    """Return two digits behind the point, or N/A."""
    return "N/A" if math.isnan(value) else f"{value:.2f}"
