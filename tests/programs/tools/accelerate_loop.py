"""accelerate: a loop that accumulates gradients and clips them, save_state and load_state."""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from recording import array, fill, record
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

set_seed(0)
x = array(0, 64, 8)
data = TensorDataset(x, (x.sum(1) > 0).long())
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = fill(nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 2)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
model, optimizer, loader, scheduler = accelerator.prepare(
    model, optimizer, DataLoader(data, batch_size=8), scheduler
)


def train(epochs):
    losses = []
    for _ in range(epochs):
        for inputs, labels in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(inputs), labels)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            losses.append(accelerator.gather_for_metrics(loss.detach()).mean().item())
    return losses


record("losses", train(2))
accelerator.save_state("state")
record("more losses", train(3))
record("trained", accelerator.unwrap_model(model).state_dict())
accelerator.load_state("state")
record("losses again", train(3))
record("trained again", accelerator.unwrap_model(model).state_dict())
accelerator.save_model(model, "saved")
record("gathered", accelerator.gather(x[:2]))
