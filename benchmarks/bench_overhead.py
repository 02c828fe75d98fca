"""Overheads: calls of operators, imports, memory."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from timing import Case, Figure

import plait_core as pc

__all__ = ["FIGURES", "cases"]

SMALL_TENSORS = 200_000
IMPORT_ROUNDS = 7


def cases() -> list[Case]:
    """The cases: see `timing.Case`. Recorded calls and backward are in bench_autograd."""
    return [
        ("x + y, 1 element", *pair(lambda lib, x, y: lambda: x + y), 0.2),
        ("x * 2, 1 element", *pair(lambda lib, x, y: lambda: x * 2), None),
        ("x[0]", *pair(lambda lib, x, y: lambda: x[0]), None),
        ("x.sum(), 1 element", *pair(lambda lib, x, y: lambda: x.sum()), None),
        ("x.add_(y), 1 element", *pair(lambda lib, x, y: lambda: x.add_(y)), None),
        ("ones(1)", *pair(lambda lib, x, y: lambda: lib.ones(1)), None),
        ("x.item()", *pair(lambda lib, x, y: x.item), None),
    ]


def pair(
    make: Callable[[Any, Any, Any], Callable[[], Any]],
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The same function for plait and for torch, on two tensors of one element."""
    first, second = (
        make(library, library.tensor([1.0]), library.tensor([2.0])) for library in (pc, torch)
    )
    return first, second


def child(code: str) -> str:
    """Return the output of a new interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ, capture_output=True, text=True, check=True
    )
    return done.stdout


def import_times() -> Iterator[Figure]:
    """Medians of fresh interpreters, in turns."""
    times: dict[str, list[float]] = {"numpy": [], "plait_core": [], "plait_optim": [], "torch": []}
    for turn in range(IMPORT_ROUNDS):
        for name, seconds in times.items():
            if name == "torch" and turn >= 3:
                continue
            clock = "time.perf_counter()"
            code = f"import time; t = {clock}; import {name}; print({clock} - t)"
            seconds.append(float(child(code)))
    medians = {name: 1e3 * statistics.median(seconds) for name, seconds in times.items()}
    yield Figure("import numpy", medians["numpy"], None, "ms")
    yield Figure(
        "import plait_core", medians["plait_core"], medians["numpy"] + 60, "ms", "numpy and 60 ms"
    )
    yield Figure("import plait_optim", medians["plait_optim"], None, "ms")
    yield Figure("import torch", medians["torch"], None, "ms")


MEMORY = f"""
import gc, resource
import plait_core as pc
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
x = pc.ones(1)
kept = [None] * {SMALL_TENSORS}
gc.collect()
before = resident()
for i in range({SMALL_TENSORS}):
    kept[i] = x + x
held = resident() - before
for i in range({SMALL_TENSORS}):
    kept[i] = None
gc.collect()
left = resident() - before
print(held / {SMALL_TENSORS}, 100 * left / held)
"""


def small_tensors() -> Iterator[Figure]:
    """Resident memory of a fresh process around many tensors of one element."""
    bytes_each, percent_left = map(float, child(MEMORY).split())
    yield Figure("memory of a 1-element tensor", bytes_each, 448, "bytes", "mean of 200,000")
    yield Figure("left of 200,000 small tensors when freed", percent_left, 10, "%")


FIGURES: dict[str, Callable[[], Iterator[Figure]]] = {
    "import times": import_times,
    "memory of small tensors": small_tensors,
}
"""Figures that are not ratios of two times."""
