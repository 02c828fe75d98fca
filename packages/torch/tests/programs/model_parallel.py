"""Tensor parallelism and a pipeline in two processes, and FSDP with its states."""

import functools
import os
import socket

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, ShardingStrategy
from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def fill(module):
    rng = np.random.RandomState(1)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.from_numpy(rng.uniform(-0.4, 0.4, tuple(p.shape)).astype(np.float32)))
    return module


def data(seed, n, m):
    return torch.from_numpy(np.random.RandomState(seed).randn(n, m).astype(np.float32))


def tensor_parallel(rank, mesh):
    model = fill(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)))
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(3):
        loss = model(data(step, 5, 6)).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            print(f"tensor {step} {loss.item():.4f}")
    if rank == 0:
        print(model[0].weight.to_local().shape[0], model[2].weight.to_local().shape[1])


def pipeline(rank):
    model = fill(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)))
    part = model[:2] if rank == 0 else model[2:]
    stage = PipelineStage(part, rank, 2, torch.device("cpu"))
    schedule = Schedule1F1B(stage, 4, loss_fn=F.mse_loss)
    optimizer = torch.optim.SGD(part.parameters(), lr=0.1)
    for step in range(3):
        losses = []
        if rank == 0:
            schedule.step(data(step, 8, 6))
        else:
            out = schedule.step(target=data(step + 50, 8, 3), losses=losses)
            print(f"pipeline {step} {torch.stack(losses).mean().item():.4f} {tuple(out.shape)}")
        optimizer.step()
        optimizer.zero_grad()


def sharded(rank):
    policy = functools.partial(size_based_auto_wrap_policy, min_num_params=30)
    model = FSDP(
        fill(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))),
        auto_wrap_policy=policy,
        sharding_strategy=ShardingStrategy.SHARD_GRAD_OP,
        device_id=torch.device("cpu"),
        use_orig_params=True,
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for step in range(3):
        loss = model(data(2 * step + rank, 4, 6)).pow(2).mean()
        loss.backward()
        norm = model.clip_grad_norm_(0.5)
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            print(f"sharded {step} {loss.item():.4f} {norm.item():.4f}")
    with FSDP.summon_full_params(model):
        if rank == 0:
            print(f"whole {sum(p.sum() for p in model.parameters()).item():.4f}")


def work(rank, port):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", port
    dist.init_process_group("gloo", rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    for part in (
        lambda: tensor_parallel(rank, mesh),
        lambda: pipeline(rank),
        lambda: sharded(rank),
    ):
        part()
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(work, args=(free_port(),), nprocs=2, join=True)
    print("done")
