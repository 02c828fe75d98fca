"""Figures 1 and 2 of the paper: the host ahead of the device, and memory from step to step."""

from __future__ import annotations

from typing import Any

from gpu.models import training_step
from gpu.sides import Options, Side

__all__ = ["run"]


def run(options: Options) -> dict[str, Any]:
    """Return each step's time on host and device, and the allocator's counters behind it."""
    import time

    import plait

    side = Side("plait", plait)
    step = training_step(side, "resnet50", "float32", options)
    rows = []
    for _ in range(4):
        before = plait.cuda.memory_stats()
        begin = time.perf_counter()
        step()
        returned = time.perf_counter()
        side.synchronize()
        done = time.perf_counter()
        after = plait.cuda.memory_stats()
        rows.append(
            {
                "host_seconds": returned - begin,
                "seconds": done - begin,
                "counters": {k: after[k] - before.get(k, 0) for k in sorted(after)},
            }
        )
    return {"steps": rows, "allocated": plait.cuda.max_memory_allocated()}
