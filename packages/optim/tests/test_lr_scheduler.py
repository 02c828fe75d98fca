"""Schedules against closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait_optim as optim
from plait_optim import lr_scheduler

# schedules alone: no step of an optimizer comes before theirs
pytestmark = pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")


def optimizer() -> optim.SGD:
    groups = [{"params": [np.ones(1)]}, {"params": [np.ones(1)], "lr": 0.5}]
    return optim.SGD(groups, lr=2.0)


CASES: list[tuple[Callable[[Any], lr_scheduler.LRScheduler], Callable[[float, int], float]]] = [
    (lambda o: lr_scheduler.StepLR(o, 3, gamma=0.5), lambda lr, t: lr * 0.5 ** (t // 3)),
    (lambda o: lr_scheduler.ExponentialLR(o, 0.9), lambda lr, t: lr * 0.9**t),
    (lambda o: lr_scheduler.LambdaLR(o, lambda t: 1 / (1 + t)), lambda lr, t: lr / (1 + t)),
    (
        lambda o: lr_scheduler.LambdaLR(o, [lambda t: 1 + t, lambda t: 1 + t]),
        lambda lr, t: lr * (1 + t),
    ),
    (
        lambda o: lr_scheduler.CosineAnnealingLR(o, 5, eta_min=0.1),
        lambda lr, t: 0.1 + (lr - 0.1) * (1 + math.cos(math.pi * t / 5)) / 2,
    ),
    (
        lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 5),
        lambda lr, t: lr * (1 + math.cos(math.pi * (t % 5) / 5)) / 2,
    ),
    (
        lambda o: lr_scheduler.MultiStepLR(o, [2, 2, 7], gamma=0.5),
        lambda lr, t: lr * 0.5 ** (2 * (t >= 2) + (t >= 7)),
    ),
    (lambda o: lr_scheduler.ConstantLR(o, 0.5, 4), lambda lr, t: lr * (0.5 if t < 4 else 1)),
    (lambda o: lr_scheduler.ConstantLR(o, 0.0, 4), lambda lr, t: lr * (t >= 4)),
    (
        lambda o: lr_scheduler.LinearLR(o, 0.5, 0.1, 8),
        lambda lr, t: lr * (0.5 - 0.4 * min(t, 8) / 8),
    ),
    (
        lambda o: lr_scheduler.PolynomialLR(o, 9, power=3.0),
        lambda lr, t: lr * (1 - min(t, 9) / 9) ** 3,
    ),
    (lambda o: lr_scheduler.MultiplicativeLR(o, lambda t: 0.9), lambda lr, t: lr * 0.9**t),
    (
        lambda o: lr_scheduler.ChainedScheduler(
            [lr_scheduler.ConstantLR(o, 0.5, 3), lr_scheduler.ExponentialLR(o, 0.9)]
        ),
        lambda lr, t: lr * 0.9**t * (0.5 if t < 3 else 1),
    ),
    (
        lambda o: lr_scheduler.SequentialLR(
            o, [lr_scheduler.LinearLR(o, 0.5, 1.0, 4), lr_scheduler.ExponentialLR(o, 0.9)], [4]
        ),
        lambda lr, t: lr * (0.5 + t / 8 if t < 4 else 0.9 ** (t - 4)),
    ),
]


@pytest.mark.parametrize(("make", "rate"), CASES)
def test_rates(make: Any, rate: Any) -> None:
    o = optimizer()
    schedule = make(o)
    for t in range(13):
        expected = [rate(2.0, t), rate(0.5, t)]
        np.testing.assert_allclose(schedule.get_last_lr(), expected, rtol=1e-12, atol=1e-15)
        assert schedule.get_last_lr() == [group["lr"] for group in o.param_groups]
        schedule.step()


@pytest.mark.parametrize(("make", "rate"), CASES)
def test_a_schedule_is_resumed(make: Any, rate: Any) -> None:
    o = optimizer()
    schedule = make(o)
    for _ in range(4):
        schedule.step()
    other = optimizer()
    resumed = make(other)
    other.load_state_dict(o.state_dict())
    resumed.load_state_dict(schedule.state_dict())
    resumed.step()
    np.testing.assert_allclose(resumed.get_last_lr(), [rate(2.0, 5), rate(0.5, 5)], rtol=1e-12)


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match="int is not an Optimizer"):
        lr_scheduler.ExponentialLR(1, 0.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Expected 2 lr_lambdas, but got 1"):
        lr_scheduler.LambdaLR(optimizer(), [lambda t: 1.0])
    with pytest.raises(KeyError, match="initial_lr"):
        lr_scheduler.ExponentialLR(optimizer(), 0.5, last_epoch=3)


L = lr_scheduler


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda o: L.ConstantLR(o, 1.5), "factor must be between 0 and 1; got 1.5"),
        (lambda o: L.LinearLR(o, 0.0), "start_factor must be greater than 0"),
        (lambda o: L.LinearLR(o, end_factor=2.0), "end_factor must be between 0 and 1"),
        (lambda o: L.CosineAnnealingWarmRestarts(o, 0), "positive integer T_0, but got 0"),
        (lambda o: L.CosineAnnealingWarmRestarts(o, 1, 0), "T_mult >= 1, but got 0"),
        (lambda o: L.CosineAnnealingWarmRestarts(o, 1).step(-1), "non-negative epoch"),
        (lambda o: L.CyclicLR(o, 0.1, 1.0, mode="square"), "mode is invalid"),
        (lambda o: L.CyclicLR(o, 0.1, [1.0]), "expected 2 values for max_lr, got 1"),
        (lambda o: L.OneCycleLR(o, 1.0), "total_steps OR"),
        (lambda o: L.OneCycleLR(o, 1.0, total_steps=0), "positive integer total_steps"),
        (lambda o: L.OneCycleLR(o, 1.0, total_steps=9, pct_start=2.0), "between 0 and 1"),
        (lambda o: L.OneCycleLR(o, 1.0, total_steps=9, anneal_strategy="up"), "instead got up"),
        (lambda o: L.ReduceLROnPlateau(o, "up"), "mode up is unknown"),
        (lambda o: L.ReduceLROnPlateau(o, threshold_mode="x"), "threshold mode x is unknown"),
        (lambda o: L.ReduceLROnPlateau(o, factor=1.0), "Factor should be < 1.0"),
        (lambda o: L.ReduceLROnPlateau(o, min_lr=[0.1]), "expected 2 min_lrs, got 1"),
        (lambda o: L.ChainedScheduler([]), "at least one scheduler"),
        (lambda o: L.ChainedScheduler([L.ReduceLROnPlateau(o)]), "does not support"),
        (lambda o: L.SequentialLR(o, [L.ExponentialLR(o, 0.5)], [3]), "one more than"),
        (lambda o: L.SequentialLR(optimizer(), [L.ExponentialLR(o, 0.5)], []), "another one"),
    ],
)
def test_options_out_of_range(make: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make(optimizer())


def test_a_schedule_of_momenta_needs_some() -> None:
    adagrad = optim.Adagrad([np.ones(1)])
    with pytest.raises(ValueError, match="must support momentum or beta1"):
        L.OneCycleLR(adagrad, 1.0, total_steps=5)
    L.OneCycleLR(adagrad, 1.0, total_steps=5, cycle_momentum=False)


def test_one_cycle_ends() -> None:
    schedule = L.OneCycleLR(optimizer(), 1.0, total_steps=3)
    for _ in range(3):
        schedule.step()
    with pytest.raises(ValueError, match="Tried to step 4 times"):
        schedule.step()


def test_a_chain_cannot_begin_later() -> None:
    o = optimizer()
    chain = L.ChainedScheduler([L.ExponentialLR(o, 0.5)])
    with pytest.raises(ValueError, match="ChainedScheduler must come first"):
        L.SequentialLR(o, [L.ExponentialLR(o, 0.5), chain], [3])


def test_a_group_that_came_later() -> None:
    o = optimizer()
    one, each = L.ReduceLROnPlateau(o, patience=0), L.ReduceLROnPlateau(o, min_lr=[0.0, 0.0])
    each.patience = 0
    o.add_param_group({"params": [np.ones(1)]})
    for _ in range(2):
        one.step(1.0)
    assert one.get_last_lr()[2] == 0.2
    each.step(1.0)
    with pytest.raises(RuntimeError, match="change `min_lrs`"):
        each.step(1.0)


@pytest.mark.filterwarnings("error")
def test_a_step_before_the_optimizers_is_warned_about() -> None:
    first = optimizer()
    schedule = lr_scheduler.StepLR(first, 1)
    with pytest.warns(UserWarning, match="before `optimizer.step.*: StepLR"):
        schedule.step()
    schedule.step()  # once is enough
    second = optimizer()
    schedule = lr_scheduler.StepLR(second, 1)
    second.step(grads=[np.zeros(1), np.zeros(1)])
    schedule.step()


def test_get_lr_outside_of_a_step_is_warned_about() -> None:
    schedule = lr_scheduler.StepLR(optimizer(), 1)
    with pytest.warns(UserWarning, match=r"use `get_last_lr\(\)`: StepLR.get_lr"):
        schedule.get_lr()


@pytest.mark.parametrize("name", ["StepLR", "ReduceLROnPlateau"])
def test_steps_to_a_given_epoch_warn(name: str) -> None:
    optimizer = optim.SGD([np.zeros(1)], lr=1.0)
    step = (
        lr_scheduler.StepLR(optimizer, 1).step
        if name == "StepLR"
        else lambda epoch: lr_scheduler.ReduceLROnPlateau(optimizer).step(1.0, epoch)
    )
    with pytest.warns(UserWarning, match=r"^The epoch parameter in `scheduler.step\(\)` was not"):
        step(3)


def test_rates_have_the_digits_of_pytorch() -> None:
    sgd = optim.SGD([np.zeros(1)], lr=0.2)
    restarts = lr_scheduler.CosineAnnealingWarmRestarts(sgd, 12, 3, 0.003)
    for epoch, rate in (
        (5, 0.1269936759425983),
        (7, 0.07600632405740172),
        (29, 0.11008484066064433),
    ):
        restarts.step(epoch)
        assert restarts.get_last_lr() == [rate]
    cycle = lr_scheduler.CyclicLR(
        sgd, 0.01, 0.3, 7, mode="exp_range", gamma=0.99, cycle_momentum=False
    )
    rates = [cycle.get_last_lr()[0] for _ in range(10) if not cycle.step()]
    assert rates[:4] == [
        *(0.05101428571428569, 0.09120828571428566),
        *(0.13059430428571422, 0.16918448165714275),
    ]
