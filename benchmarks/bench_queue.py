"""A 4 MB tensor through a queue to another process: plait, the standard module and torch.

    python benchmarks/run.py --only queue

Each side puts fresh tensors into its own ``Queue`` and waits until the consumer, one process that
lives as long as the benchmark, has them all; a tensor made of nothing but its send counts. The
standard module sends NumPy arrays, by value. The consumer looks at one element, or adds up all.
"""

from __future__ import annotations

import importlib
import multiprocessing
from collections.abc import Callable
from typing import Any

__all__ = ["cases"]

FLOATS = 1 << 20  # 4 MB
IN_A_ROW = 8  # tensors a call
STANDARD_BAR, TORCH_BAR = 0.2, 0.5

Run = Callable[[], object]


def consume(queue: Any, done: Any, library: str, full: bool) -> None:
    """Take tensors until None comes; say so after each row of them."""
    importlib.import_module(library)
    done.put(0)
    while True:
        for _ in range(IN_A_ROW):
            x = queue.get()
            if x is None:
                return
            (x.sum() if full else x[7]).item()
            del x
        done.put(1)


class Side:
    """A queue with a consumer behind it."""

    def __init__(self, module: Any, library: str, fresh: Callable[[], Any], full: bool) -> None:
        context = module.get_context("spawn")
        self.queue, self.done = context.Queue(), context.SimpleQueue()
        arguments = (self.queue, self.done, library, full)
        self.process = context.Process(target=consume, args=arguments, daemon=True)
        self.process.start()
        self.fresh, self.ready = fresh, False

    def __call__(self) -> None:
        """Send a row and wait for it to be taken."""
        if not self.ready:  # not in __init__: the consumers import their libraries side by side
            self.done.get()
            self.ready = True
        for _ in range(IN_A_ROW):
            self.queue.put(self.fresh())
        self.done.get()


def plait_side(full: bool) -> Side:
    """plait's tensors through plait's queue."""
    import plait_core
    import plait_multiprocessing

    source = plait_core.ones(FLOATS)
    return Side(plait_multiprocessing, "plait_core", source.clone, full)


def standard_side(full: bool) -> Side:
    """NumPy's arrays through the standard queue."""
    import numpy as np

    return Side(multiprocessing, "numpy", np.ones(FLOATS, np.float32).copy, full)


def torch_side(full: bool) -> Side:
    """torch's tensors through torch's queue."""
    import torch
    import torch.multiprocessing

    return Side(torch.multiprocessing, "torch", torch.ones(FLOATS).clone, full)


def cases() -> list[tuple[str, Run, Run, float | None]]:
    """(name, a row through plait's queue, a row through the peer's, the bar for their ratio)."""
    results: list[tuple[str, Run, Run, float | None]] = []
    for full, name in ((False, "looked at"), (True, "read in full")):
        ours, standard, theirs = plait_side(full), standard_side(full), torch_side(full)
        bars = (None, None) if full else (STANDARD_BAR, TORCH_BAR)
        text = f"queue, 8 x 4 MB {name}; peer: "
        results.append((f"{text}the standard module", ours, standard, bars[0]))
        results.append((f"{text}torch", ours, theirs, bars[1]))
    return results
