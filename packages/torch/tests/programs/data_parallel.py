"""Programs that use several devices if they are available."""

import os

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    world = int(os.environ.get("WORLD_SIZE", 1))
    distributed = world > 1
    rank = dist.get_rank() if dist.is_available() and dist.is_initialized() else 0
    rng = np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
    for p in model.parameters():
        p.data = torch.tensor(rng.normal(0, 0.4, tuple(p.shape)), dtype=torch.float)
    if torch.cuda.device_count() > 1:
        print("using", torch.cuda.device_count(), "devices")
    model = nn.DataParallel(model)
    model.to(device)
    print(sorted(model.state_dict()), rank, distributed)
    sampler = None
    loader = DataLoader(
        TensorDataset(torch.from_numpy(rng.normal(size=(40, 5)).astype("f4"))),
        batch_size=8,
        shuffle=sampler is None,
        sampler=sampler,
        drop_last=True,
        pin_memory=device.type == "cuda",
    )
    sizes = []
    for (data,) in loader:
        output = model(data.to(device, non_blocking=True))
        sizes.append((tuple(data.size()), tuple(output.size())))
    print(len(sizes), sizes[0])
    raw = model.module if hasattr(model, "module") else model
    clean = {k.replace("module.", ""): v for k, v in model.state_dict().items()}
    print(raw.load_state_dict(clean))
    total = model(torch.ones(2, 5)).sum().item()
    print(f"{total:.4f}", torch.cuda.device_count(), torch.backends.cudnn.enabled)


if __name__ == "__main__":
    main()
