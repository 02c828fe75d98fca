"""deepctr-torch: DeepFM and xDeepFM on sparse and dense features, fitted and evaluated."""

import numpy as np
from deepctr_torch.inputs import DenseFeat, SparseFeat, get_feature_names
from deepctr_torch.models import DCN, DeepFM, xDeepFM
from recording import fill, record

rng = np.random.default_rng(0)
columns = [SparseFeat("user", 10, 4), SparseFeat("item", 12, 4), DenseFeat("price", 1)]
inputs = {
    "user": rng.integers(0, 10, 128),
    "item": rng.integers(0, 12, 128),
    "price": rng.random(128),
}
y = (inputs["user"] % 2 == inputs["item"] % 2).astype(np.float32)
record("names", get_feature_names(columns))
for kind in (DeepFM, xDeepFM, DCN):
    model = fill(kind(columns, columns, dnn_hidden_units=(8, 4), device="cpu", seed=3))
    model.compile("adagrad", "binary_crossentropy", metrics=["auc"])
    history = model.fit(inputs, y, batch_size=32, epochs=2, verbose=0, shuffle=False)
    record(f"{kind.__name__} losses", history.history["loss"], rtol=1e-2)
    record(f"{kind.__name__} predictions", model.predict(inputs, 64), rtol=2e-2)
