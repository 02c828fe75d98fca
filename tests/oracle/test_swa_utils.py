"""Averages of weights and their schedule against torch's."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

import plait_optim as optim

pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning"
)  # torch's advice on the order of steps


@pytest.fixture(autouse=True)
def _numbers_of_torch_are_double() -> Any:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def network() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)
    ).double()


def change(model: Any, t: int) -> None:
    generator = torch.Generator().manual_seed(t)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn(p.shape, generator=generator, dtype=torch.float64))
    model(torch.randn(8, 3, generator=generator, dtype=torch.float64))


FUNCTIONS: list[Any] = [
    lambda m: {},
    lambda m: {"use_buffers": False, "avg_fn": m.get_swa_avg_fn()},
    lambda m: {"multi_avg_fn": m.get_swa_multi_avg_fn()},
    lambda m: {"avg_fn": m.get_ema_avg_fn(0.7)},
    lambda m: {"multi_avg_fn": m.get_ema_multi_avg_fn(0.7)},
    lambda m: {"multi_avg_fn": m.get_ema_multi_avg_fn(0.7), "use_buffers": True},
]


@pytest.mark.parametrize("functions", FUNCTIONS)
def test_averages_of_a_model(functions: Any) -> None:
    model = network()
    theirs = torch.optim.swa_utils.AveragedModel(model, **functions(torch.optim.swa_utils))
    own = optim.swa_utils.AveragedModel(model, **functions(optim.swa_utils))
    for t in range(4):
        change(model, t)
        theirs.update_parameters(model)
        own.update_parameters(model)
        state, expected = own.state_dict(), theirs.state_dict()
        assert list(state) == list(expected)
        for name in expected:
            np.testing.assert_allclose(state[name], expected[name], rtol=1e-12, atol=1e-14)
        if t == 1:
            saved = copy.deepcopy(expected)
            theirs.load_state_dict(copy.deepcopy(state))
            own.load_state_dict(saved)
    x = torch.randn(2, 3, dtype=torch.float64)
    torch.testing.assert_close(own.eval()(x), theirs.eval()(x))
    assert [p.shape for p in own.parameters()] == [p.shape for p in model.parameters()]


def test_batch_norm_is_computed_anew() -> None:
    batches = [torch.randn(5, 3, dtype=torch.float64) for _ in range(3)]
    own, theirs = network().eval(), network().eval()
    for loader in (batches, [(b, None) for b in batches]):
        optim.swa_utils.update_bn(loader, own)
        torch.optim.swa_utils.update_bn(loader, theirs)
        assert not own.training
        assert own[1].momentum == 0.1
        for a, b in zip(own.buffers(), theirs.buffers(), strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize(
    "options",
    [
        {"swa_lr": 0.05},
        {"swa_lr": [0.05, 1.0], "anneal_epochs": 4, "anneal_strategy": "linear"},
        {"swa_lr": 0.05, "anneal_epochs": 0},
        {"swa_lr": 0.05, "anneal_epochs": 1},
    ],
    ids=str,
)
def test_rates(options: dict[str, Any]) -> None:
    theirs = torch.optim.SGD([{"params": [torch.ones(1)]}, {"params": [torch.ones(1)], "lr": 0.7}])
    own = optim.SGD([{"params": [np.ones(1)]}, {"params": [np.ones(1)], "lr": 0.7}])
    their_schedule = torch.optim.swa_utils.SWALR(theirs, **options)
    schedule = optim.swa_utils.SWALR(own, **options)
    for t in range(15):
        np.testing.assert_allclose(schedule.get_last_lr(), their_schedule.get_last_lr(), rtol=1e-12)
        if t == 2:
            saved = copy.deepcopy(their_schedule.state_dict())
            their_schedule.load_state_dict(schedule.state_dict())
            schedule.load_state_dict(saved)
        their_schedule.step()
        schedule.step()
