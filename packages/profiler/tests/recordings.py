"""Recordings made by hand, and at random, for the tests of reports."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from plait_profiler._recording import ROW, Context, Kind, Recording, Signature

CPU = 1 << 8
ACCELERATOR = 2 << 8


class Builder:
    """Collects rows in any order; `build` sorts them as a Recording has them."""

    def __init__(self) -> None:
        self.rows: list[dict[str, int]] = []
        self.signatures: dict[Any, tuple[int, Signature]] = {}
        self.contexts = [Context()]
        self.options: dict[str, Any] = {}

    def signature(self, name: str, kind: Kind = Kind.OP, **fields: Any) -> int:
        key = (name, kind, repr(fields))
        if key not in self.signatures:
            result = Signature(name, kind, **fields)
            self.signatures[key] = (len(self.signatures), result)
        return self.signatures[key][0]

    def context(self, module: str = "", *stack: tuple[str, int, str]) -> int:
        self.contexts.append(Context(module, module.rpartition(".")[2], stack))
        return len(self.contexts) - 1

    def add(
        self, kind: Kind, name: str = "", start: int = 0, end: int | None = None, **fields: Any
    ) -> None:
        """One row. Fields of the row go there, others to its signature."""
        row = {"thread": 1, "process": 1, "device": CPU}
        row |= {key: fields.pop(key) for key in list(fields) if key in ROW.names}
        row |= {"kind": kind, "start": start, "signature": self.signature(name, kind, **fields)}
        row.setdefault("duration", 0 if end is None else end - start)
        self.rows.append(row)

    def op(self, name: str, start: int, end: int, depth: int = 0, **fields: Any) -> None:
        self.add(Kind.OP, name, start, end, depth=depth, **fields)

    def alloc(self, time: int, address: int, size: int, depth: int = 0, **fields: Any) -> None:
        self.add(Kind.ALLOC, start=time, a=size, b=address, depth=depth, **fields)

    def free(self, time: int, address: int, size: int, depth: int = 0, **fields: Any) -> None:
        self.add(Kind.FREE, start=time, a=size, b=address, depth=depth, **fields)

    def mark(self, time: int, address: int, category: int, size: int = 0, **fields: Any) -> None:
        self.add(Kind.MARK, start=time, a=category, b=address, duration=size, **fields)

    def build(self, **options: Any) -> Recording:
        rows = np.zeros(len(self.rows), ROW)
        for row, values in zip(rows, self.rows, strict=True):
            for key, value in values.items():
                row[key] = value
        order = np.lexsort([rows[key] for key in ("depth", "start", "thread", "process")])
        options.setdefault("end", int((rows["start"]).max(initial=0)))
        signatures = [result for _, result in self.signatures.values()]
        return Recording(rows[order], signatures, self.contexts, **options)


def nested(seed: int, size: int = 60) -> Recording:
    """Random nestings on several threads and processes, with equal times and empty events."""
    chance = random.Random(seed)
    result = Builder()
    for process in range(1, chance.randint(2, 4)):
        for thread in range(1, chance.randint(2, 4)):
            where = {"process": process, "thread": thread}
            _fill(result, chance, 0, size, chance.choice([0, 0, 2]), where)
    return result.build()


def _fill(
    result: Builder, chance: random.Random, begin: int, end: int, depth: int, where: Any
) -> int:
    """Fill a time with events one after another; return when the last one ends."""
    at = begin
    while at <= end and depth < 6 and chance.random() < 0.7:
        start = chance.randint(at, end)
        stop = min(end, start + chance.choice([0, 1, 3, 9, end - start]))
        if chance.random() < 0.3:
            result.alloc(start, chance.randint(1, 9), 8, depth, **where)
            at = start
            continue
        kind = chance.choice([Kind.OP, Kind.RANGE, Kind.NODE])
        name = chance.choice("abc")
        result.add(kind, name, start, stop, depth=depth, **where)
        _fill(result, chance, start, stop, depth + 1, where)
        at = stop
        if chance.random() < 0.2:
            result.add(Kind.DEVICE, name, start, stop + 5, **where)
            result.add(Kind.STEP, "step", start, stop, **where)
    return at


def many(rows: int, seed: int = 0) -> Recording:
    """A large recording, made fast: steps of operators within ranges on two threads."""
    chance = np.random.default_rng(seed)
    result = np.zeros(rows, ROW)
    depth = np.tile(np.array([0, 1, 2, 3, 2, 1, 2, 2], np.uint16), rows // 8 + 1)[:rows]
    result["depth"] = depth
    result["start"] = np.arange(rows) * 100
    lengths = np.array([790, 390, 190, 50, 50, 290, 50, 50], np.uint64)
    result["duration"] = np.tile(lengths, rows // 8 + 1)[:rows]
    result["kind"] = Kind.OP
    result["kind"][depth == 0] = Kind.RANGE
    result["kind"][depth == 3] = Kind.ALLOC
    result["a"][depth == 3] = 64
    result["b"][depth == 3] = np.arange((depth == 3).sum()) * 64
    result["kind"][(depth == 1) & (chance.random(rows) < 0.5)] = Kind.NODE
    result["signature"] = chance.integers(0, 200, rows)
    result["context"] = chance.integers(0, 50, rows)
    result["thread"] = 1 + (np.arange(rows) >= rows // 2)
    result["process"] = 1
    signatures = [
        Signature(f"op{i % 60}", Kind.OP, (("float32", (i, i), None),), operations=i, read=i)
        for i in range(200)
    ]
    contexts = [Context(f"Net.layers.{i % 9}", "L", (("net.py", i, "f"),)) for i in range(50)]
    return Recording(result, signatures, contexts, end=rows * 100)
