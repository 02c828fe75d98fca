"""pytorch-optimizer: its optimizers, 10 steps each, its schedules and losses."""

import pytorch_optimizer as po
import torch
from recording import array, fill, record

x, y = array(0, 8, 6), array(1, 8, 3)
SKIP = {"distributed", "foreach", "demo", "spam", "muon"}
failed = []
for name in sorted(po.get_supported_optimizers()):
    model = fill(torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)))
    torch.manual_seed(0)
    losses = []
    try:
        optimizer = po.load_optimizer(name)(model.parameters(), lr=1e-3)
        for _ in range(10):

            def closure():
                """Return the loss with its gradients."""
                optimizer.zero_grad()
                loss = (model(x) - y).square().mean()
                loss.backward(create_graph=name in ("adahessian", "sophiah"))
                return loss

            loss = closure()
            losses.append(loss.item())
            optimizer.step(closure if name in ("bsam", "alig", "lomo", "adalomo") else None)
    except Exception:
        failed.append(name)
        continue
    record(name, losses, rtol=1e-2)
record("failed", failed)
for name in ("BCEFocalLoss", "DiceLoss", "LDAMLoss", "SoftF1Loss"):
    if name != "LDAMLoss" and hasattr(po, name):
        record(name, getattr(po, name)()(array(2, 8, 3), (array(3, 8, 3) > 0).float()))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
schedule = po.CosineAnnealingWarmupRestarts(optimizer, 10, max_lr=0.1, min_lr=0.01, warmup_steps=3)
rates = []
for _ in range(12):
    schedule.step()
    rates.append(optimizer.param_groups[0]["lr"])
record("rates", rates)
