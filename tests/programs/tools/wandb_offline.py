"""wandb: a run without the network that logs losses and histograms of gradients."""

import os

os.environ["WANDB_MODE"] = "offline"
os.environ["WANDB_SILENT"] = "true"
import torch
import wandb
from recording import array, fill, record

run = wandb.init(project="programs", dir=".", config={"rate": 0.1})
model = fill(torch.nn.Linear(4, 2))
run.watch(model, log="all", log_freq=1)
optimizer = torch.optim.SGD(model.parameters(), run.config["rate"])
for step in range(4):
    loss = (model(array(step, 8, 4)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    run.log({"loss": loss, "weights": wandb.Histogram(model.weight.detach())})
record("summary", float(run.summary["loss"]))
record("keys", sorted(key for key in dict(run.summary) if not key.startswith("_")))
run.finish()
