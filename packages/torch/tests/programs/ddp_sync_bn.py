"""SyncBatchNorm and a shuffling DistributedSampler with set_epoch, workers and drop_last."""

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Waves(Dataset):
    def __init__(self, n):
        t = torch.arange(n * 16, dtype=torch.float32).view(n, 1, 4, 4)
        self.x = torch.sin(t * 0.37) + torch.arange(n).view(n, 1, 1, 1) * 0.05
        self.y = (self.x.mean((1, 2, 3)) > 0.6).long()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i], i


def build():
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64, 2),
    )
    with torch.no_grad():
        for p in net.parameters():
            if p.dim() > 1:
                p.copy_(torch.cos(torch.arange(p.numel(), dtype=torch.float32)).view_as(p) * 0.3)
        net[4].bias.zero_()
    return net


def main(rank, size, port):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    dist.init_process_group("gloo", rank=rank, world_size=size)
    torch.manual_seed(rank)
    dataset = Waves(30)
    sampler = DistributedSampler(dataset, num_replicas=size, rank=rank, shuffle=True, seed=3)
    loader = DataLoader(dataset, batch_size=5, sampler=sampler, num_workers=1, drop_last=True)
    plain = nn.SyncBatchNorm.convert_sync_batchnorm(build())
    # PyTorch's SyncBatchNorm runs on accelerators only; there DDP's broadcast buffers are compared
    model = DDP(build())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        seen, total = [], 0.0
        for x, y, i in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            seen += i.tolist()
            total += loss.item()
        both = [None] * size
        dist.all_gather_object(both, seen)
        flat = [i for part in both for i in part]
        assert len(flat) == len(set(flat)) == 30, "each sample once in an epoch"
        sums = torch.tensor(total)
        dist.reduce(sums, 0)
        if rank == 0:
            print("# order depends on the generator", seen[:5])
            print(f"epoch {epoch} samples {len(flat)}")
            assert sums.item() > 0
    uneven = DistributedSampler(range(7), num_replicas=2, rank=rank, shuffle=False)
    dropped = DistributedSampler(range(7), num_replicas=2, rank=rank, shuffle=False, drop_last=True)
    lists = [None] * size
    dist.all_gather_object(lists, (list(uneven), list(dropped), len(uneven), len(dropped)))
    if rank == 0:
        print(lists)
        print([type(m).__name__ for m in plain])
    plain.eval()
    out = plain(dataset.x[:2])
    if rank == 0:
        print("eval", [f"{v:.4f}" for v in out.flatten().tolist()])
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("", 0))
        port = s.getsockname()[1]
    mp.spawn(main, args=(2, port), nprocs=2)
