"""A regression in two processes that torch.multiprocessing.spawn starts, with unequal passes."""

import os
import socket

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel as DDP


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def fill(module, seed):
    rng = np.random.RandomState(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.from_numpy(rng.uniform(-0.3, 0.3, tuple(p.shape)).astype(np.float32)))


class Toy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 16)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(16, 5)
        self.extra = nn.Linear(5, 5)
        fill(self, 1)

    def forward(self, x, extra=False):
        y = self.net2(self.relu(self.net1(x)))
        return self.extra(y) if extra else y


def setup(rank, world_size, port):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = port
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def train(rank, world_size, port):
    setup(rank, world_size, port)
    model = Toy()
    fill(model, rank)  # rank 0's are taken
    ddp = DDP(model, find_unused_parameters=True)
    loss_fn = nn.MSELoss()
    optimizer = optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    rng = np.random.RandomState(rank)
    for step in range(12):
        inputs = torch.from_numpy(rng.randn(8, 10).astype(np.float32))
        labels = inputs[:, :5].cumsum(1)
        optimizer.zero_grad()
        loss = loss_fn(ddp(inputs, extra=(step % 3 == rank)), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(ddp.parameters(), 5.0)
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, op=dist.ReduceOp.SUM)
        if rank == 0:
            print(f"step {step} loss {mean.item() / world_size:.4f}")

    weights = [torch.zeros_like(model.net1.weight) for _ in range(world_size)]
    dist.all_gather(weights, model.net1.weight.detach())
    if rank == 0:
        print("the same everywhere", all(torch.equal(weights[0], w) for w in weights))
        torch.save(ddp.state_dict(), "model.pt")
    dist.barrier()
    state = torch.load("model.pt", weights_only=True)
    ddp.load_state_dict(state)
    if rank == world_size - 1:
        print("names", sorted(state)[0], len(state))
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(2, free_port()), nprocs=2, join=True)
    print("done")
