"""higher: gradients through inner loops of SGD and Adam, as in MAML."""

import higher
import torch
from recording import array, fill, record

for kind, options in (
    (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    (torch.optim.Adam, {"lr": 0.01}),
):
    model = fill(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)))
    inner, outer = kind(model.parameters(), **options), torch.optim.Adam(model.parameters(), 0.01)
    losses = []
    for task in range(4):
        outer.zero_grad()
        with higher.innerloop_ctx(model, inner, copy_initial_weights=False) as (fast, steps):
            for _ in range(3):
                steps.step((fast(array(task, 6, 4)) - 1).square().mean())
            loss = (fast(array(task + 9, 6, 4)) - 1).square().mean()
            loss.backward()
        outer.step()
        losses.append(loss.item())
    record(kind.__name__, losses, rtol=5e-3)
    record(f"{kind.__name__} gradient", model[0].weight.grad, rtol=1e-2)
