"""A member of a group that runs collectives; it writes what came out as a file of JSON.

Arguments: what is done, the provider, the group's name, a folder. RANK and WORLD_SIZE say who it
is, or MPI does. "values" tells a hash of the outputs of each case; "bytes" tells how many bytes the
interfaces of the hosts sent; "kill" and "stop" repeat all-reduces until a rank is lost.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import pathlib
import signal
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import plait_abi
import plait_core as pc

DTYPES = "float32 float64 float16 bfloat16 complex64 complex128 bool uint8 int8 int16 int32 int64"
BYTES = ("bool", "uint8", "int8")
COUNTED = pathlib.Path("/sys/class/net/eth0/statistics/tx_bytes")
TIMEOUT = 300.0  # seconds, more than the tests wait for who is lost
SIZES = (25_000, 262_143, 262_145, 1_048_577)  # of float32: around borders of slices and chunks


def input_of(rank: int, count: int, dtype: str, turn: int = 0) -> Any:
    """Return the numbers of a rank."""
    source = np.random.default_rng([rank, count, turn])
    if dtype == "bool":
        return pc.from_numpy(source.random(count) > 0.4)
    if dtype.startswith(("int", "uint")):
        return pc.from_numpy(source.integers(1, 100, count).astype(dtype))
    values = source.standard_normal(count) * 3
    if dtype.startswith("complex"):
        return pc.from_numpy((values + 1j * values[::-1]).astype(dtype))
    return pc.from_numpy(values).to(getattr(pc, dtype))


def empty(count: int, dtype: str) -> Any:
    return pc.full((count,), 1, dtype=getattr(pc, dtype))


def strided(tensor: Any) -> Any:
    """Return the same elements with others between them."""
    wide = pc.zeros((tensor.shape[0], 2), dtype=tensor.dtype)
    wide[:, 1] = tensor
    return wide[:, 1]


def reductions(group: Any) -> Iterator[tuple[str, list[Any]]]:
    rank, size = group.rank, group.size
    cases = [(count, "float32", "sum") for count in SIZES]
    # 128 KiB at least: smaller ones are exchanged
    cases += [(140_001 if dtype in BYTES else 70_001, dtype, "sum") for dtype in DTYPES.split()]
    cases += [(70_001, dtype, "mean") for dtype in ("float16", "bfloat16", "float64", "complex64")]
    cases += [(40_011, "int32", name) for name in ("product", "min", "max", "and", "or", "xor")]
    cases += [(80_011, "float16", name) for name in ("product", "min", "max")]
    for count, dtype, reduction in cases:
        name = f"{dtype}[{count}] {reduction}"
        x, y = input_of(rank, count, dtype), empty(count, dtype)
        group.start("all_reduce", [x], [y], reduction=reduction)
        yield f"all_reduce {name}", [y]
        group.start("all_reduce", [x], [x], reduction=reduction)
        yield f"all_reduce in place {name}", [x]
        for root in (0, size - 1) if dtype == "float32" else (size - 1,):
            x = strided(input_of(rank, count, dtype))
            y = strided(empty(count, dtype))
            group.start("reduce", [x], [y] if rank == root else [], reduction=reduction, peer=root)
            yield f"reduce to {root} {name}", [y] if rank == root else []
        parts = [input_of(rank, count, dtype, turn) for turn in range(size)]
        out = parts[1]  # what is sent to another one is overwritten
        group.start("reduce_scatter", parts, [out], reduction=reduction)
        yield f"reduce_scatter {name}", [out]


def copies(group: Any) -> Iterator[tuple[str, list[Any]]]:
    rank, size = group.rank, group.size
    for count, dtype in [(c, "float32") for c in SIZES] + [(9_001, "bool"), (70_001, "complex128")]:
        for root in range(size):
            x = strided(input_of(rank, count, dtype)) if root % 2 else input_of(rank, count, dtype)
            group.start("broadcast", [x], [x], peer=root)
            yield f"broadcast {dtype}[{count}] from {root}", [x]
        parts = [empty(count, dtype) for _ in range(size)]
        parts[1::2] = map(strided, parts[1::2])
        group.start("all_gather", [input_of(rank, count, dtype)], parts)
        yield f"all_gather {dtype}[{count}]", parts
        parts[rank][:] = input_of(rank, count, dtype, 1)
        group.start("all_gather", [parts[rank]], parts)
        yield f"all_gather in place {dtype}[{count}]", parts


def many_at_once(group: Any) -> Iterator[tuple[str, list[Any]]]:
    """Several groups, whose collectives are under way together."""
    other = group.split(0, -group.rank)
    tensors = [input_of(group.rank, count, "float32", 7) for count in (300_000, 500_001, 123_456)]
    for _ in range(3):
        works = [
            (other if i % 2 else group).start("all_reduce", [x], [x], asynchronous=True)
            for i, x in enumerate(tensors)
        ]
        for work in works[::-1]:
            work.wait()
        yield "at once", tensors
    other.close()


def digest(tensors: list[Any]) -> str:
    result = hashlib.sha256()
    for tensor in tensors:
        result.update(tensor.contiguous().view(pc.uint8).numpy().tobytes())
    return result.hexdigest()


def share_memory(group: Any) -> None:
    """Run a collective, with which members tell each other that they share their hosts' memory."""
    x = pc.ones(100_000)
    for _ in range(2):
        group.start("all_reduce", [x], [x])


