"""Memory of a rank under data parallelism and ZeRO 1, 2 and 3, against theory.

    python benchmarks/bench_sharding.py [--ranks 4] [--width 1024] [--layers 16]

A model of equal linear layers trains three steps with Adam in each of several processes. A rank is
measured in a process of its own:

- what it holds behind a step, by kind: parameters, gradients (behind the backward pass), and the
  optimizer's state, counted in bytes of tensors;
- the peak of the process's memory above what it had before the model, from the kernel (VmHWM of
  /proc/self/status, which includes what collectives and the allocator use).

Theory, for P bytes of parameters on N ranks: parameters P, gradients P and states 2 P each for data
parallelism; states 2 P / N under ZeRO 1; gradients P / N too under ZeRO 2; all divided by N under
ZeRO 3. ZeRO 2 keeps whole parameters between forward and backward, beside its shard.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import tempfile
from typing import Any

import plait
import plait.distributed as dist
from plait import nn, optim
from plait.distributed.fsdp import fully_shard
from plait.distributed.optim import ZeroRedundancyOptimizer

MODES = ("DDP", "ZeRO 1", "ZeRO 2", "ZeRO 3")
MIB = 1 << 20


def memory(name: str) -> float:
    """Return a line of /proc/self/status in MiB."""
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(name + ":"):
                return int(line.split()[1]) / 1024
    raise RuntimeError(name)


def reset_peak() -> None:
    """Make the peak what the process has now."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def build(mode: str, width: int, layers: int) -> tuple[Any, Any]:
    """Return a model and its optimizer; a layer is sharded as soon as it is made."""
    shards = mode in ("ZeRO 2", "ZeRO 3")
    parts = []
    for _ in range(layers):
        layer = nn.Linear(width, width, bias=False)
        keep = mode != "ZeRO 2"
        parts.append(fully_shard(layer, reshard_after_forward=keep) if shards else layer)
    model = nn.Sequential(*parts)
    if shards:
        fully_shard(model)
        return model, optim.Adam(model.parameters(), lr=1e-3)
    parallel = dist.DistributedDataParallel(model)
    if mode == "ZeRO 1":
        return parallel, ZeroRedundancyOptimizer(parallel.parameters(), optim.Adam, lr=1e-3)
    return parallel, optim.Adam(parallel.parameters(), lr=1e-3)


def local(tensor: Any) -> Any:
    """Return what this rank holds of a tensor."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def nbytes(tensors: Any) -> float:
    """Return the MiB of tensors on this rank."""
    sizes = [local(tensor) for tensor in tensors if tensor is not None]
    return sum(each.numel() * each.element_size() for each in sizes) / MIB


def work(rank: int, mode: str, size: int, width: int, layers: int, where: str, path: str) -> None:
    """Train three steps, and write what rank 0 held."""
    plait.set_num_threads(1)
    dist.init_process_group(init_method=where, rank=rank, world_size=size)
    dist.barrier()
    reset_peak()
    before = memory("VmRSS")
    model, optimizer = build(mode, width, layers)
    x = plait.ones(4, width)
    for _ in range(3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        gradients = nbytes(p.grad for p in model.parameters())
        optimizer.step()
    inner = optimizer.optim if mode == "ZeRO 1" else optimizer
    states = [v for s in inner.state.values() for v in s.values() if getattr(v, "ndim", 0)]
    results = {
        "parameters": nbytes(model.parameters()),
        "gradients": gradients,
        "states": nbytes(states),
        "peak": memory("VmHWM") - before,
    }
    if rank == 0:
        with open(path, "w") as file:
            json.dump(results, file)
    dist.barrier()
    dist.destroy_process_group()


def theory(mode: str, size: int, whole: float, layer: float) -> dict[str, float]:
    """Return what a rank holds in theory, and the least peak."""
    n = {name: size if i <= MODES.index(mode) else 1 for i, name in enumerate(MODES)}
    sizes = {
        "parameters": whole / (size if mode in ("ZeRO 2", "ZeRO 3") else 1),
        "gradients": whole / n["ZeRO 2"],
        "states": 2 * whole / n["ZeRO 1"],
    }
    used = {"ZeRO 2": whole, "ZeRO 3": layer}.get(mode, 0.0)  # whole while they are used
    return {**sizes, "peak": sum(sizes.values()) + used}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=16)
    flags = parser.parse_args()
    layer = flags.width**2 * 4 / MIB
    whole = layer * flags.layers
    print(f"{flags.ranks} ranks, {flags.layers} layers of {layer:.1f} MiB: {whole:.0f} MiB")
    print("| MiB a rank | parameters | gradients | states | peak |\n|---|---|---|---|---|")
    for mode in MODES:
        where = f"shm:bench {secrets.token_hex(6)}"
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "found.json")
            arguments = (mode, flags.ranks, flags.width, flags.layers, where, out)
            plait.multiprocessing.spawn(work, arguments, nprocs=flags.ranks)
            with open(out) as file:
                result = json.load(file)
        want = theory(mode, flags.ranks, whole, layer)
        cells = [f"{result[name]:.1f} ({want[name]:.1f})" for name in result]
        print(f"| {mode} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
