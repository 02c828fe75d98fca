"""A classifier in two processes: DistributedSampler, no_sync, validation, a compressing hook."""

import contextlib
import os
import socket

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def dataset(n, seed):
    rng = np.random.RandomState(seed)
    y = rng.randint(0, 3, n)
    x = rng.randn(n, 1, 8, 8).astype(np.float32) * 0.5
    for i, c in enumerate(y):
        x[i, 0, c * 2 : c * 2 + 2] += 1.0
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y))


class ConvNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 4, 3, padding=1)
        self.bn = torch.nn.BatchNorm2d(4)
        self.fc = torch.nn.Linear(64, 3)
        rng = np.random.RandomState(5)
        with torch.no_grad():
            for p in (self.conv.weight, self.fc.weight):
                p.copy_(torch.from_numpy(rng.randn(*p.shape).astype(np.float32) * 0.2))
            self.conv.bias.zero_()
            self.fc.bias.zero_()

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn(self.conv(x))), 2)
        return self.fc(torch.flatten(x, 1))


class Trainer:
    def __init__(self, model, loader, optimizer, rank, accumulate):
        self.rank = rank
        self.loader = loader
        self.optimizer = optimizer
        self.accumulate = accumulate
        self.model = DistributedDataParallel(model)

    def epoch(self, number):
        self.loader.sampler.set_epoch(number)
        self.model.train()
        total = torch.zeros(2)
        for i, (x, y) in enumerate(self.loader):
            last = (i + 1) % self.accumulate == 0
            with contextlib.nullcontext() if last else self.model.no_sync():
                loss = F.cross_entropy(self.model(x), y) / self.accumulate
                loss.backward()
            if last:
                self.optimizer.step()
                self.optimizer.zero_grad()
            total += torch.tensor([loss.item() * self.accumulate, 1.0])
        dist.reduce(total, dst=0)
        return (total[0] / total[1]).item()

    @torch.no_grad()
    def accuracy(self, loader):
        self.model.eval()
        counts = torch.zeros(2, dtype=torch.int64)
        for x, y in loader:
            counts[0] += (self.model.module(x).argmax(1) == y).sum()
            counts[1] += len(y)
        dist.all_reduce(counts)
        return (counts[0].double() / counts[1]).item()


def main(rank, world_size, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world_size))
    dist.init_process_group(backend="gloo")
    train_set, test_set = dataset(96, 0), dataset(48, 1)
    sampler = DistributedSampler(train_set, shuffle=False)
    loader = DataLoader(train_set, batch_size=8, sampler=sampler)
    test = DataLoader(test_set, batch_size=16, sampler=DistributedSampler(test_set, shuffle=False))
    model = ConvNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    trainer = Trainer(model, loader, optimizer, rank, accumulate=2)
    for number in range(3):
        loss = trainer.epoch(number)
        score = trainer.accuracy(test)
        if rank == 0:
            print(f"epoch {number} loss {loss:.3f} accuracy {score:.2f}")
    hooked = DistributedDataParallel(ConvNet())
    hooked.register_comm_hook(None, default_hooks.fp16_compress_hook)
    F.cross_entropy(hooked(train_set.tensors[0][:8]), train_set.tensors[1][:8]).backward()
    if rank == 0:
        print(f"compressed {hooked.module.fc.bias.grad.abs().sum().item():.2f}")
    scores = [None] * world_size
    dist.all_gather_object(scores, {"rank": rank, "samples": len(sampler)})
    if rank == 0:
        print(scores)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    mp.spawn(main, args=(2, port), nprocs=2)