def values(group: Any) -> dict[str, str]:
    share_memory(group)
    results = {}
    for each in (reductions, copies, many_at_once):
        for number, (name, tensors) in enumerate(each(group)):
            results[f"{name} ({number})"] = digest(tensors)
    return results


def counted(group: Any) -> dict[str, Any]:
    """Return how many bytes this host sent in each kind of collective, and the tensor's bytes."""
    share_memory(group)
    rank, size, count = group.rank, group.size, 4_000_000
    results: dict[str, Any] = {"bytes": 4 * count}
    x = input_of(rank, count, "float32")
    parts = [empty(count // size, "float32") for _ in range(size)]
    calls = {
        "all_reduce": ([x], [x]),
        "broadcast": ([x], [x]),
        "all_gather": ([input_of(rank, count // size, "float32")], parts),
        "reduce_scatter": (parts, [empty(count // size, "float32")]),
        "gather": (parts[:1], parts if rank == 0 else []),
        "scatter": (parts if rank == 0 else [], parts[:1]),
        "all_to_all": (parts, [empty(count // size, "float32") for _ in parts]),
    }
    for kind, (inputs, outputs) in calls.items():
        group.start("barrier")
        before = int(COUNTED.read_text())
        group.start("barrier")
        group.start(kind, inputs, outputs)
        group.start("barrier")
        results[kind] = int(COUNTED.read_text()) - before
        group.start("barrier")
    return results


def losing(group: Any, folder: pathlib.Path, how: str) -> dict[str, Any]:
    share_memory(group)
    x = pc.ones(3_000_000)
    if group.rank == 1:
        signal.setitimer(signal.ITIMER_REAL, 0.4)
        number = signal.SIGKILL if how == "kill" else signal.SIGSTOP
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), number))
    (folder / f"pid{group.rank}").write_text(str(os.getpid()))
    try:
        while True:
            group.start("all_reduce", [x], [x])
    except plait_abi.PlaitError as error:
        return {"text": str(error)}


def wait_for_the_others(folder: pathlib.Path, provider: str, ranks: set[int]) -> None:
    """Wait until these ranks have told: the end of a process is one more loss for the others, and
    Open MPI's mpiexec may end those that are left."""
    until = time.monotonic() + 200
    paths = [folder / f"{provider}{rank}" for rank in ranks]
    while time.monotonic() < until and not all(path.exists() for path in paths):
        time.sleep(0.02)


def main(task: str, provider: str, where: str, folder: pathlib.Path) -> None:
    pc.set_num_threads(1)
    module = importlib.import_module(
        "plait_multiprocessing" if provider == "shared_memory" else f"plait_{provider}"
    )
    if provider == "mpi":
        rank, size = module.rank(), module.size()
    else:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    group = plait_abi.Communicator.open(provider, where, rank, size, TIMEOUT)
    message: dict[str, Any] = {
        "values": values,
        "bytes": counted,
        "kill": lambda group: losing(group, folder, "kill"),
        "stop": lambda group: losing(group, folder, "stop"),
    }[task](group)
    message["host"] = socket.gethostname()
    (folder / f"{provider}{rank}.part").write_text(json.dumps(message))
    (folder / f"{provider}{rank}.part").rename(folder / f"{provider}{rank}")
    if task in ("kill", "stop"):
        wait_for_the_others(folder, provider, set(range(size)) - {1})
        os._exit(0)  # MPI would wait for the one that is lost
    group.start("barrier")
    group.close()


main(*sys.argv[1:4], pathlib.Path(sys.argv[4]))  # type: ignore[arg-type]
