"""Whole steps of training, compiled: the bits of eager steps in everything that a step leaves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import plait_core as pc
import plait_nn as nn
import plait_optim as optim
from plait_autograd import grad, no_grad
from plait_graph import compile
from plait_nn import functional as F

sys.path.insert(0, str(Path(__file__).parent))

from same_bits import bits

STEPS = 6


class Training:
    """A model, its optimizer and its step: eager, frozen, or with calls that wait.

    Args:
        make: returns the model.
        data: returns the arguments of the step for the number of a step.
        optimizer: makes the optimizer of the model's parameters.
        step: the step; it gets the training and the data.
    """

    def __init__(
        self,
        make: Callable[[], nn.Module],
        data: Callable[[], Any],
        optimizer: Callable[[nn.Module], Any],
        step: Callable[..., Any],
        *,
        mode: str,
    ) -> None:
        pc.manual_seed(0)
        self.model = model = make()
        self.optimizer = opt = optimizer(model)
        self.data = data
        self.calls = 0

        def function(*batch: Any) -> Any:
            self.calls += 1
            return step(model, opt, *batch)

        compiled = {"frozen": True, "deferred": False}
        self.step = compile(function, frozen=compiled[mode]) if mode in compiled else function

    def run(self, after: Callable[[Training, int], None] | None = None) -> Iterator[Any]:
        """Make steps; yield what each leaves."""
        for k in range(STEPS):
            pc.manual_seed(100 + k)
            result = self.step(*self.data())
            if after:
                after(self, k)
            yield (
                bits(result),
                [bits(p) for p in self.model.parameters()],
                [None if p.grad is None else bits(p.grad) for p in self.model.parameters()],
                [bits(b) for b in self.model.buffers()],
                bits(self.optimizer.state_dict()),
                pc.rand(1).item(),
            )


def compare(
    make: Callable[[], nn.Module],
    data: Callable[[], Any],
    optimizer: Callable[[nn.Module], Any],
    step: Callable[..., Any],
    after: Callable[[Training, int], None] | None = None,
    modes: tuple[str, ...] = ("frozen", "deferred"),
) -> None:
    """Train eagerly and compiled, and compare after each step."""
    eager = list(Training(make, data, optimizer, step, mode="eager").run(after))
    parts = ("result", "parameters", "gradients", "buffers", "optimizer", "generator")
    for mode in modes:
        compiled = Training(make, data, optimizer, step, mode=mode)
        for k, (x, y) in enumerate(zip(eager, compiled.run(after), strict=True)):
            for part, a, b in zip(parts, x, y, strict=True):
                assert a == b, f"{mode}, step {k}: {part}"
        if mode == "frozen":
            assert compiled.calls <= 3
        else:
            assert compiled.step.graphs()


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3))


def points() -> Any:
    return pc.randn(4, 5), pc.randint(0, 3, (4,))


def sgd(model: nn.Module) -> Any:
    return optim.SGD(model.parameters(), lr=0.1)


def adam(model: nn.Module) -> Any:
    return optim.Adam(model.parameters(), lr=0.01)


def plain(model: nn.Module, opt: Any, x: Any, y: Any) -> Any:
    opt.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    opt.step()
    return loss


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "sgd momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1),
    "sgd dampening": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3),
    "sgd nesterov": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, maximize=True),
    "adam": lambda p: optim.Adam(p, lr=0.01),
    "adam amsgrad": lambda p: optim.Adam(p, lr=0.01, amsgrad=True, weight_decay=0.1),
    "adamw": lambda p: optim.AdamW(p, lr=0.01, weight_decay=0.1),
    "adamax": lambda p: optim.Adamax(p, lr=0.01),
    "nadam": lambda p: optim.NAdam(p, lr=0.01),
    "radam": lambda p: optim.RAdam(p, lr=0.01),
    "adagrad": lambda p: optim.Adagrad(p, lr=0.1, lr_decay=0.1),
    "adadelta": lambda p: optim.Adadelta(p, lr=0.1),
    "rmsprop": lambda p: optim.RMSprop(p, lr=0.01),
    "rmsprop centered": lambda p: optim.RMSprop(p, lr=0.01, centered=True, momentum=0.9),
    "rprop": lambda p: optim.Rprop(p, lr=0.01),
    "asgd": lambda p: optim.ASGD(p, lr=0.01, t0=3),
    "adafactor": lambda p: optim.Adafactor(p, lr=0.01),
    "muon": lambda p: optim.Muon([q for q in p if q.ndim == 2], lr=0.01),
}


TAKEN = [name for name in OPTIMIZERS if name != "adafactor"]


@pytest.mark.parametrize("name", TAKEN)
def test_optimizers(name: str) -> None:
    compare(perceptron, points, lambda m: OPTIMIZERS[name](list(m.parameters())), plain)


@pytest.mark.parametrize("name", [name for name in TAKEN if name != "muon"])
def test_learning_rates_of_schedulers(name: str) -> None:
    def schedule(training: Training, k: int) -> None:
        if k == 0:
            training.scheduler = optim.lr_scheduler.ExponentialLR(training.optimizer, 0.5)
        training.scheduler.step()

    compare(perceptron, points, lambda m: OPTIMIZERS[name](list(m.parameters())), plain, schedule)


def test_an_optimizer_whose_numbers_are_refused() -> None:
    """Python computes the rate and the decay of a step of Adafactor between operator calls."""

    def make(model: nn.Module) -> Any:
        return OPTIMIZERS["adafactor"](list(model.parameters()))

    with pytest.raises(RuntimeError, match=r"cannot be frozen: .* in one call"):
        compare(perceptron, points, make, plain)
    compare(perceptron, points, make, plain, modes=("deferred",))


@pytest.mark.parametrize("name", ["StepLR", "CosineAnnealingLR", "OneCycleLR", "CyclicLR"])
def test_schedulers(name: str) -> None:
    more = {
        "StepLR": (2,),
        "CosineAnnealingLR": (4,),
        "OneCycleLR": (0.2, 8),
        "CyclicLR": (0.01, 0.2, 2),
    }[name]

    def schedule(training: Training, k: int) -> None:
        if k == 0:
            kind = getattr(optim.lr_scheduler, name)
            training.scheduler = kind(training.optimizer, *more)
        training.scheduler.step()

    compare(
        perceptron,
        points,
        lambda m: optim.SGD(m.parameters(), lr=0.1, momentum=0.9),
        plain,
        schedule,
    )


def groups(model: Any) -> Any:
    return optim.AdamW(
        [
            {"params": [model[0].weight], "lr": 0.1},
            {"params": [model[0].bias, model[2].bias], "weight_decay": 0.0},
            {"params": [model[2].weight], "betas": (0.8, 0.9)},
        ],
        lr=0.01,
    )


def test_groups() -> None:
    compare(perceptron, points, groups, plain)


def test_option_of_one_group_changes() -> None:
    def change(training: Training, k: int) -> None:
        training.optimizer.param_groups[2]["lr"] = 0.1 / (k + 1)
        training.optimizer.param_groups[1]["eps"] = 1e-3 * k

    compare(perceptron, points, groups, plain, change)


def test_gradients_set_to_zero() -> None:
    def step(model: nn.Module, opt: Any, x: Any, y: Any) -> Any:
        opt.zero_grad(set_to_none=False)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        return loss

    compare(perceptron, points, adam, step)


def test_gradients_kept() -> None:
    def step(model: nn.Module, opt: Any, x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        return loss

    compare(perceptron, points, adam, step)


def test_gradients_set_to_none_behind_the_step() -> None:
    def step(model: nn.Module, opt: Any, x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad()
        return loss

    compare(perceptron, points, adam, step)


def test_two_backward_passes() -> None:
    def step(model: nn.Module, opt: Any, x: Any, y: Any) -> Any:
        opt.zero_grad()
        total = 0.0
        for part, labels in zip(x.chunk(2), y.chunk(2), strict=True):
            loss = F.cross_entropy(model(part), labels) / 2
            loss.backward()
            total = total + loss.detach()
        opt.step()
        return total

    compare(perceptron, points, adam, step)


@pytest.mark.parametrize("kind", ["norm", "value"])
def test_clipped_gradients(kind: str) -> None:
    def step(model: nn.Module, opt: Any, x: Any, y: Any) -> Any:
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        norm = None
        if kind == "norm":
            norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        else:
            nn.utils.clip_grad_value_(model.parameters(), 0.01)
        opt.step()
        return loss, norm

    compare(perceptron, points, adam, step)


def test_frozen_parameters() -> None:
    def make() -> nn.Module:
        model: Any = perceptron()
        model[0].requires_grad_(False)
        return model

    compare(make, points, adam, plain)


def test_shared_parameters() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(7, 4)
            self.scores = nn.Linear(4, 7, bias=False)
            self.scores.weight = self.words.weight

        def forward(self, x: Any) -> Any:
            return self.scores(self.words(x).sum(1))

    def sentences() -> Any:
        return pc.randint(0, 7, (4, 3)), pc.randint(0, 7, (4,))

    compare(Tied, sentences, adam, plain)


def convolutional() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Dropout(0.4), nn.Conv2d(4, 4, 3), nn.GroupNorm(2, 4), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(4, 3),
    )  # fmt: skip


def pictures() -> Any:
    return pc.randn(4, 2, 8, 8), pc.randint(0, 3, (4,))


def test_convolutions_and_norms() -> None:
    compare(convolutional, pictures, adam, plain)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_recurrent(kind: str) -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = getattr(nn, kind)(5, 4, num_layers=2, dropout=0.3, bidirectional=True)
            self.scores = nn.Linear(8, 3)

        def forward(self, x: Any) -> Any:
            return self.scores(self.rnn(x)[0][-1])

    def sequences() -> Any:
        return pc.randn(6, 4, 5), pc.randint(0, 3, (4,))

    compare(Recurrent, sequences, adam, plain)


def test_attention() -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(9, 8)
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.2, batch_first=True)
            self.scores = nn.Linear(8, 3)

        def forward(self, x: Any) -> Any:
            return self.scores(self.layer(self.words(x)).mean(1))

    def sentences() -> Any:
        return pc.randint(0, 9, (4, 6)), pc.randint(0, 3, (4,))

    compare(Attention, sentences, adam, plain)


def test_two_optimizers() -> None:
    def both(model: Any) -> Any:
        second = optim.Adam(model[2].parameters(), lr=0.01)
        first = optim.SGD(model[0].parameters(), lr=0.1, momentum=0.9)
        first.second = second
        return first

    def step(model: nn.Module, opt: Any, x: Any, y: Any) -> Any:
        opt.zero_grad()
        opt.second.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        opt.second.step()
        return loss

    compare(perceptron, points, both, step)


def test_closure() -> None:
    def step(model: nn.Module, opt: Any, x: Any, y: Any) -> Any:
        def loss() -> Any:
            opt.zero_grad()
            value = F.cross_entropy(model(x), y)
            value.backward()
            return value

        return opt.step(loss)

    compare(perceptron, points, adam, step)


def test_adversarial() -> None:
    def step(model: nn.Module, opt: Any, x: Any, y: Any) -> Any:
        x = x.clone().requires_grad_()
        (slope,) = grad(F.cross_entropy(model(x), y), [x])
        return plain(model, opt, (x + 0.1 * slope.sign()).detach(), y)

    compare(perceptron, points, adam, step)


def test_penalty_on_gradients() -> None:
    def step(model: nn.Module, opt: Any, x: Any, y: Any) -> Any:
        opt.zero_grad()
        x = x.clone().requires_grad_()
        (slope,) = grad(model(x).sum(), [x], create_graph=True)
        loss = F.cross_entropy(model(x), y) + (slope.norm(dim=1) - 1).square().mean()
        loss.backward()
        opt.step()
        return loss

    compare(perceptron, points, adam, step)


def test_averaged_weights() -> None:
    def both(model: nn.Module) -> Any:
        opt = adam(model)
        opt.average = [p.detach().clone() for p in model.parameters()]
        return opt

    def step(model: nn.Module, opt: Any, x: Any, y: Any) -> Any:
        loss = plain(model, opt, x, y)
        with no_grad():
            for mean, p in zip(opt.average, model.parameters(), strict=True):
                mean.lerp_(p, 0.1)
        return loss, [mean.clone() for mean in opt.average]

    compare(perceptron, points, both, step)


def test_forward_compiled_inside_an_eager_loop() -> None:
    seen = []
    for frozen in (None, True, False):
        pc.manual_seed(0)
        model = convolutional()
        opt = adam(model)
        forward = model if frozen is None else compile(model, frozen=frozen)
        for k in range(STEPS):
            pc.manual_seed(k)
            x, y = pictures()
            opt.zero_grad()
            loss = F.cross_entropy(forward(x), y)
            loss.backward()
            opt.step()
            seen.append(
                (k, bits(loss), bits(list(model.parameters())), bits(list(model.buffers())))
            )
    assert seen[:STEPS] == seen[STEPS : 2 * STEPS] == seen[2 * STEPS :]
