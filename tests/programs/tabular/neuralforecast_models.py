"""neuralforecast: NHITS, an MLP and a GRU fitted to two series, their forecasts."""

import numpy as np
import pandas as pd
from neuralforecast import NeuralForecast
from neuralforecast.models import GRU, MLP, NHITS
from recording import record

days = pd.date_range("2024-01-01", periods=80, freq="D")
frames = [
    pd.DataFrame(
        {"unique_id": name, "ds": days, "y": np.sin(np.arange(80) / period).astype(np.float32)}
    )
    for name, period in (("a", 4.0), ("b", 7.0))
]
common = {
    "h": 6,
    "input_size": 16,
    "max_steps": 5,
    "random_seed": 3,
    "accelerator": "cpu",
    "enable_progress_bar": False,
    "logger": False,
    "enable_checkpointing": False,
    "enable_model_summary": False,
}
forecast = NeuralForecast(
    [
        NHITS(mlp_units=3 * [[16, 16]], **common),
        MLP(hidden_size=16, **common),
        GRU(encoder_hidden_size=8, decoder_hidden_size=8, **common),
    ],
    freq="D",
)
forecast.fit(pd.concat(frames))
for name in ("NHITS", "MLP", "GRU"):
    record(name, forecast.predict()[name].to_numpy(), rtol=5e-2, atol=2e-2)
