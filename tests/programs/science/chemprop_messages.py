"""chemprop: message passing on molecules from SMILES, trained by Lightning, its predictions."""

import numpy as np
import torch
from chemprop import data, featurizers, models, nn
from lightning import pytorch as pl
from recording import fill, record

smiles = ["CCO", "c1ccccc1", "CC(=O)O", "CN", "CCCC", "OCCO", "C1CCCCC1", "CCN(CC)CC"]
values = np.linspace(-1, 1, 8)[:, None]
points = [data.MoleculeDatapoint.from_smi(s, y) for s, y in zip(smiles, values, strict=False)]
dataset = data.MoleculeDataset(points, featurizers.SimpleMoleculeMolGraphFeaturizer())
loader = data.build_dataloader(dataset, batch_size=4, shuffle=False, num_workers=0)
model = models.MPNN(
    nn.BondMessagePassing(d_h=16, depth=2),
    nn.MeanAggregation(),
    nn.RegressionFFN(input_dim=16, hidden_dim=16),
    batch_norm=True,
)
fill(model)
batch = next(iter(loader))
record("graph", batch.bmg.V)
record("fingerprint", model.fingerprint(batch.bmg), rtol=5e-3)
quiet = {
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "accelerator": "cpu",
}
trainer = pl.Trainer(max_epochs=3, **quiet)
trainer.fit(model, loader)
record("loss", trainer.callback_metrics["train_loss_epoch"], rtol=1e-2)
record("predictions", torch.cat(trainer.predict(model, loader)), rtol=2e-2)
