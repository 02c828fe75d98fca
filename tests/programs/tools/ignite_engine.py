"""pytorch-ignite: a trainer and an evaluator with metrics, handlers, a checkpoint, resuming."""

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import Checkpoint, DiskSaver, EarlyStopping, TerminateOnNan
from ignite.handlers.param_scheduler import LinearCyclicalScheduler, PiecewiseLinear
from ignite.metrics import Accuracy, ConfusionMatrix, Fbeta, Loss, Precision, RunningAverage
from recording import array, fill, record
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = array(0, 64, 6)
data = TensorDataset(x, (x[:, 0] + x[:, 1].square() > 0.5).long())
loader = DataLoader(data, batch_size=16)


def build():
    model = fill(nn.Sequential(nn.Linear(6, 12), nn.SELU(), nn.Linear(12, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    trainer = create_supervised_trainer(model, optimizer, nn.CrossEntropyLoss())
    schedule = PiecewiseLinear(optimizer, "lr", [(0, 0.02), (8, 0.1), (20, 0.01)])
    trainer.add_event_handler(Events.ITERATION_STARTED, schedule)
    trainer.add_event_handler(Events.ITERATION_COMPLETED, TerminateOnNan())
    RunningAverage(output_transform=lambda loss: loss).attach(trainer, "loss")
    return model, optimizer, trainer


model, optimizer, trainer = build()
precision = Precision(average=False)
evaluator = create_supervised_evaluator(
    model,
    {
        "accuracy": Accuracy(),
        "loss": Loss(nn.CrossEntropyLoss()),
        "precision": precision,
        "f1": Fbeta(1.0, precision=precision),
        "confusion": ConfusionMatrix(2),
    },
)
losses = []
state = {"model": model, "optimizer": optimizer, "trainer": trainer}
saver = Checkpoint(state, DiskSaver("saved", create_dir=True), n_saved=None)
trainer.add_event_handler(Events.EPOCH_COMPLETED(every=2), saver)
trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda: evaluator.run(loader))
stopper = EarlyStopping(5, lambda engine: -engine.state.metrics["loss"], trainer)
evaluator.add_event_handler(Events.COMPLETED, stopper)


@trainer.on(Events.ITERATION_COMPLETED)
def keep(engine):
    losses.append(engine.state.output)


trainer.run(loader, max_epochs=5)
record("losses", losses)
record("average", trainer.state.metrics)
record("metrics", evaluator.state.metrics)
record("trained", model.state_dict())

model, optimizer, trainer = build()
state = {"model": model, "optimizer": optimizer, "trainer": trainer}
Checkpoint.load_objects(state, torch.load("saved/checkpoint_8.pt"))
trainer.run(loader, max_epochs=5)
record("resumed", trainer.state.iteration)
record("trained again", model.state_dict())
cycle = LinearCyclicalScheduler.simulate_values(
    12, param_name="lr", start_value=0.0, end_value=1.0, cycle_size=6
)
record("cycle", [value for _, value in cycle])
