"""pycox: survival by CoxPH and DeepHit with torchtuples: fitted, curves, concordance."""

import numpy as np
import torch
import torchtuples as tt
from pycox.models import CoxPH, DeepHitSingle
from recording import fill, record

rng = np.random.default_rng(0)
x = rng.standard_normal((80, 4)).astype(np.float32)
times, events = (
    rng.exponential(np.exp(-x[:, 0])).astype(np.float32),
    (rng.random(80) > 0.3).astype(np.float32),
)
torch.manual_seed(0)
net = fill(tt.practical.MLPVanilla(4, [8], 1, False, None))
cox = CoxPH(net, tt.optim.Adam(0.01))
log = cox.fit(x, (times, events), 80, 3, verbose=False)
record("losses", log.to_pandas()["train_loss"].to_numpy(), rtol=1e-2)
cox.compute_baseline_hazards()
curves = cox.predict_surv_df(x[:10])
record("curves", curves.to_numpy(), rtol=2e-2)
labels = DeepHitSingle.label_transform(6)
target = labels.fit_transform(times, events)
hit = DeepHitSingle(
    fill(tt.practical.MLPVanilla(4, [8], labels.out_features, False, None)),
    tt.optim.Adam(0.01),
    duration_index=labels.cuts,
)
record(
    "hit", hit.fit(x, target, 80, 2, verbose=False).to_pandas()["train_loss"].to_numpy(), rtol=1e-2
)
