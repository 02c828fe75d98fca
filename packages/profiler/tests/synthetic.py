"""Recordings that no program made: training steps of random depth, for tests of the reports.

A step's events are laid out once, as a list of begins, ends and instants. It is then repeated with
NumPy, with other times each, so that recordings of 10^7 rows take seconds.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from plait_profiler._recording import ROW, Category, Context, Kind, Recording, Signature

__all__ = ["recording"]

CPU = 1 << 8
ACCELERATOR = 2 << 8
PARAMETERS = 4
OPERATORS = ("linear", "add", "mul", "relu", "softmax", "layer_norm", "matmul", "sum")
CLOCK = 1_790_000_000_000_000_000


@dataclass
class Tables:
    """Signatures and contexts by their value."""

    signatures: list[Signature] = field(default_factory=list)
    contexts: dict[Context, int] = field(default_factory=lambda: {Context(): 0})

    def signature(self, signature: Signature) -> int:
        if signature not in self.signatures:  # its lists have no hash
            self.signatures.append(signature)
        return self.signatures.index(signature)

    def context(self, context: Context) -> int:
        return self.contexts.setdefault(context, len(self.contexts))


@dataclass
class Script:
    """What happens in one step: rows, and the order of their borders in time."""

    thread: int = 0
    rows: list[dict[str, int]] = field(default_factory=list)
    borders: list[tuple[int, bool]] = field(default_factory=list)  # (row, whether it ends)
    depths: dict[int, int] = field(default_factory=lambda: {0: 0, 1: 0})

    @property
    def depth(self) -> int:
        return self.depths[self.thread]

    def begin(self, kind: Kind, signature: int, context: int = 0, **columns: int) -> int:
        row = len(self.rows)
        values = {"kind": kind, "signature": signature, "context": context, "depth": self.depth}
        self.rows.append({**values, "thread": self.thread, "device": CPU, **columns})
        self.borders.append((row, False))
        self.depths[self.thread] += 1
        return row

    def end(self, row: int) -> None:
        self.borders.append((row, True))
        self.depths[self.thread] -= 1

    def instant(self, kind: Kind, bytes_: int, address: int) -> None:
        row = self.begin(kind, 0, a=bytes_, b=address)
        self.end(row)


def _operator(script: Script, tables: Tables, dice: random.Random, **columns: int) -> int:
    """Write a call with random calls within it; return the row."""
    name = dice.choice(OPERATORS)
    shape = (dice.choice((8, 16, 32)), dice.choice((64, 128)))
    tensor = ("float32", shape, None)
    inputs: tuple[Any, ...] = (tensor, tensor) if name != "sum" else ([tensor, tensor], 1, None)
    size = 4 * shape[0] * shape[1]
    module = f"Net.layers.{dice.randrange(4)}"
    context = tables.context(Context(module, "Linear", ((f"net {name}.py", 12, "forward"),)))
    signature = tables.signature(
        Signature(name, Kind.OP, inputs, (tensor,), 2 * shape[0] * shape[1], 2 * size, size)
    )
    row = script.begin(Kind.OP, signature, context, **columns)
    while dice.random() < 0.35 and script.depth < 9:
        _operator(script, tables, dice)
    script.end(row)
    return row


def _step(tables: Tables, dice: random.Random, calls: int, threads: int) -> Script:
    """Write a step: a batch, a forward pass, a backward pass, and an optimizer's step."""
    script = Script()
    data = script.begin(Kind.DATA, tables.signature(Signature("next batch", Kind.DATA)))
    script.end(data)
    forward = script.begin(Kind.RANGE, tables.signature(Signature("forward", Kind.RANGE)))
    addresses = []
    for node in range(1, calls + 1):
        size = 256 * dice.randrange(1, 64)
        address = 1 << 20 | node << 8
        script.instant(Kind.ALLOC, size, address)
        addresses.append((size, address))
        _operator(script, tables, dice, link=node, a=node)
    script.end(forward)
    script.thread = threads - 1
    whole = script.begin(Kind.BACKWARD, tables.signature(Signature("backward", Kind.BACKWARD)))
    for node in range(calls, 0, -1):
        name = tables.signature(Signature(f"{dice.choice(OPERATORS).title()}Backward", Kind.NODE))
        row = script.begin(Kind.NODE, name, link=node)
        script.instant(Kind.ALLOC, 4096, 1 << 19)
        _operator(script, tables, dice)
        script.instant(Kind.FREE, 4096, 1 << 19)
        size, address = addresses[node - 1]
        script.end(row)
        script.instant(Kind.FREE, size, address)
    script.end(whole)
    script.thread = 0
    optimizer = script.begin(Kind.RANGE, tables.signature(Signature("SGD.step", Kind.RANGE)))
    _operator(script, tables, dice)
    script.end(optimizer)
    return script


