"""Save, stop, resume: model, optimizer, schedule and random state in one file."""

import os
import random
import tempfile

import numpy as np
import torch
import torch.nn as nn


def build():
    rng = np.random.default_rng(5)
    model = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.Tanh(), nn.Linear(12, 1))
    for p in model.parameters():
        p.data.copy_(torch.from_numpy(rng.uniform(-0.5, 0.5, p.shape)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, amsgrad=True)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[3, 6], gamma=0.5)
    return model, optimizer, scheduler


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False


def train(state, epochs, x, y):
    model, optimizer, scheduler = state
    losses = []
    for _ in range(epochs):
        loss = nn.functional.smooth_l1_loss(model(x + 0.01 * torch.randn_like(x)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


rng = np.random.default_rng(0)
x = torch.from_numpy(rng.normal(size=(32, 6))).float()
y = x[:, :1] * 2 - x[:, 1:2]
folder = tempfile.mkdtemp()
path = os.path.join(folder, "checkpoint.pth.tar")

set_seed(11)
state = build()
first = train(state, 4, x, y)
torch.save(
    {
        "epoch": 4,
        "arch": "mlp",
        "state_dict": state[0].state_dict(),
        "optimizer": state[1].state_dict(),
        "scheduler": state[2].state_dict(),
        "rng": torch.get_rng_state(),
        "best": torch.tensor(min(first)),
    },
    path,
)
straight = train(state, 5, x, y)

torch.manual_seed(99)
model, optimizer, scheduler = build()
checkpoint = torch.load(path, map_location="cpu")
model.load_state_dict(checkpoint["state_dict"])
optimizer.load_state_dict(checkpoint["optimizer"])
scheduler.load_state_dict(checkpoint["scheduler"])
torch.set_rng_state(checkpoint["rng"].cpu())
resumed = train((model, optimizer, scheduler), 5, x, y)
assert resumed == straight, (resumed, straight)
print("epoch", checkpoint["epoch"], checkpoint["arch"], scheduler.get_last_lr())
print("keys", sorted(checkpoint["optimizer"]["state"][0]), len(checkpoint["state_dict"]))

# a whole module, the older way
torch.save(model, os.path.join(folder, "model.pt"))
again = torch.load(os.path.join(folder, "model.pt"), weights_only=False)
again.eval(), model.eval()
assert torch.equal(again(x), model(x))

missing = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.Tanh(), nn.Linear(12, 2))
try:
    missing.load_state_dict(checkpoint["state_dict"])
except RuntimeError as error:
    print("size mismatch" in str(error))
partial = {k: v for k, v in checkpoint["state_dict"].items() if not k.startswith("3.")}
print(missing.load_state_dict(partial, strict=False).missing_keys)
