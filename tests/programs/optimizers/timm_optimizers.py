"""timm: every optimizer of its registry that PyTorch alone runs, 20 steps of a small model."""

import timm.optim
from recording import array, fill, record
from torch import nn

x, y = array(0, 16, 6), array(1, 16, 1)
for name in timm.optim.list_optimizers():
    if name.startswith(("fused", "bnb", "apex")):
        continue
    model = fill(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 1)))
    needs_lr = {} if "prodigy" in name else {"lr": 1e-2}
    optimizer = timm.optim.create_optimizer_v2(model, name, weight_decay=1e-2, **needs_lr)
    if name.startswith("kron"):
        continue  # draws random numbers

    def closure(model=model, optimizer=optimizer):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward(create_graph=name == "adahessian")
        return loss

    if name == "adahessian":
        continue  # draws random numbers
    losses = []
    for _ in range(20):
        loss = closure()
        losses.append(loss.item())
        optimizer.step(closure)
    record(f"{name} losses", losses, rtol=5e-3, atol=1e-4)
    record(f"{name} trained", dict(model.named_parameters()), rtol=1e-2, atol=1e-3)
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)
    record(f"{name} state", sorted({key for each in state["state"].values() for key in each}))
