"""Training that writes for TensorBoard, where its package is installed."""

import os
import sys
import tempfile

import numpy as np
import torch
import torch.nn as nn

try:
    from torch.utils.tensorboard import SummaryWriter
except ImportError as error:
    print("#", error)
    sys.exit(0 if "tensorboard" in str(error) else 1)

folder = tempfile.mkdtemp()
writer = SummaryWriter(log_dir=folder, comment="toy")
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    loss = (model(torch.ones(4, 3)) - 2).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    writer.add_scalar("Loss/train", loss, step)
    writer.add_scalar("Loss/value", loss.item(), global_step=step)
    writer.add_histogram("weight", model.weight, step)
writer.add_scalars("both", {"a": 1.0, "b": torch.tensor(2.0)}, 0)
writer.add_image("picture", torch.rand(3, 8, 8), 0)
writer.add_image("grey", np.zeros((1, 4, 4)), 0)
writer.add_images("pictures", torch.rand(4, 3, 5, 5), 0)
writer.add_text("note", "a *line*", 0)
writer.add_hparams({"lr": 0.1, "bsize": 4}, {"hparam/loss": loss.item()})
writer.flush()
writer.close()
files = [name for _, _, names in os.walk(folder) for name in names]
assert any("tfevents" in name for name in files), files
