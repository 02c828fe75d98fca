"""Sharded training in two processes: fully_shard, clipping, a sharded checkpoint, FSDP's states."""

import os
import socket
import tempfile

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


class Block(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.norm = nn.LayerNorm(n)
        self.up = nn.Linear(n, 2 * n)
        self.down = nn.Linear(2 * n, n)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(11, 6)
        self.blocks = nn.ModuleList(Block(6) for _ in range(3))
        self.head = nn.Linear(6, 11, bias=False)
        self.head.weight = self.words.weight
        rng = np.random.RandomState(0)
        with torch.no_grad():
            for p in self.parameters():
                p.copy_(torch.from_numpy(rng.uniform(-0.4, 0.4, tuple(p.shape)).astype("float32")))

    def forward(self, x):
        h = self.words(x)
        for block in self.blocks:
            h = block(h)
        return self.head(h)


def build():
    model = Model()
    for block in model.blocks:
        fully_shard(block, reshard_after_forward=True)
    fully_shard(model)
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)


def train(model, optimizer, rank, steps):
    for step in steps:
        rng = np.random.RandomState(10 * step + rank)
        x = torch.from_numpy(rng.randint(0, 11, (4, 5)))
        logits = model(x)
        loss = nn.functional.cross_entropy(logits.view(-1, 11), x.view(-1))
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        norm = norm.full_tensor() if isinstance(norm, DTensor) else norm
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if rank == 0:
            print(f"step {step} loss {mean.item() / 2:.4f} norm {norm.item():.4f}")


def work(rank, port, folder):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", port
    dist.init_process_group("gloo", rank=rank, world_size=2)
    model, optimizer = build()
    weight = model.words.weight
    if rank == 0:
        print(isinstance(model, FSDPModule), type(model).__name__, isinstance(weight, DTensor))
        print(weight.placements == (Shard(0),), tuple(weight.shape), weight.to_local().shape[0])
    train(model, optimizer, rank, range(4))
    state, states = get_state_dict(model, optimizer)
    dcp.save({"model": state, "optim": states}, checkpoint_id=folder)
    train(model, optimizer, rank, range(4, 6))
    model, optimizer = build()
    state, states = get_state_dict(model, optimizer)
    dcp.load({"model": state, "optim": states}, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=state, optim_state_dict=states)
    train(model, optimizer, rank, range(4, 6))
    full = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    if rank == 0:
        print(len(full), f"{full['blocks.2.up.weight'].abs().sum().item():.4f}")
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("x",))
    x = distribute_tensor(torch.arange(6.0).view(3, 2), mesh, [Shard(1)])
    y = (x * 2).redistribute(mesh, [Replicate()]).to_local()
    total = x.sum().full_tensor().item()
    if rank == 1:
        print(mesh.get_local_rank(), x.to_local().tolist(), y.tolist(), total)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, args=(free_port(), folder), nprocs=2, join=True)
    print("done")
