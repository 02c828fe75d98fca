"""skorch: a classifier in scikit-learn's pipelines, callbacks, a grid search, saved and loaded."""

import numpy as np
import torch
from recording import fill, record
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import Checkpoint, EarlyStopping, EpochScoring, LRScheduler
from skorch.dataset import ValidSplit
from torch import nn

numbers = np.random.default_rng(0)
x = numbers.standard_normal((80, 6)).astype(np.float32)
y = (x[:, 0] * x[:, 1] + x[:, 2] > 0).astype(np.int64)


class Net(nn.Module):
    def __init__(self, width=12, classes=2):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, classes))
        fill(self)

    def forward(self, X):
        return self.net(X)


def classifier(**options):
    options = {"max_epochs": 10, "verbose": 0, "lr": 0.1, **options}
    return NeuralNetClassifier(Net, criterion=nn.CrossEntropyLoss, **options)


net = classifier(
    train_split=ValidSplit(4, stratified=True),
    batch_size=20,
    optimizer=torch.optim.SGD,
    optimizer__momentum=0.9,
    callbacks=[
        EpochScoring("roc_auc", lower_is_better=False),
        EarlyStopping(patience=20),
        Checkpoint(dirname="saved"),
        LRScheduler("StepLR", step_size=4),
    ],
)
net.fit(x, y)
record("train", net.history[:, "train_loss"])
record("valid", net.history[:, "valid_loss"])
record("auc", net.history[:, "roc_auc"])
record("trained", net.module_.state_dict())
record("probabilities", net.predict_proba(x))
loaded = classifier().initialize()
loaded.load_params(checkpoint=Checkpoint(dirname="saved"))
record("loaded", loaded.predict(x))

record("scores", cross_val_score(make_pipeline(StandardScaler(), classifier()), x, y, cv=3))
search = GridSearchCV(classifier(train_split=False), {"lr": [0.01, 0.1], "module__width": [4, 8]})
search.fit(x, y)
record("search", search.cv_results_["mean_test_score"])
regressor = NeuralNetRegressor(
    Net, module__classes=1, max_epochs=5, verbose=0, optimizer=torch.optim.Adam
)
record("regressor", regressor.fit(x, x[:, :1]).predict(x))
