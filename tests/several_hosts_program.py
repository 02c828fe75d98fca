"""A training program that several hosts run; each process prints what came out.

The first argument says what happens: "train", "cut" (a host is cut off when all have printed
"begun"), or "differ" (the processes call different collectives).
"""

from __future__ import annotations

import socket
import sys
import time

import plait
import plait.distributed as dist
from plait import nn, optim


def train() -> str:
    plait.manual_seed(0)
    data, labels = plait.randn(48, 6), plait.randn(48, 1)
    whole = nn.Linear(6, 1)
    model = dist.DistributedDataParallel(nn.Linear(6, 1))
    model.module.load_state_dict(whole.state_dict())
    for each, part in (
        (whole, slice(None)),
        (model, slice(dist.get_rank(), None, dist.get_world_size())),
    ):
        optimizer = optim.SGD(each.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            nn.functional.mse_loss(each(data[part]), labels[part]).backward()
            optimizer.step()
    return str(bool(plait.allclose(whole.weight, model.module.weight, atol=1e-5)))


def main(task: str) -> None:
    dist.init_process_group(timeout=400)  # longer than tests wait
    rank, size = dist.get_rank(), dist.get_world_size()
    odd = dist.new_group(list(range(1, size, 2)))
    x = plait.full((70_000,), float(rank))
    dist.all_reduce(x)
    if rank % 2:
        dist.barrier(odd)
    message = train() if task == "train" else ""
    print("begun", flush=True)
    try:
        while task == "cut":
            dist.all_reduce(x, dist.ReduceOp.AVG)
            time.sleep(0.01)
        if task == "differ":
            (dist.all_reduce if rank else dist.broadcast)(x[:5])
    except dist.DistBackendError as error:
        message = f"{type(error).__name__}: {error}"
    print(
        f"rank {rank} of {size} on {socket.gethostname()} over {dist.get_default_group().provider}:"
        f" {x[0].item():g} {message}",
        flush=True,
    )


main(sys.argv[1])
