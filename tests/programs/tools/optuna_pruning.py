"""optuna: a study that tries rates and widths of a network and prunes poor trials."""

import optuna
import torch
from recording import array, fill, record

optuna.logging.set_verbosity(optuna.logging.ERROR)
x, y = array(0, 32, 4), array(1, 32, 1)


def objective(trial):
    """Return the loss after 8 steps."""
    width = trial.suggest_int("width", 2, 16)
    model = fill(
        torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))
    )
    optimizer = torch.optim.SGD(
        model.parameters(), trial.suggest_float("rate", 1e-3, 0.3, log=True)
    )
    for step in range(8):
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        trial.report(loss.item(), step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return loss.item()


study = optuna.create_study(
    sampler=optuna.samplers.TPESampler(seed=3), pruner=optuna.pruners.MedianPruner()
)
study.optimize(objective, n_trials=12)
record("best", study.best_value, rtol=1e-2)
record("states", [trial.state.name for trial in study.trials])
