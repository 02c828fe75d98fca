"""Tensors and events that processes share, and collectives of NCCL over the GPUs of the machine."""

from __future__ import annotations

import os
import pathlib
import secrets
import subprocess
import sys
import tempfile
from typing import Any

from gpu.sides import Options

__all__ = ["run"]

LARGEST_GROUP = 8

# A process doubles what it gets; the sender sees that in its own tensor.
SHARING = """
import time

import plait
import plait.multiprocessing as mp

def double(tensors, answers):
    while (x := tensors.get()) is not None:
        x.mul_(2)
        plait.cuda.synchronize()
        answers.put(x.numel())
        del x

if __name__ == "__main__":
    context = mp.get_context("spawn")
    tensors, answers = context.Queue(), context.Queue()
    child = context.Process(target=double, args=(tensors, answers))
    child.start()
    times = []
    for n in [1000] + [ELEMENTS] * 5:
        x = plait.arange(float(n), device="cuda")
        plait.cuda.synchronize()
        begin = time.perf_counter()
        tensors.put(x)
        assert answers.get(timeout=60) == n
        times.append(time.perf_counter() - begin)
        assert bool((x == 2 * plait.arange(float(n), device="cuda")).all())
    tensors.put(None)
    child.join(60)
    assert child.exitcode == 0, child.exitcode
    print("seconds", min(times[1:]))
"""

# A process for each rank, and a GPU for each rank: NCCL refuses two ranks on one.
COLLECTIVES = """
import os, time

import plait
import plait_distributed as dist

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
plait.cuda.set_device(rank)
dist.init_process_group("nccl", os.environ["GROUP"], 120.0, size, rank)
here = plait.full((5,), float(rank + 1), device="cuda")
total = size * (size + 1) / 2
x = here.clone()
dist.all_reduce(x)
assert x.tolist() == [total] * 5, x
dist.broadcast(x, size - 1)
parts = [plait.empty_like(here) for _ in range(size)]
dist.all_gather(parts, here)
assert [part[0].item() for part in parts] == [rank + 1.0 for rank in range(size)]
own = plait.empty_like(here)
dist.reduce_scatter(own, parts)
assert own.tolist() == [size * (rank + 1.0)] * 5, own
large = plait.ones(ELEMENTS, device="cuda")
times = []
for _ in range(6):
    dist.barrier()
    plait.cuda.synchronize()
    begin = time.perf_counter()
    dist.all_reduce(large)
    plait.cuda.synchronize()
    times.append(time.perf_counter() - begin)
assert large[0].item() == size**6 and large[-1].item() == size**6
dist.destroy_process_group()
print("seconds", min(times))
"""


def run(options: Options) -> dict[str, Any]:
    """Return the seconds to hand a tensor to another process, and those of an all-reduce."""
    import plait
    import plait_cuda

    elements = 1 << 12 if options.small else 1 << 24
    size = min(plait.cuda.device_count(), LARGEST_GROUP)
    result: dict[str, Any] = {"bytes": 4 * elements, "ranks": size}
    group = {"GROUP": f"shm:{secrets.token_hex(8)}", "WORLD_SIZE": str(size)}
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for name, text in {"sharing": SHARING, "all_reduce": COLLECTIVES}.items():
            paths[name] = pathlib.Path(folder, f"{name}.py")  # spawned processes import it
            paths[name].write_text(text.replace("ELEMENTS", str(elements)))
        result["sharing"] = outcome([start(paths["sharing"])], options.limit / 2)
        if plait_cuda.nccl_version() is None:
            result["all_reduce"] = {"left_out": "there is no libnccl.so.2"}
        else:
            ranks = [start(paths["all_reduce"], RANK=str(rank), **group) for rank in range(size)]
            result["all_reduce"] = outcome(ranks, options.limit / 2)
    return result


def start(program: pathlib.Path, **environment: str) -> subprocess.Popen[str]:
    """Start a program in a process of its own."""
    return subprocess.Popen(
        [sys.executable, str(program)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def outcome(processes: list[subprocess.Popen[str]], seconds: float) -> dict[str, Any]:
    """Wait for processes; return the longest time that they printed, or what went wrong."""
    times = []
    try:
        for process in processes:
            out, errors = process.communicate(timeout=seconds)
            if process.returncode != 0 or not out.startswith("seconds "):
                return {"status": process.returncode, "tail": (out + errors).splitlines()[-20:]}
            times.append(float(out.split()[1]))
    except subprocess.TimeoutExpired:
        return {"status": "stopped", "seconds": seconds}
    finally:
        for process in processes:
            process.kill()
    return {"status": 0, "seconds": max(times)}
