"""ema-pytorch: a moving average of a model in training, its schedule, post-hoc averages."""

import torch
from ema_pytorch import EMA, PostHocEMA
from recording import array, fill, record

model = fill(torch.nn.Linear(4, 3))
average = EMA(model, beta=0.9, update_after_step=2, update_every=2)
later = PostHocEMA(
    model,
    sigma_rels=(0.05, 0.28),
    update_every=1,
    checkpoint_every_num_steps=4,
    checkpoint_folder="checkpoints",
)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(12):
    loss = (model(array(step, 8, 4)) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update()
    later.update()
record("average", dict(average.ema_model.named_parameters()))
record("decay", average.get_current_decay())
record("output", average(array(20, 2, 4)))
record(
    "later",
    dict(later.synthesize_ema_model(sigma_rel=0.15).ema_model.named_parameters()),
    rtol=1e-2,
)
average.update_model_with_ema()
record("back", model.weight)
