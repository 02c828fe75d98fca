"""torch-optimizer: all of its optimizers for 20 steps of a small model, saved and loaded once."""

import torch
import torch_optimizer
from recording import array, fill, record

x, y = array(0, 8, 6), array(1, 8, 3)
for name, kind in sorted(torch_optimizer._NAME_OPTIM_MAP.items()):
    if name in ("adahessian", "shampoo", "lookahead"):
        continue
    model = fill(torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)))
    optimizer = kind(model.parameters(), lr=1e-3)
    losses = []
    for step in range(20):
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step == 10:
            state = optimizer.state_dict()
            optimizer = kind(model.parameters(), lr=1e-3)
            optimizer.load_state_dict(state)
    record(name, losses, rtol=5e-3)
