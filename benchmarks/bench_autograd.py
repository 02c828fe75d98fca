"""The time of recording and of backward passes, compared with torch in turns.

Backward is measured alone: the graph is kept and run again, so that neither side pays for the
forward operators or for freeing the graph.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from timing import Case, Figure

import plait_autograd  # noqa: F401 - the engine
import plait_core as pc
import plait_nn as nn

__all__ = ["FIGURES", "cases"]

NODES = 1000
REPEATS = 300  # repetitions of short cases in one call
ROUNDS = 200  # repetitions of figures in nanoseconds, to reduce noise


def chain(library: Any) -> Callable[[], object]:
    """Backward of 1000 nodes: mul, add, relu, tanh of one element, again and again."""
    x = library.ones(1, requires_grad=True)
    weight = library.full((1,), 0.999)
    y = x
    for _ in range(NODES // 4):
        y = library.tanh(library.relu(y * weight + weight))
    y.backward(retain_graph=True)
    return lambda: y.backward(retain_graph=True)


def whole_chain(library: Any) -> Callable[[], object]:
    """The same with the forward pass and the destruction of the graph."""
    x = library.ones(1, requires_grad=True)
    weight = library.full((1,), 0.999)
    relu, tanh = library.relu, library.tanh

    def run() -> None:
        y = x
        for _ in range(NODES // 4):
            y = tanh(relu(y * weight + weight))
        y.backward()

    return run


def repeated(step: Callable[[], object]) -> Callable[[], object]:
    """A function that takes the step many times."""

    def run() -> None:
        for _ in range(REPEATS):
            step()

    return run


def recorded_add(library: Any) -> Callable[[], object]:
    """x + y of one element where x requires grad."""
    x, y = library.ones(1, requires_grad=True), library.ones(1)
    return repeated(lambda: x + y)


def linear(library: Any, layers: Any, backward: bool) -> Callable[[], object]:
    """Linear(4, 4) on one row, alone or with the backward of its sum."""
    layer, x = layers.Linear(4, 4), library.ones(1, 4)
    if not backward:
        return repeated(lambda: layer(x))

    def step() -> None:
        layer(x).sum().backward()

    return repeated(step)


def perceptron(library: Any, layers: Any) -> Callable[[], object]:
    """Forward and backward of three layers on a batch of 8."""
    model = layers.Sequential(
        layers.Linear(32, 64),
        layers.ReLU(),
        layers.Linear(64, 64),
        layers.ReLU(),
        layers.Linear(64, 8),
    )
    x = library.ones(8, 32)

    def step() -> None:
        model(x).sum().backward()

    return repeated(step)


def cases() -> list[Case]:
    """(name, a repetition with plait, one with torch, the bar for their ratio)."""
    torch.set_num_threads(1)
    layers = torch.nn
    return [
        (f"backward of a chain of {NODES} nodes", chain(pc), chain(torch), 0.2),
        (
            f"chain of {NODES} nodes, forward and backward",
            whole_chain(pc),
            whole_chain(torch),
            0.2,
        ),
        (f"recorded x + y, {REPEATS} times", recorded_add(pc), recorded_add(torch), 0.25),
        ("Linear(4, 4) forward", linear(pc, nn, False), linear(torch, layers, False), 0.25),
        (
            "Linear(4, 4) forward and backward",
            linear(pc, nn, True),
            linear(torch, layers, True),
            0.2,
        ),
        ("three layers, batch of 8", perceptron(pc, nn), perceptron(torch, layers), 0.15),
    ]


def chained(x: Any, weight: Any) -> Any:
    """Five operators of one element, the last of which a training would differentiate."""
    return pc.tanh(pc.relu(x * weight + weight)).sum()


def recording() -> Iterator[Figure]:
    """The additional time of a recorded operator, including the destruction of its node."""
    weight = pc.full((1,), 0.999)
    leaf, constant = pc.ones(1, requires_grad=True), pc.ones(1)
    recorded = repeated(lambda: chained(leaf, weight))
    plain = repeated(lambda: chained(constant, weight))
    fastest = [float("inf"), float("inf")]
    for _ in range(ROUNDS):
        for side, run in enumerate((recorded, plain)):
            start = time.perf_counter()
            run()
            fastest[side] = min(fastest[side], time.perf_counter() - start)
    each = 1e9 * (fastest[0] - fastest[1]) / (5 * REPEATS)
    note = f"mean of five, once more than unrecorded; the fastest of {ROUNDS} rounds each"
    yield Figure("recording an operator", each, 150, "ns", note)


FIGURES: dict[str, Callable[[], Iterator[Figure]]] = {"recording": recording}
