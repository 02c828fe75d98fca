"""pytorch-forecasting: a data set of series, the temporal fusion transformer and its loss."""

import numpy as np
import pandas as pd
import torch
from pytorch_forecasting import QuantileLoss, TemporalFusionTransformer, TimeSeriesDataSet
from recording import fill, record

t = np.tile(np.arange(40), 2)
frame = pd.DataFrame(
    {
        "t": t,
        "g": np.repeat(["a", "b"], 40),
        "y": np.sin(t / 4.0).astype(np.float32) + 2,
        "x": np.cos(t / 3.0).astype(np.float32),
    }
)
data = TimeSeriesDataSet(
    frame,
    time_idx="t",
    target="y",
    group_ids=["g"],
    max_encoder_length=12,
    max_prediction_length=4,
    time_varying_known_reals=["t", "x"],
    time_varying_unknown_reals=["y"],
    static_categoricals=["g"],
)
x, y = next(iter(data.to_dataloader(train=False, batch_size=8, num_workers=0)))
record("continuous", x["encoder_cont"], rtol=5e-3)
model = TemporalFusionTransformer.from_dataset(
    data,
    hidden_size=8,
    attention_head_size=2,
    hidden_continuous_size=4,
    dropout=0.0,
    loss=QuantileLoss(),
    learning_rate=0.01,
)
fill(model)
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
losses = []
for _ in range(5):
    loss = model.loss(model(x)["prediction"], y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
record("losses", losses, rtol=1e-2)
model.eval()
record("weights", model(x)["static_variables"], rtol=2e-2)
