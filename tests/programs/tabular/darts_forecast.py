"""darts: N-BEATS, an LSTM and a TCN fitted to a series with a covariate, forecast and saved."""

import numpy as np
from darts import TimeSeries
from darts.dataprocessing.transformers import Scaler
from darts.metrics import mae
from darts.models import NBEATSModel, RNNModel, TCNModel
from recording import record

t = np.arange(120)
series = TimeSeries.from_values((np.sin(t / 5) + 0.01 * t).astype(np.float32))
series = Scaler().fit_transform(series)
train, test = series[:100], series[100:]
quiet = {
    "accelerator": "cpu",
    "enable_progress_bar": False,
    "logger": False,
    "enable_model_summary": False,
    "enable_checkpointing": False,
}
common = {"n_epochs": 2, "random_state": 3, "batch_size": 16, "pl_trainer_kwargs": quiet}
models = {
    "nbeats": NBEATSModel(16, 8, num_stacks=1, num_blocks=1, layer_widths=16, **common),
    "lstm": RNNModel(16, model="LSTM", hidden_dim=8, training_length=20, **common),
    "tcn": TCNModel(16, 8, num_filters=4, dropout=0.0, **common),
}
for name, model in models.items():
    model.fit(train)
    forecast = model.predict(8)
    record(name, forecast.values(), rtol=5e-2, atol=2e-2)
    record(f"{name} error", mae(test[:8], forecast), rtol=5e-2)
model.save("model.pt")
record(
    "again",
    bool(
        np.allclose(
            TCNModel.load("model.pt", trusted=True).predict(8).values(),
            forecast.values(),
            atol=1e-5,
        )
    ),
)
