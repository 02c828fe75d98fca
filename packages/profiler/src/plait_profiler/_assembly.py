"""A recording from the rows that the recorder and child processes wrote."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from plait_profiler._library import observer
from plait_profiler._processes import Journal
from plait_profiler._recording import ROW, Context, Kind, Recording, Signature

Array = np.ndarray[Any, Any]


def assemble(
    session: Any,
    journals: Sequence[Journal],
    steps: Sequence[tuple[str, int, int]],
    *,
    kinds: int,
    threads: dict[tuple[int, int], str],
    clock: int,
) -> Recording:
    """Return the events of a session that was stopped, and those of its child processes.

    Args:
        session: a `plait_profiler._observer.Session`.
        journals: what child processes wrote.
        steps: names, begins and ends of the program's steps.
        kinds: the sum of the wanted kinds; other sessions may have recorded more.
        threads, clock: see `Recording`.
    """
    texts = {letter: observer().texts(letter) for letter in "scmk"}
    tables = _Tables()
    begin, end = session.times()
    own = np.frombuffer(session, ROW)
    parts = [tables.take(own[(own["kind"] & kinds) != 0], texts, {})]
    for journal in journals:
        rows = np.frombuffer(journal.rows, ROW)
        # the duration of a mark is a number of bytes
        length = np.where(rows["kind"] == Kind.MARK, 0, rows["duration"])
        is_in = (rows["start"] >= begin) & (rows["start"] + length <= end)
        parts.append(tables.take(rows[is_in & ((rows["kind"] & kinds) != 0)], texts, journal.texts))
    if steps:
        parts.append(tables.steps(steps))
    rows = np.concatenate(parts) if len(parts) > 1 else parts[0]
    known = frozenset(Kind)
    return Recording(
        rows=rows[np.lexsort((rows["depth"], rows["start"], rows["thread"], rows["process"]))],
        signatures=tables.signatures,
        contexts=tables.contexts,
        threads=threads,
        dropped={Kind(kind): n for kind, n in session.dropped() if kind in known},
        begin=begin,
        end=end,
        clock=clock,
        reserved=session.reserved() if kinds & Kind.ALLOC else (),
    )


class _Tables:
    """The signatures and contexts that rows of several processes use, each once."""

    def __init__(self) -> None:
        self.signatures: list[Signature] = []
        self.contexts: list[Context] = []
        self._signatures: dict[str, int] = {}
        self._contexts: dict[Context, int] = {}

    def take(
        self, rows: Array, tables: Mapping[str, Sequence[str]], own: Mapping[str, Mapping[int, str]]
    ) -> Array:
        """Return a copy of rows of one process, with numbers of these tables."""

        def text(letter: str, number: int) -> str:
            table = tables[letter]
            result = own.get(letter, {}).get(number)
            return result or (table[number] if number < len(table) else "")

        def signature(number: int) -> int:
            key = text("s", number)
            if key not in self._signatures:
                self._signatures[key] = len(self.signatures)
                self.signatures.append(_signature(key))
            return self._signatures[key]

        def context(number: int) -> int:
            result = Context()
            if pair := text("c", number):
                module, stack = json.loads(pair)
                path, kind = json.loads(text("m", module) or '["", ""]')
                lines = json.loads(text("k", stack) or "[]")
                result = Context(
                    path, kind, tuple((file, line, name) for file, line, name in lines)
                )
            if result not in self._contexts:
                self._contexts[result] = len(self.contexts)
                self.contexts.append(result)
            return self._contexts[result]

        context(0)  # it is the first one
        rows = rows.copy()
        rows["signature"] = _renumbered(rows["signature"], signature)
        rows["context"] = _renumbered(rows["context"], context)
        return rows

    def steps(self, steps: Sequence[tuple[str, int, int]]) -> Array:
        """Return rows of the program's steps, on the main thread."""
        rows = np.zeros(len(steps), ROW)
        for row, (name, begin, end) in zip(rows, steps, strict=True):
            row["start"], row["duration"] = begin, end - begin
            row["signature"] = len(self.signatures)
            self.signatures.append(Signature(name, Kind.STEP))
        rows["kind"] = Kind.STEP
        rows["device"] = 1 << 8
        rows["process"] = os.getpid()
        rows["thread"] = threading.main_thread().native_id
        return rows


def _renumbered(numbers: Array, number: Callable[[int], int]) -> Array:
    """Return numbers of another table, which `number` gives for each one that is used."""
    if not len(numbers):
        return numbers
    used = np.flatnonzero(np.bincount(numbers))
    table = np.zeros(used[-1] + 1, np.uint32)
    table[used] = [number(int(each)) for each in used]
    result: Array = table[numbers]
    return result


def _signature(text: str) -> Signature:
    if not text:
        return Signature("", Kind.RANGE)
    parts = json.loads(text)
    return Signature(
        parts["name"],
        Kind(parts["kind"]),
        tuple(_value(each) for each in parts.get("inputs", ())),
        tuple(_value(each) for each in parts.get("outputs", ())),
        parts.get("operations", 0),
        parts.get("read", 0),
        parts.get("written", 0),
        parts.get("composite", False),
    )


def _value(value: Any) -> Any:
    """Return a value of a signature as `Signature.inputs` has it."""
    if isinstance(value, list):
        return [_value(item) for item in value]
    if isinstance(value, dict):
        if "n" in value:
            return tuple(value["n"])
        dtype, shape, strides = value["t"]
        return dtype, tuple(shape), None if strides is None else tuple(strides)
    return value
