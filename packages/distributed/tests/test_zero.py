"""`ZeroRedundancyOptimizer` against the optimizer in one process."""

from __future__ import annotations

from typing import Any

import pytest

import plait_core as pc
import plait_distributed as dist
import plait_nn as nn
import plait_optim as optim
from plait_distributed.optim import ZeroRedundancyOptimizer


def model_of(seed: int) -> Any:
    pc.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))


def groups(model: Any) -> Any:
    return [{"params": model[0].parameters(), "lr": 0.05}, {"params": model[2].parameters()}]


def train(model: Any, optimizer: Any, steps: range) -> None:
    schedule = optim.lr_scheduler.StepLR(optimizer, 2)
    for step in steps:
        pc.manual_seed(100 + step)
        optimizer.zero_grad()
        model(pc.randn(5, 4)).pow(2).mean().backward()
        optimizer.step()
        schedule.step()


@pytest.mark.parametrize("size", [2, 3])
def test_it_is_the_optimizer(ranks: Any, size: int) -> None:
    def work(rank: int) -> Any:
        model = model_of(0)
        optimizer = ZeroRedundancyOptimizer(groups(model), optim.AdamW, lr=0.1)
        train(model, optimizer, range(4))
        n_elements = sum(
            x.numel()
            for state in optimizer.optim.state.values()
            for x in state.values()
            if getattr(x, "ndim", 0)
        )
        with pytest.raises(RuntimeError, match="call consolidate_state_dict"):
            optimizer.state_dict()
        optimizer.consolidate_state_dict(to=1)
        if rank != 1:
            return [p.detach().numpy() for p in model.parameters()], n_elements, None
        state = optimizer.state_dict()
        whole = {
            n: {k: v.numpy() for k, v in s.items() if k != "step"}
            for n, s in state["state"].items()
        }
        return [p.detach().numpy() for p in model.parameters()], n_elements, whole

    model = model_of(0)
    one = optim.AdamW(groups(model), lr=0.1)
    train(model, one, range(4))
    result = ranks(size, work)
    for parameters, _, _ in result:
        for own, p in zip(parameters, model.parameters(), strict=True):
            assert (own == p.detach().numpy()).all()
    total = 2 * sum(p.numel() for p in model.parameters())
    assert sum(n_elements for _, n_elements, _ in result) == total
    assert max(n_elements for _, n_elements, _ in result) < total * 0.75
    want = one.state_dict()["state"]
    whole = result[1][2]
    assert sorted(whole) == sorted(want)
    for number, state in whole.items():
        for name, value in state.items():
            assert (value == want[number][name].numpy()).all()


def test_it_goes_on_with_another_number_of_ranks(ranks: Any) -> None:
    first = model_of(0)
    one = optim.Adam(groups(first), lr=0.1)
    train(first, one, range(2))
    parameters = {name: p.clone() for name, p in first.state_dict().items()}
    state = one.state_dict()
    state = {
        "state": {n: {k: _copy(v) for k, v in s.items()} for n, s in state["state"].items()},
        "param_groups": [dict(group) for group in state["param_groups"]],
    }
    train(first, one, range(2, 4))

    def work(rank: int) -> Any:
        model = model_of(rank + 5)
        model.load_state_dict(parameters)
        optimizer = ZeroRedundancyOptimizer(groups(model), optim.Adam, lr=7.0)
        optimizer.load_state_dict(state)
        train(model, optimizer, range(2, 4))
        return [p.detach().numpy() for p in model.parameters()]

    for result in ranks(3, work):
        for own, p in zip(result, first.parameters(), strict=True):
            assert (own == p.detach().numpy()).all()


def _copy(value: Any) -> Any:
    return value.clone() if hasattr(value, "clone") else value


@pytest.mark.usefixtures("alone")
def test_what_is_not_there() -> None:
    with pytest.raises(NotImplementedError, match="`overlap_with_ddp`"):
        ZeroRedundancyOptimizer([pc.ones(1)], optim.SGD, lr=1.0, overlap_with_ddp=True)
    assert dist.get_world_size() == 1
