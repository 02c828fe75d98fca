"""lion-pytorch: Lion of a small model, with weight decay, saved and loaded in 30 steps."""

import torch
from lion_pytorch import Lion
from recording import array, fill, record

model = fill(torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)))
optimizer = Lion(model.parameters(), 1e-3, weight_decay=0.1)
x, y = array(0, 8, 6), array(1, 8, 3)
losses = []
for step in range(30):
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    if step == 15:
        torch.save(optimizer.state_dict(), "state.pt")
        optimizer = Lion(model.parameters(), 1e-3, weight_decay=0.1)
        optimizer.load_state_dict(torch.load("state.pt"))

record("losses", losses)
record("parameters", dict(model.named_parameters()))
record("groups", sorted(map(str, optimizer.param_groups[0])))
record("state", sorted(map(str, optimizer.state_dict()["state"][0])))
