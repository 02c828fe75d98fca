"""Samples computed in Python, by threads and by processes: what a second worker brings.

    python benchmarks/loader_threads.py [PYTHON ...]

Prints a row for each number and kind of workers: samples per second, and their ratio to those of
one worker of the kind; then the same of samples that all read one list of strings. With names of
Pythons, each of them does it, so that one without a global lock stands beside one that has it;
plait must be installed in them. Rounds of all kinds take turns, and the fastest epoch of each
counts, so that other programs disturb little.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from typing import Any

from loader_samples import Texts, epoch

import plait_data

__all__ = ["main", "measure"]

SAMPLES, BATCH, ROUNDS = 1024, 32, 7
KINDS = (
    ("none", 0, None),
    ("threads", 1, "thread"),
    ("threads", 2, "thread"),
    ("processes", 1, "forkserver"),
    ("processes", 2, "forkserver"),
)


def measure(*, shared: bool, rounds: int = ROUNDS) -> dict[tuple[str, int], float]:
    """Samples per second of the fastest epoch, by kind and number of workers."""
    loaders: dict[tuple[str, int], Any] = {}
    for kind, workers, context in KINDS:
        options: Any = {"num_workers": workers, "multiprocessing_context": context}
        options["persistent_workers"] = workers > 0
        loaders[kind, workers] = epoch(
            plait_data.DataLoader(Texts(SAMPLES, shared=shared), BATCH, **options)
        )
    best: dict[tuple[str, int], float] = {}
    for _ in range(rounds):
        for which, run in loaders.items():
            start = time.perf_counter()
            run()
            rate = SAMPLES / (time.perf_counter() - start)
            best[which] = max(rate, best.get(which, 0.0))
    return best


def main(pythons: Sequence[str]) -> int:
    """Measure here, or in each of the given Pythons."""
    for python in pythons:
        subprocess.run([python, __file__], check=True)
    if pythons:
        return 0
    lock = "without a global lock" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    print(f"CPython {platform.python_version()} {lock}".rstrip())
    for shared in (False, True):
        print("  samples that read one list" if shared else "  samples with words of their own")
        result = measure(shared=shared)
        for (kind, workers), rate in result.items():
            ratio = rate / result[kind, min(workers, 1)]
            print(f"    {workers} {kind:<10} {rate:8.0f} samples/s  {ratio:5.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
