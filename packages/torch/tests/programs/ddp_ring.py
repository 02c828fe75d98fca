"""Gradients reduced by hand: a ring of send and recv, in chunks, and all-gather behind it."""

import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def ring_reduce_scatter_gather(flat):
    """The textbook's all-reduce: each rank sends one chunk to the right at a time."""
    rank, size = dist.get_rank(), dist.get_world_size()
    chunks = list(flat.chunk(size))
    left, right = (rank - 1) % size, (rank + 1) % size
    for phase in range(2):
        for step in range(size - 1):
            sent = (rank - step + phase) % size
            got = (rank - step - 1 + phase) % size
            buffer = torch.empty_like(chunks[got])
            if rank % 2 == 0:
                dist.send(chunks[sent], right)
                dist.recv(buffer, left)
            else:
                dist.recv(buffer, left)
                dist.send(chunks[sent], right)
            chunks[got].copy_(buffer) if phase else chunks[got].add_(buffer)
    return flat


def sync_grads(model):
    grads = [p.grad for p in model.parameters()]
    size = sum(g.numel() for g in grads)
    pad = -size % dist.get_world_size()
    flat = torch.cat([g.reshape(-1) for g in grads] + [torch.zeros(pad)])
    ring_reduce_scatter_gather(flat)
    flat /= dist.get_world_size()
    offset = 0
    for g in grads:
        g.copy_(flat[offset : offset + g.numel()].view_as(g))
        offset += g.numel()


def exchange(rank, size):
    """Messages with tags, non-blocking ones, and a batch of them."""
    right, left = (rank + 1) % size, (rank - 1) % size
    one, two = torch.zeros(2), torch.zeros(2)
    if rank == 0:
        dist.send(torch.tensor([1.0, 2.0]), dst=1, tag=7)
        dist.send(torch.tensor([3.0, 4.0]), dst=1, tag=8)
    elif rank == 1:
        source = dist.recv(one, src=0, tag=7)
        dist.recv(two, src=0, tag=8)
        print("tags", one.tolist(), two.tolist(), "from", source, flush=True)
    dist.barrier()
    got = torch.zeros(3, dtype=torch.int64)
    ops = [
        dist.P2POp(dist.isend, torch.full((3,), rank), right),
        dist.P2POp(dist.irecv, got, left),
    ]
    for request in dist.batch_isend_irecv(ops):
        request.wait()
    everything = [torch.zeros_like(got) for _ in range(size)]
    dist.all_gather(everything, got)
    if rank == 0:
        print("batch", [t.tolist() for t in everything], flush=True)
    request = dist.isend(torch.tensor([rank]), right)
    incoming = torch.zeros(1, dtype=torch.int64)
    reply = dist.irecv(incoming, left)
    request.wait()
    reply.wait()
    assert incoming.item() == left and reply.is_completed()


def main(rank, size, port):
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size
    )
    model = nn.Sequential(nn.Linear(3, 7), nn.Tanh(), nn.Linear(7, 1))
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.linspace(-0.5, 0.5, p.numel()).view_as(p))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    x = torch.linspace(-1, 1, 24).view(8, 3) * (rank + 1) / size
    for step in range(4):
        optimizer.zero_grad()
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        loss.backward()
        sync_grads(model)
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        if rank == 0:
            print(f"step {step} loss {mean.item() / size:.4f}", flush=True)
    exchange(rank, size)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        free = s.getsockname()[1]
    context = mp.spawn(main, args=(3, free), nprocs=3, join=False)
    while not context.join(timeout=5):
        pass
    print("done")
