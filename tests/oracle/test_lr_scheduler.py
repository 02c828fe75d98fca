"""Schedules step by step against torch's: rates, momenta, states, steps to an epoch."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import plait_optim as optim

pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning"
)  # torch's advice on the order of steps


class Falling:
    """A callable object, whose attributes are saved."""

    def __init__(self, power: float) -> None:
        self.power = power

    def __call__(self, t: float) -> float:
        return float((1 + t) ** -self.power)


SCHEDULES: list[tuple[str, dict[str, Any]]] = [
    ("StepLR", {"step_size": 3, "gamma": 0.5}),
    ("MultiStepLR", {"milestones": [2, 5, 5, 9], "gamma": 0.5}),
    ("ConstantLR", {}),
    ("ConstantLR", {"factor": 0.25, "total_iters": 3}),
    ("LinearLR", {}),
    ("LinearLR", {"start_factor": 1.0, "end_factor": 0.1, "total_iters": 7}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("PolynomialLR", {"total_iters": 7}),
    ("PolynomialLR", {"total_iters": 30, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 7, "eta_min": 0.01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 4}),
    ("CosineAnnealingWarmRestarts", {"T_0": 2, "T_mult": 2, "eta_min": 0.01}),
    ("LambdaLR", {"lr_lambda": lambda t: 1 / (1 + t)}),
    ("LambdaLR", {"lr_lambda": [Falling(0.5), Falling(1.0)]}),
    ("MultiplicativeLR", {"lr_lambda": lambda t: 1 - t / 100}),
    ("CyclicLR", {"base_lr": 0.1, "max_lr": 1.0, "step_size_up": 3}),
    (
        "CyclicLR",
        {
            "base_lr": 0.1,
            "max_lr": [1.0, 2.0],
            "step_size_up": 3,
            "step_size_down": 5,
            "mode": "triangular2",
        },
    ),
    (
        "CyclicLR",
        {
            "base_lr": 0.1,
            "max_lr": 1.0,
            "step_size_up": 3,
            "mode": "exp_range",
            "gamma": 0.95,
            "base_momentum": 0.5,
            "max_momentum": 0.7,
        },
    ),
    (
        "CyclicLR",
        {
            "base_lr": 0.1,
            "max_lr": 1.0,
            "step_size_up": 3,
            "scale_fn": Falling(0.5),
            "scale_mode": "iterations",
            "cycle_momentum": False,
        },
    ),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 25}),
    (
        "OneCycleLR",
        {
            "max_lr": [1.0, 2.0],
            "epochs": 5,
            "steps_per_epoch": 5,
            "pct_start": 0.4,
            "anneal_strategy": "linear",
            "div_factor": 10.0,
        },
    ),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 24, "three_phase": True}),
    ("OneCycleLR", {"max_lr": 1.0, "total_steps": 24, "cycle_momentum": False}),
]


def sequential(m: Any, o: Any) -> Any:
    parts = [m.LinearLR(o, total_iters=3), m.ExponentialLR(o, 0.9), m.CosineAnnealingLR(o, 5)]
    return m.SequentialLR(o, parts, milestones=[4, 9])


def chained(m: Any, o: Any) -> Any:
    return m.ChainedScheduler([m.ConstantLR(o, 0.5, 4), m.ExponentialLR(o, 0.9), m.StepLR(o, 3)])


def chain_first(m: Any, o: Any) -> Any:
    chain = m.ChainedScheduler([m.ConstantLR(o, 0.5, 4), m.ExponentialLR(o, 0.9)])
    return m.SequentialLR(o, [chain, m.CosineAnnealingWarmRestarts(o, 3)], milestones=[5])


def plain(name: str, options: dict[str, Any]) -> Callable[[Any, Any], Any]:
    return lambda m, o: getattr(m, name)(o, **copy.deepcopy(options))


CASES = [
    *(pytest.param(plain(*case), id=f"{case[0]}-{i}") for i, case in enumerate(SCHEDULES)),
    *(pytest.param(make, id=make.__name__) for make in (sequential, chained, chain_first)),
]


def optimizers(name: str) -> tuple[Any, Any]:
    options = {"lr": 0.3, "momentum": 0.9} if name == "SGD" else {"lr": 0.3}
    theirs = [{"params": [torch.ones(1)]}, {"params": [torch.ones(1)], "lr": 0.7}]
    own = [{"params": [np.ones(1)]}, {"params": [np.ones(1)], "lr": 0.7}]
    return getattr(torch.optim, name)(theirs, **options), getattr(optim, name)(own, **options)


def assert_same(theirs: Any, own: Any) -> None:
    for other, group in zip(theirs.param_groups, own.param_groups, strict=True):
        for name in ("lr", "momentum", "betas"):
            if name in group:
                np.testing.assert_allclose(group[name], other[name], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", ["SGD", "Adam"])
@pytest.mark.parametrize("make", CASES)
def test_rates_and_momenta(make: Any, name: str) -> None:
    theirs, own = optimizers(name)
    their_schedule = make(torch.optim.lr_scheduler, theirs)
    schedule = make(optim.lr_scheduler, own)
    for _ in range(24):
        assert_same(theirs, own)
        np.testing.assert_allclose(
            schedule.get_last_lr(), their_schedule.get_last_lr(), rtol=1e-12, atol=1e-15
        )
        their_schedule.step()
        schedule.step()


def plain_data(value: Any) -> Any:
    """Return what two states can be compared by: no functions, and floats rounded."""
    if isinstance(value, dict):
        return {key: plain_data(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_data(v) for v in value]
    return float(f"{value:.12g}") if isinstance(value, float) else value


@pytest.mark.parametrize("make", CASES)
def test_states_go_both_ways(make: Any) -> None:
    theirs, own = optimizers("SGD")
    their_schedule = make(torch.optim.lr_scheduler, theirs)
    schedule = make(optim.lr_scheduler, own)
    for _ in range(5):
        their_schedule.step()
        schedule.step()
    saved = {k: plain_data(v) for k, v in schedule.state_dict().items()}
    expected = {k: plain_data(v) for k, v in their_schedule.state_dict().items()}
    private = {"_get_lr_called_within_step", "_is_initial", "_step_count", "_schedulers"}
    for name in set(expected) - private:
        assert saved[name] == expected[name], name
    # each goes on from what the other saved
    other_theirs, other_mine = optimizers("SGD")
    resumed_theirs = make(torch.optim.lr_scheduler, other_theirs)
    resumed = make(optim.lr_scheduler, other_mine)
    resumed.load_state_dict(copy.deepcopy(their_schedule.state_dict()))
    resumed_theirs.load_state_dict(copy.deepcopy(schedule.state_dict()))
    other_mine.load_state_dict(own.state_dict())
    for group, saved_group in zip(other_theirs.param_groups, theirs.param_groups, strict=True):
        group.update({k: v for k, v in saved_group.items() if k != "params"})
    for _ in range(8):
        for each in (their_schedule, resumed_theirs, resumed):
            each.step()
        assert_same(theirs, other_mine)
        assert_same(theirs, other_theirs)


@pytest.mark.parametrize(("name", "options"), SCHEDULES, ids=str)
def test_steps_to_an_epoch(name: str, options: dict[str, Any]) -> None:
    theirs, own = optimizers("SGD")
    their_schedule = getattr(torch.optim.lr_scheduler, name)(theirs, **options)
    schedule = getattr(optim.lr_scheduler, name)(own, **options)
    for epoch in (3, 1, 0, 6, 20):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            their_schedule.step(epoch)
        schedule.step(epoch)
        assert_same(theirs, own)


def test_warm_restarts_at_fractions_of_epochs() -> None:
    theirs, own = optimizers("SGD")
    options = {"T_0": 3, "T_mult": 2}
    their_schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(theirs, **options)
    schedule = optim.lr_scheduler.CosineAnnealingWarmRestarts(own, **options)
    for epoch in np.linspace(0, 25, 60):
        their_schedule.step(float(epoch))
        schedule.step(float(epoch))
        assert_same(theirs, own)


@pytest.mark.parametrize(
    "options",
    [
        {"patience": 2},
        {"mode": "max", "patience": 1, "factor": 0.5, "cooldown": 2},
        {"patience": 0, "threshold": 0.1, "threshold_mode": "abs", "min_lr": [0.01, 0.1]},
        {"mode": "max", "patience": 0, "threshold": 0.1, "threshold_mode": "abs", "eps": 0.05},
    ],
    ids=str,
)
def test_plateaus(options: dict[str, Any]) -> None:
    theirs, own = optimizers("SGD")
    their_schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **options)
    schedule = optim.lr_scheduler.ReduceLROnPlateau(own, **options)
    values = np.random.default_rng(0).standard_normal(40).cumsum()
    for i, value in enumerate([*values, float("nan"), float("nan"), float("nan")]):
        their_schedule.step(value)
        schedule.step(value)
        assert_same(theirs, own)
        if i == 20:
            resumed = optim.lr_scheduler.ReduceLROnPlateau(own, **options)
            resumed.load_state_dict(their_schedule.state_dict())
            schedule = resumed


@pytest.mark.parametrize("name", ["StepLR", "ExponentialLR", "CosineAnnealingLR", "LinearLR"])
def test_resuming_by_number(name: str) -> None:
    options = dict(SCHEDULES)[name]
    theirs, own = optimizers("SGD")
    for o in (theirs, own):
        for group in o.param_groups:
            group["initial_lr"] = group["lr"]
            group["lr"] *= 0.5
    their_schedule = getattr(torch.optim.lr_scheduler, name)(theirs, **options, last_epoch=3)
    schedule = getattr(optim.lr_scheduler, name)(own, **options, last_epoch=3)
    for _ in range(6):
        assert_same(theirs, own)
        their_schedule.step()
        schedule.step()
