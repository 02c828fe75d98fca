"""lightning: a Trainer with callbacks, a schedule, clipping, a checkpoint, and resuming from it."""

import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from recording import array, fill, record
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regression(L.LightningModule):
    def __init__(self, width: int = 16, lr: float = 0.02):
        super().__init__()
        self.save_hyperparameters()
        self.net = fill(nn.Sequential(nn.Linear(8, width), nn.Tanh(), nn.Linear(width, 1)))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, index):
        x, y = batch
        loss = nn.functional.mse_loss(self(x), y)
        self.log("loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val_loss", nn.functional.mse_loss(self(x), y))

    def predict_step(self, batch, index):
        return self(batch[0])

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.02, total_steps=20)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": scheduler, "interval": "step"},
        }


def trainer(epochs):
    saved = ModelCheckpoint("checkpoints", monitor="val_loss", save_last=True)
    callbacks = [saved, LearningRateMonitor("step"), EarlyStopping("val_loss", patience=10)]
    return L.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        callbacks=callbacks,
        logger=CSVLogger("logs"),
        gradient_clip_val=1.0,
        log_every_n_steps=1,
        enable_progress_bar=False,
    )


x = array(0, 40, 8)
data = TensorDataset(x, x[:, :1] * 2 + x[:, 1:2].sin())
train, val = DataLoader(data, batch_size=8), DataLoader(data, batch_size=20)
L.seed_everything(0)

half = trainer(2)
half.fit(Regression(), train, val)
record("half", dict(half.callback_metrics.items()))

model = Regression()
whole = trainer(4)
whole.fit(model, train, val, ckpt_path="checkpoints/last.ckpt")
record("steps", whole.global_step)
record("metrics", dict(whole.callback_metrics.items()))
record("trained", model.state_dict())
record("best", whole.checkpoint_callback.best_model_score)

loaded = Regression.load_from_checkpoint("checkpoints/last.ckpt")
record("width", loaded.hparams.width)
record("predicted", torch.cat(whole.predict(loaded, val)))
record("validated", whole.validate(loaded, val, verbose=False)[0])
