"""Schedules against the closed forms of what they are named after."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import plait_optim as optim
from plait_optim import lr_scheduler


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
]


@pytest.mark.parametrize(("make", "rate"), CASES)
def test_rates(make: Any, rate: Any) -> None:
    o = optimizer()
    schedule = make(o)
    for t in range(13):
        wanted = [rate(2.0, t), rate(0.5, t)]
        np.testing.assert_allclose(schedule.get_last_lr(), wanted, rtol=1e-12, atol=1e-15)
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
