"""pytorch-tabnet: a classifier and a regressor fitted, explained, saved and loaded, pretrained."""

import numpy as np
import torch
from pytorch_tabnet.pretraining import TabNetPretrainer
from pytorch_tabnet.tab_model import TabNetClassifier, TabNetRegressor
from recording import record

rng = np.random.default_rng(0)
x = rng.standard_normal((256, 8)).astype(np.float32)
y = (x[:, 0] + x[:, 1] > 0).astype(int)
size = {"n_d": 4, "n_a": 4, "n_steps": 2, "seed": 3, "verbose": 0, "device_name": "cpu"}
fit = {"max_epochs": 3, "batch_size": 64, "virtual_batch_size": 32, "drop_last": False}
model = TabNetClassifier(**size)
model.fit(x, y, eval_set=[(x, y)], **fit)
record("losses", model.history["loss"], rtol=2e-2)
record("auc", model.history["val_0_auc"], rtol=5e-2)
record("probabilities", model.predict_proba(x[:16]), rtol=0.1, atol=2e-2)
record("importance", model.feature_importances_, rtol=0.1, atol=2e-2)
path = model.save_model("model")
again = TabNetClassifier()
again.load_model(path)
record("again", bool(np.allclose(again.predict_proba(x), model.predict_proba(x), atol=1e-5)))
record("explained", model.explain(x[:8])[0].shape)
regressor = TabNetRegressor(**size, optimizer_fn=torch.optim.AdamW)
regressor.fit(x, x[:, :1] * 2, **fit)
record("regression", regressor.history["loss"], rtol=2e-2)
before = TabNetPretrainer(**size)
before.fit(x, max_epochs=2, batch_size=64, virtual_batch_size=32)
record("pretrained", before.history["loss"], rtol=5e-2)
