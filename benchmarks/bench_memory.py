"""The memory that programs use: each in a process of its own, on both sides.

Resident megabytes of the whole process, the imported library too: at most during the program
(`peak`), at its end (`end`), and a few seconds after its last tensor is gone (`idle`).

    python benchmarks/bench_memory.py training plait     one program alone
"""

from __future__ import annotations

import gc
import importlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from models import MODELS

__all__ = ["FIGURES", "cases"]

MEGABYTE = 1 << 20
IDLE = 11.0  # seconds
SIDES = ("plait", "torch")


def resident(field: str = "VmRSS") -> float:
    """Megabytes by /proc."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field)) / 1024


def training(library: Any) -> None:
    """Three steps of ResNet-50, 8 pictures."""
    model = MODELS["resnet50"]
    network = model.build(library)
    optimizer = model.optimizer(library, network.parameters())
    x, y = map(library.from_numpy, model.data(8))
    for _ in range(3):
        optimizer.zero_grad()
        model.loss(library, network(x), y).backward()
        optimizer.step()


def words(library: Any, length: int) -> Any:
    """One prompt of so many words."""
    return library.from_numpy(MODELS["gpt2"].data(1, length=length)[0])


def lengths(library: Any) -> None:
    """GPT-2 without gradients on 40 prompts of 10 to 500 words."""
    network, selection = MODELS["gpt2"].build(library).eval(), random.Random(1)
    with library.no_grad():
        for _ in range(40):
            network(words(library, selection.randrange(10, 500)))


def two_models(library: Any) -> None:
    """ResNet-50 on 16 pictures without gradients, then GPT-2, when the first one is gone."""
    with library.no_grad():
        network = MODELS["resnet50"].build(library).eval()
        network(library.randn(16, 3, 224, 224))
        del network
        gc.collect()
        MODELS["gpt2"].build(library).eval()(words(library, 256))


PROGRAMS: dict[str, Callable[[Any], None]] = {
    "training": training,
    "lengths": lengths,
    "two_models": two_models,
}


def measure(program: str, side: str) -> dict[str, float]:
    """In a process of its own: megabytes by moment, and the seconds that the program took."""
    command = [sys.executable, __file__, program, side]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return {name: float(value) for name, value in map(str.split, result.stdout.splitlines())}


def main(program: str, side: str) -> None:
    """Run one program and print its figures."""
    library = importlib.import_module(side)
    library.set_num_threads(int(os.environ.get("BENCH_THREADS", "2")))
    library.ones(3).sum()
    begin = time.perf_counter()
    PROGRAMS[program](library)
    seconds = time.perf_counter() - begin
    gc.collect()
    print("peak", resident("VmHWM"))
    print("end", resident())
    time.sleep(IDLE)
    print("idle", resident())
    print("seconds", seconds)


def figures() -> list[Any]:
    """Of every program, with torch's in the note and as the limit of the peak."""
    from timing import Figure

    results = []
    for program in PROGRAMS:
        ours, theirs = (measure(program, side) for side in SIDES)
        for name in ("peak", "end", "idle"):
            note = f"torch {theirs[name]:.0f}"
            limit = theirs[name] if name != "end" else None
            results.append(Figure(f"{program}: {name}", ours[name], limit, "MB", note))
    return results


FIGURES = {"memory of programs": figures}


def cases() -> Iterator[Any]:
    """None: there are figures alone."""
    return iter(())


if __name__ == "__main__":
    main(*sys.argv[1:])
