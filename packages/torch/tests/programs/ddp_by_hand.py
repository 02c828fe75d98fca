"""Collectives and messages: gradients averaged by hand, a ring, groups, objects."""

import os
import socket

import numpy as np
import torch
import torch.distributed as dist
from torch.multiprocessing import Process


def average_gradients(model):
    size = float(dist.get_world_size())
    for param in model.parameters():
        dist.all_reduce(param.grad.data, op=dist.ReduceOp.SUM)
        param.grad.data /= size


def ring_all_reduce(send):
    rank, size = dist.get_rank(), dist.get_world_size()
    send_buff, recv_buff = send.clone(), torch.zeros_like(send)
    accum = send.clone()
    left, right = (rank - 1 + size) % size, (rank + 1) % size
    for _ in range(size - 1):
        request = dist.isend(send_buff, right)
        dist.recv(recv_buff, left)
        accum += recv_buff
        request.wait()
        send_buff, recv_buff = recv_buff.clone(), send_buff
    return accum


def train(rank, size):
    model = torch.nn.Linear(4, 1)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[0.1, -0.2, 0.3, -0.4]]))
        model.bias.zero_()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rng = np.random.RandomState(10 + rank)
    for step in range(5):
        x = torch.from_numpy(rng.randn(6, 4).astype(np.float32))
        loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model)
        optimizer.step()
        dist.reduce(loss.data, 0)
        if rank == 0:
            print(f"step {step} loss {loss.item() / size:.4f}")


def run(rank, size):
    train(rank, size)
    ring = ring_all_reduce(torch.full((3,), float(rank + 1)))
    pair = dist.new_group([0, 2])
    x = torch.tensor([rank + 1.0])
    if rank in (0, 2):
        dist.all_reduce(x, op=dist.ReduceOp.PRODUCT, group=pair)
    gathered = [torch.zeros(1) for _ in range(size)] if rank == 0 else None
    dist.gather(x, gather_list=gathered, dst=0)
    part = torch.zeros(2)
    parts = [torch.full((2,), 10.0 * i) for i in range(size)] if rank == 1 else None
    dist.scatter(part, scatter_list=parts, src=1)
    own = torch.arange(size) + 10 * rank
    out = torch.empty(size, dtype=torch.int64)
    dist.all_to_all_single(out, own)
    work = dist.broadcast(part, src=2, async_op=True)
    work.wait()
    objects = [{"lr": 0.1}, "adam"] if rank == 0 else [None, None]
    dist.broadcast_object_list(objects, src=0)
    flat = torch.zeros(size * 2)
    dist.all_gather_into_tensor(flat, torch.tensor([rank * 1.0, rank * 2.0]))
    highest = torch.tensor([rank, -rank])
    dist.all_reduce(highest, op=dist.ReduceOp.MAX)
    dist.monitored_barrier()
    if rank == 0:
        print("ring", ring.tolist(), "pair", [t.item() for t in gathered])
        print("part", part.tolist(), "all to all", out.tolist(), "objects", objects)
        print("flat", flat.tolist(), "highest", highest.tolist())
        print(dist.get_backend(), dist.get_world_size(), dist.is_initialized())
    dist.destroy_process_group()


def init_process(rank, size, port, fn, backend="gloo"):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = port
    dist.init_process_group(backend, rank=rank, world_size=size)
    fn(rank, size)


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    torch.multiprocessing.set_start_method("spawn")
    processes = []
    for rank in range(3):
        p = Process(target=init_process, args=(rank, 3, port, run))
        p.start()
        processes.append(p)
    for p in processes:
        p.join()
    print([p.exitcode for p in processes])
