"""fastai: a Learner with one cycle, callbacks, metrics, freezing, saving, and tabular data."""

import pandas as pd
from fastai.basics import DataLoader, DataLoaders, Learner, accuracy, tensor
from fastai.callback.schedule import fit_flat_cos, fit_one_cycle  # noqa: F401
from fastai.callback.training import GradientAccumulation, GradientClip
from fastai.learner import load_learner
from fastai.optimizer import Adam, Lamb, RAdam, ranger
from fastai.tabular.all import (
    Categorify,
    FillMissing,
    Normalize,
    TabularDataLoaders,
    tabular_learner,
)
from recording import array, fill, record
from torch import nn

x = array(0, 64, 6)
y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).long()
items = [(x[i], y[i]) for i in range(64)]
loaders = DataLoaders(DataLoader(items[:48], bs=16), DataLoader(items[48:], bs=16))


def network():
    return fill(nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2)))


for name, kind in {"adam": Adam, "radam": RAdam, "lamb": Lamb, "ranger": ranger}.items():
    options = {"loss_func": nn.CrossEntropyLoss(), "metrics": accuracy, "opt_func": kind}
    learner = Learner(loaders, network(), **options)
    with learner.no_bar(), learner.no_logging():
        learner.fit_one_cycle(5, 1e-2)
    record(f"{name} values", [list(row) for row in learner.recorder.values])
    record(f"{name} trained", learner.model.state_dict())

learner = Learner(loaders, network(), cbs=[GradientClip(0.1), GradientAccumulation(32)], **options)
with learner.no_bar(), learner.no_logging():
    learner.fit_flat_cos(3, 1e-2)
    learner.save("saved")
    learner.load("saved")
    record("predicted", learner.get_preds()[0])
    record("validated", list(learner.validate()))
record("typed", tensor([1.0, 2.0]))

frame = pd.DataFrame(
    {"a": x[:, 0].numpy(), "b": ["red", "blue"] * 32, "c": x[:, 1].numpy(), "y": y.numpy()}
)
tabular = TabularDataLoaders.from_df(
    frame, ".", [Categorify, FillMissing, Normalize], ["b"], ["a", "c"], "y", bs=16,
    valid_idx=list(range(48, 64)),
)  # fmt: skip
learner = tabular_learner(tabular, layers=[8], loss_func=nn.MSELoss(), n_out=1)
with learner.no_bar(), learner.no_logging():
    fill(learner.model)
    record("tabular", learner.get_preds()[0])
    learner.fit(1)
learner.export("exported.pkl")
again = load_learner("exported.pkl")
with again.no_bar(), again.no_logging():
    record("columns", [str(name) for name in again.dls.cont_names])
    record("exported", [name for name, _ in again.model.named_parameters()])
