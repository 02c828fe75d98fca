"""neuraloperator: Fourier neural operators and their losses, trained for a few steps."""

import torch
from neuralop.losses import H1Loss, LpLoss
from neuralop.models import FNO
from recording import array, fill, record

x, y = array(0, 2, 2, 16, 16), array(1, 2, 1, 16, 16)
model = fill(FNO(n_modes=(6, 6), in_channels=2, out_channels=1, hidden_channels=8, n_layers=2))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
measure, smooth = LpLoss(d=2, p=2), H1Loss(d=2)
losses = []
for _ in range(5):
    output = model(x)
    loss = measure(output, y) + 0.1 * smooth(output, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
record("losses", losses, rtol=5e-3)
record("finer", model(array(2, 1, 2, 24, 24)), rtol=2e-2)
record("parameters", sum(p.numel() for p in model.parameters()))
