"""Optimizers, clipping, schedules and averages on modules, through the engine."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import plait_core as pc
import plait_nn as nn
import plait_optim as optim
from plait_torch._amp import GradScaler

NAMES = [
    name
    for name in optim.__all__
    if isinstance(getattr(optim, name), type) and name not in ("Optimizer", "Muon", "SparseAdam")
]


def problem() -> tuple[Any, Any]:
    pc.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    x, y = pc.randn(32, 4), pc.randn(32, 2)
    return model, lambda: ((model(x) - y) ** 2).mean()


def closure(optimizer: Any, loss: Any) -> Any:
    def call() -> Any:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    return call


@pytest.mark.parametrize("name", NAMES)
def test_a_model_is_trained_and_goes_on_from_a_checkpoint(name: str) -> None:
    model, loss = problem()
    optimizer = getattr(optim, name)(model.parameters(), lr=0.01)
    before = loss().item()
    for _ in range(20):
        assert optimizer.step(closure(optimizer, loss)).requires_grad
    assert loss().item() < before
    assert all(p.requires_grad and p.is_leaf for p in model.parameters())
    other, other_loss = problem()
    other.load_state_dict(model.state_dict())
    resumed = getattr(optim, name)(other.parameters(), lr=0.01)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    optimizer.step(closure(optimizer, loss))
    resumed.step(closure(resumed, other_loss))
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), q.detach().numpy())


def test_two_optimizers_with_clipping_schedule_and_average() -> None:
    model, loss = problem()
    matrices = [p for p in model.parameters() if p.ndim == 2]
    others = [p for p in model.parameters() if p.ndim != 2]
    muon, adam = optim.Muon(matrices, lr=0.02), optim.NAdam(others, lr=0.01)
    schedule = optim.lr_scheduler.CosineAnnealingLR(muon, 30)
    average = optim.swa_utils.AveragedModel(
        model, multi_avg_fn=optim.swa_utils.get_ema_multi_avg_fn(0.5)
    )
    before = loss().item()
    for _ in range(30):
        model.zero_grad()
        loss().backward()
        muon.step(max_norm=0.5)
        adam.step()
        schedule.step()
        average.update_parameters(model)
    assert muon.grad_norm is not None and muon.grad_norm > 0
    assert loss().item() < before
    x = pc.randn(5, 4)
    np.testing.assert_allclose(
        average.eval()(x).detach().numpy(), model(x).detach().numpy(), atol=0.01
    )
    assert [p.requires_grad for p in average.parameters()] == [True] * 4


def test_a_saved_value_is_seen_to_be_overwritten_by_a_step() -> None:
    for make in (optim.LBFGS, optim.Muon):
        p = pc.ones(2, 2).requires_grad_()
        loss = (p * p).sum()
        p.grad = pc.ones(2, 2)
        optimizer = make([p])
        optimizer.step(lambda: 1.0)
        with pytest.raises(RuntimeError, match=r"in place|version|modified|overwritten"):
            loss.backward()


@pytest.mark.parametrize("dtype", [pc.float16, pc.bfloat16], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_halves_are_trained_with_a_scaled_loss_and_clipping(name: str, dtype: Any) -> None:
    pc.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)).to(dtype)
    x, y = pc.randn(32, 4).to(dtype), pc.randn(32, 2).to(dtype)
    optimizer = getattr(optim, name)(model.parameters(), lr=0.5 if name == "Adadelta" else 0.01)

    def loss() -> Any:
        return ((model(x) - y) ** 2).mean()

    before, scaler = loss().item(), GradScaler("cpu", init_scale=16.0)
    for _ in range(20):
        if name == "LBFGS":  # a scaler takes no closure, as in PyTorch
            optimizer.step(closure(optimizer, loss))
            continue
        optimizer.zero_grad()
        scaler.scale(loss()).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    assert loss().item() < before - 0.02
    assert {p.dtype for p in model.parameters()} == {dtype}


def test_an_infinite_gradient_of_halves_skips_the_step() -> None:
    p = pc.ones(3).half().requires_grad_()
    optimizer, scaler = optim.SGD([p], lr=0.5), GradScaler("cpu", init_scale=2.0**17)
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert p.detach().tolist() == [1, 1, 1]
    assert scaler.get_scale() == 2.0**16
    optimizer.zero_grad()
    (p.sum() * 0.25).backward()
    optimizer.step(max_norm=0.1)
    assert optimizer.grad_norm == pytest.approx(0.25 * 3**0.5)
    np.testing.assert_allclose(p.detach().float().numpy(), 1 - 0.05 / 3**0.5, atol=2**-11)


def test_an_optimizer_without_parameters_names_the_containers() -> None:
    class Plain(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = [nn.Linear(2, 2)]

    with pytest.raises(ValueError, match=r"empty parameter list; .*ModuleList"):
        optim.SGD(Plain().parameters(), lr=0.1)
