"""What an operation costs beyond its arithmetic: calls, recording, imports, memory."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from timing import Case, Figure

import plait_autograd  # noqa: F401  (the engine)
import plait_core as pc
import plait_nn

__all__ = ["FIGURES", "cases"]

SMALL_TENSORS = 200_000
IMPORT_ROUNDS = 7


def cases() -> list[Case]:
    """The cases: see `timing.Case`."""
    return [
        ("x + y, 1 element", *pair(add, requires_grad=False), 0.2),
        ("x + y, 1 element, recorded", *pair(add, requires_grad=True), 0.25),
        ("Linear(4, 4) forward", linear(pc, plait_nn, False), linear(torch, torch.nn, False), 0.25),
        (
            "Linear(4, 4) forward and backward",
            linear(pc, plait_nn, True),
            linear(torch, torch.nn, True),
            0.2,
        ),
        ("backward of a chain of 1000 nodes", chain(pc), chain(torch), 0.25),
    ]


def pair(
    make: Callable[..., Callable[[], Any]], **options: Any
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The same function for plait and for torch."""
    return make(pc, **options), make(torch, **options)


def add(library: Any, requires_grad: bool) -> Callable[[], Any]:
    """x + y of one element each."""
    x, y = (library.tensor([float(i)], requires_grad=requires_grad) for i in (1, 2))
    return lambda: x + y


def linear(library: Any, nn: Any, backward: bool) -> Callable[[], Any]:
    """A linear layer of four by four, and its backward pass if wanted."""
    layer = nn.Linear(4, 4)
    x, seed = library.randn(1, 4), library.ones(1, 4)
    if not backward:
        return lambda: layer(x)
    return lambda: layer(x).backward(seed)


def chain(library: Any) -> Callable[[], Any]:
    """Backward through a thousand additions of one element.

    The graph is recorded once and kept, so that only backward is timed.
    """
    x = library.tensor([1.0], requires_grad=True)
    y = x
    for _ in range(1000):
        y = y + x
    seed = library.tensor([1.0])
    return lambda: y.backward(seed, retain_graph=True)


def child(code: str) -> str:
    """What a fresh interpreter prints."""
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
    yield Figure("memory of a 1-element tensor", bytes_each, 320, "bytes", "mean of 200,000")
    yield Figure("left of 200,000 small tensors when freed", percent_left, 10, "%")


FIGURES: dict[str, Callable[[], Iterator[Figure]]] = {
    "import times": import_times,
    "memory of small tensors": small_tensors,
}
"""What is measured here and not as a ratio of two times."""
