"""torch-ema: averaged weights that are put in for evaluation, saved and loaded."""

import torch
from recording import array, fill, record
from torch_ema import ExponentialMovingAverage

model = fill(torch.nn.Linear(4, 3))
optimizer = torch.optim.Adam(model.parameters(), 0.05)
average = ExponentialMovingAverage(model.parameters(), decay=0.9)
for step in range(10):
    loss = (model(array(step, 8, 4)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update()
with average.average_parameters():
    record("averaged", model(array(20, 3, 4)))
record("trained", model(array(20, 3, 4)))
torch.save(average.state_dict(), "average.pt")
again = ExponentialMovingAverage(model.parameters(), decay=0.5)
again.load_state_dict(torch.load("average.pt"))
again.copy_to()
record("copied", model.weight)
