"""pytorch-warmup: warm-ups beside a cosine schedule of AdamW, 20 steps."""

import pytorch_warmup as warmup
import torch
from recording import array, fill, record

for kind in (warmup.UntunedLinearWarmup, warmup.UntunedExponentialWarmup, warmup.RAdamWarmup):
    model = fill(torch.nn.Linear(4, 3))
    optimizer = torch.optim.AdamW(model.parameters(), 0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
    damped = kind(optimizer)
    rates, losses = [], []
    for step in range(20):
        loss = (model(array(step, 8, 4)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with damped.dampening():
            schedule.step()
        rates.append(optimizer.param_groups[0]["lr"])
        losses.append(loss.item())
    record(f"{kind.__name__} rates", rates)
    record(f"{kind.__name__} losses", losses)
