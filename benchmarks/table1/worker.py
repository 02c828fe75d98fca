"""A process that has one model of one side, and makes steps when it is told to.

``python worker.py SIDE`` reads requests from standard input, a JSON object a line, and answers each
with one: ``open`` builds the model and makes two steps, ``steps`` makes more, ``close`` ends.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["main", "peak_bytes"]

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Answer requests until ``close`` or the end of the input."""
    # what libraries print must not mix with the answers
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.path[:0] = [str(HERE), str(HERE.parent)]
    step: Callable[[], Any] | None = None
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "close":
            break
        try:
            if request["do"] == "open":
                step, answer = opened(request)
            else:
                assert step is not None
                seconds, cpu = timed(step, request["count"])
                answer = {"seconds": seconds, "cpu": cpu, "memory": peak_bytes()}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {str(error).strip()[:300]}"}
        print(json.dumps(answer), file=answers, flush=True)


def opened(request: dict[str, Any]) -> tuple[Callable[[], Any], dict[str, Any]]:
    """Build the model, make its first two steps, and say how long each took."""
    if hasattr(os, "sched_setaffinity"):
        # libraries that have no other setting count the processors that they may use
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: request["threads"]])
    side = importlib.import_module(f"sides.{sys.argv[1]}")
    imported = peak_bytes()
    selection = {key: request[key] for key in ("model", "mode", "batch", "threads", "tuned")}
    step = side.prepare(**selection)
    first, second = timed(step, 1)[0], timed(step, 1)[0]
    return step, {
        "version": side.version(),
        "first": first,
        "second": second,
        "imported": imported,
        "memory": peak_bytes(),
    }


def timed(step: Callable[[], Any], count: int) -> tuple[float, float]:
    """Return the mean seconds of ``count`` steps, and of the processors' time that they took."""
    begin, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        step()
    return (time.perf_counter() - begin) / count, (time.process_time() - cpu) / count


def peak_bytes() -> int:
    """Return the largest resident size of this process so far."""
    try:
        # ru_maxrss may hold the size of the parent, from before this program was loaded
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


if __name__ == "__main__":
    main()
