"""The style of PyTorch's DDP tutorial: basic use, checkpoints across ranks, Join, averaging."""

import os
import socket
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.optim as optim
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel as DDP


def setup(rank, world_size, port):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = port
    if hasattr(torch, "accelerator") and torch.accelerator.is_available():
        acc = torch.accelerator.current_accelerator()
        backend = torch.distributed.get_default_backend_for_device(acc)
    else:
        backend = "gloo"
    dist.init_process_group(backend, rank=rank, world_size=world_size)


def cleanup():
    dist.destroy_process_group()


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1 = nn.Linear(10, 10)
        self.relu = nn.ReLU()
        self.net2 = nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(self.relu(self.net1(x)))


def toy_model(scale):
    model = ToyModel()
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(scale * torch.sin(torch.arange(p.numel(), dtype=torch.float32) + i).view_as(p))
    return model


def data(rank):
    x = torch.cos(torch.arange(200, dtype=torch.float32) * (rank + 1)).view(20, 10)
    y = torch.sin(torch.arange(100, dtype=torch.float32) + rank).view(20, 5)
    return x, y


def norm(model):
    return sum(p.detach().double().pow(2).sum() for p in model.parameters()).sqrt().item()


def say(rank, text):
    """Let one rank print, when the others have printed what they do before."""
    sys.stdout.flush()
    dist.barrier()
    if dist.get_rank() == rank:
        print(text, flush=True)
    dist.barrier()


def demo_basic(rank, world_size, port):
    setup(rank, world_size, port)
    ddp_model = DDP(toy_model(0.1 * (rank + 1)))
    loss_fn = nn.MSELoss()
    optimizer = optim.SGD(ddp_model.parameters(), lr=0.1, momentum=0.9)
    inputs, labels = data(rank)
    for epoch in range(3):
        optimizer.zero_grad()
        loss = loss_fn(ddp_model(inputs), labels)
        loss.backward()
        optimizer.step()
        all_losses = [torch.zeros(()) for _ in range(world_size)]
        dist.all_gather(all_losses, loss.detach())
        if rank == 0:
            print("basic", epoch, " ".join(f"{v.item():.4f}" for v in all_losses))
    say(1, f"norm {norm(ddp_model):.4f}")
    cleanup()


def demo_checkpoint(rank, world_size, port):
    setup(rank, world_size, port)
    path = os.path.join(tempfile.gettempdir(), f"model-{port}.checkpoint")
    ddp_model = DDP(toy_model(0.1 * (rank + 1)))
    if rank == 0:
        torch.save(ddp_model.state_dict(), path)
    dist.barrier()
    other = DDP(toy_model(0.3))
    map_location = {"cuda:%d" % 0: "cuda:%d" % rank}
    other.load_state_dict(torch.load(path, map_location=map_location, weights_only=True))
    inputs, labels = data(rank)
    optimizer = optim.SGD(other.parameters(), lr=0.05)
    optimizer.zero_grad()
    nn.MSELoss()(other(inputs), labels).backward()
    optimizer.step()
    dist.barrier()
    if rank == 0:
        os.remove(path)
        print("keys", sorted(other.state_dict()))
        print(f"checkpoint {norm(other):.4f}")
    cleanup()


def demo_join(rank, world_size, port):
    setup(rank, world_size, port)
    model = DDP(nn.Linear(1, 1))
    with torch.no_grad():
        model.module.weight.fill_(1.0)
        model.module.bias.zero_()
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    inputs = [torch.tensor([1.0]) for _ in range(5 + rank)]
    count = 0
    with Join([model]):
        for x in inputs:
            count += 1
            loss = model(x).sum()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    total = torch.tensor(count)
    dist.all_reduce(total)
    if rank == 0:
        print("joined", total.item(), f"{model.module.weight.item():.4f}")
    with model.join():
        for x in inputs:
            model(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    say(1, f"joined again {model.module.weight.item():.4f}")
    cleanup()


def demo_averaging(rank, world_size, port):
    """Local steps, with parameters averaged every other step."""
    setup(rank, world_size, port)
    model = toy_model(0.2)
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    inputs, labels = data(rank)
    flat = torch.nn.utils.parameters_to_vector
    for step in range(6):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), labels).backward()
        optimizer.step()
        if step % 2:
            vector = flat(model.parameters()).detach()
            dist.all_reduce(vector, op=dist.ReduceOp.SUM)
            torch.nn.utils.vector_to_parameters(vector / world_size, model.parameters())
    if rank == 0:
        print(f"averaged {norm(model):.4f}", flush=True)
    cleanup()


def run_demo(demo_fn, world_size):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    mp.spawn(demo_fn, args=(world_size, port), nprocs=world_size, join=True)
    sys.stdout.flush()


if __name__ == "__main__":
    for demo in (demo_basic, demo_checkpoint, demo_join, demo_averaging):
        run_demo(demo, 2)
