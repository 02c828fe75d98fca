"""gluonts: DeepAR and a feed-forward network trained for two epochs, their quantiles."""

import numpy as np
import pandas as pd
import torch
from gluonts.dataset.pandas import PandasDataset
from gluonts.torch import DeepAREstimator, SimpleFeedForwardEstimator
from recording import record

index = pd.period_range("2024-01-01", periods=120, freq="D")
frame = pd.DataFrame({"target": np.sin(np.arange(120) / 5).astype(np.float32)}, index=index)
dataset = PandasDataset(frame, target="target", freq="D")
quiet = {
    "max_epochs": 2,
    "accelerator": "cpu",
    "enable_progress_bar": False,
    "logger": False,
    "enable_model_summary": False,
}
estimators = {
    "feed": SimpleFeedForwardEstimator(
        6,
        context_length=12,
        hidden_dimensions=[8],
        batch_size=8,
        num_batches_per_epoch=5,
        trainer_kwargs=quiet,
    ),
    "deepar": DeepAREstimator(
        "D",
        6,
        context_length=12,
        hidden_size=8,
        num_layers=1,
        batch_size=8,
        num_batches_per_epoch=5,
        dropout_rate=0.0,
        trainer_kwargs=quiet,
    ),
}
for name, estimator in estimators.items():
    torch.manual_seed(0)
    np.random.seed(0)
    predictor = estimator.train(dataset)
    torch.manual_seed(0)
    forecast = next(iter(predictor.predict(dataset)))
    record(name, forecast.quantile(0.5), rtol=0.15, atol=0.1)