def _repeat(script: Script, steps: int, random_: np.random.Generator, period: int) -> np.ndarray:
    """Return the rows of all steps; step k is within ``[k * period, (k + 1) * period)``."""
    width = len(script.rows)
    rows = np.zeros((steps, width), ROW)
    for name in ("kind", "signature", "context", "depth", "thread", "device", "a", "b", "link"):
        rows[name] = [row.get(name, 0) for row in script.rows]
    gaps = random_.exponential(period / (1.25 * len(script.borders)), (steps, len(script.borders)))
    times = np.cumsum(gaps.astype(np.int64) + 1, axis=1)
    times = np.minimum(times, period - 2 * len(script.borders)) + np.arange(len(script.borders))
    begins = [at for at, (_, ends) in enumerate(script.borders) if not ends]
    ends = {row: at for at, (row, ends) in enumerate(script.borders) if ends}
    rows["start"] = times[:, begins] + (np.arange(steps) * period)[:, None]
    rows["duration"] = times[:, [ends[row] for row in range(width)]] - times[:, begins]
    instants = (rows["kind"] & (Kind.ALLOC | Kind.FREE)) != 0
    rows["duration"][instants] = 0
    numbers = (np.arange(steps) * (rows["link"].max() if width else 0))[:, None].astype(np.uint64)
    for name in ("link", "a"):
        linked = (rows[name] != 0) & ~instants
        rows[name] = np.where(linked, rows[name] + numbers, rows[name])
    return rows


def _device_rows(launched: np.ndarray, random_: np.random.Generator) -> np.ndarray:
    """Return the work that the given calls launched: one after the other, in their order."""
    rows = launched.copy()
    rows["kind"], rows["device"], rows["depth"], rows["b"] = Kind.DEVICE, ACCELERATOR, 0, 7
    rows["duration"] = 1 + random_.integers(500, 4000, len(rows)).astype(np.uint64)
    whole = np.cumsum(rows["duration"].astype(np.int64))
    before = whole - rows["duration"].astype(np.int64)
    ends = np.maximum.accumulate(launched["start"].astype(np.int64) + 2000 - before) + whole
    rows["start"] = ends - rows["duration"].astype(np.int64)
    return rows


def recording(
    events: int = 2000,
    *,
    processes: int = 1,
    threads: int = 2,
    calls: int = 20,
    memory: bool = True,
    device: bool = True,
    seed: int = 0,
) -> Recording:
    """Return a recording of about `events` rows.

    Args:
        events: how many rows, at least those of one step of each process.
        processes: each has the same steps, at other times.
        threads: 1 for a backward pass on the main thread, 2 for one on a thread of its own.
        calls: operators in a step's forward pass, with others within them.
        memory: with allocations, frees and marks.
        device: with work of an accelerator.
        seed: of the random numbers.
    """
    dice, random_ = random.Random(seed), np.random.default_rng(seed)
    tables = Tables()
    tables.signature(Signature("", Kind.ALLOC))
    script = _step(tables, dice, calls, threads)
    step = tables.signature(Signature("ProfilerStep", Kind.STEP))
    width = len(script.rows) + 1 + calls * device
    steps = max(1, events // (width * processes))
    period = 4000 * len(script.borders)
    parts, names = [], {}
    for process in range(100, 100 + processes):
        launched = _repeat(script, steps, random_, period).ravel()
        launched["thread"] += process
        launched["process"] = process
        names[process, process] = "main"
        if threads > 1:
            names[process, process + 1] = "backward"
        parts.append(launched)
        if device:
            calls_ = launched[(launched["kind"] == Kind.OP) & (launched["a"] != 0)]
            parts.append(_device_rows(calls_, random_))
        markers = np.zeros(steps, ROW)
        markers["kind"], markers["signature"], markers["device"] = Kind.STEP, step, CPU
        markers["start"], markers["duration"] = np.arange(steps) * period, period
        markers["thread"] = markers["process"] = process
        parts.append(markers)
        if memory:
            parts.append(_parameters(process))
    rows = np.concatenate(parts)
    if not memory:
        rows = rows[(rows["kind"] & (Kind.ALLOC | Kind.FREE)) == 0]
    rows["start"] += 10**12
    # where a recorder writes columns: 0 is the number of a launch that was not on a device
    rows["a"][(rows["kind"] == Kind.OP) & (not device)] = 0
    rows = rows[np.lexsort((rows["depth"], rows["start"], rows["thread"], rows["process"]))]
    return Recording(
        rows,
        tables.signatures,
        list(tables.contexts),
        names,
        {Kind.OP: 3},
        10**12,
        10**12 + steps * period,
        CLOCK - 10**12,
        [(10**12, 1 << 19), (10**12 + period // 3, 3 << 18)] if memory else [],
    )


def _parameters(process: int) -> np.ndarray:
    """Return the allocations and marks of a few parameters and their gradients."""
    rows = np.zeros(4 * PARAMETERS, ROW)
    addresses = (1 + np.arange(2 * PARAMETERS)) << 12
    rows["kind"][0::2], rows["kind"][1::2] = Kind.ALLOC, Kind.MARK
    rows["b"] = np.repeat(addresses, 2)
    rows["a"][0::2] = 1 << 14
    rows["a"][1::2] = np.where(np.arange(2 * PARAMETERS) % 2, Category.GRADIENT, Category.PARAMETER)
    rows["start"] = np.arange(len(rows))
    rows["process"] = rows["thread"] = process
    rows["device"] = CPU
    return rows
