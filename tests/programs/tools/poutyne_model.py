"""poutyne: a Model fitted on arrays with callbacks and metrics, a checkpoint, predictions."""

import torch
from poutyne import Model, ModelCheckpoint, ReduceLROnPlateau
from recording import array, fill, record

x, y = array(0, 40, 4), torch.arange(40) % 3
net = fill(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)))
model = Model(
    net,
    torch.optim.Adam(net.parameters(), 0.05),
    "cross_entropy",
    batch_metrics=["accuracy"],
    epoch_metrics=["f1"],
)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 8)
history = model.fit_generator(
    data,
    data,
    epochs=3,
    progress_options={"coloring": False},
    verbose=False,
    callbacks=[
        ModelCheckpoint("best.pt", monitor="val_loss", save_best_only=True, restore_best=True),
        ReduceLROnPlateau(patience=1),
    ],
)
for key in ("loss", "acc", "val_loss", "val_fscore_macro"):
    record(key, [epoch[key] for epoch in history], rtol=5e-3)
record("predictions", model.predict(x.numpy(), batch_size=16), rtol=5e-3)
