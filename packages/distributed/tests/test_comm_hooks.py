"""PowerSGD, local steps and mixed precision of `DistributedDataParallel`."""

from __future__ import annotations

from typing import Any

import pytest

import plait_core as pc
import plait_distributed as dist
import plait_nn as nn
import plait_optim as optim
from plait_distributed.algorithms.ddp_comm_hooks.debugging_hooks import noop_hook
from plait_distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import (
    PostLocalSGDState,
    post_localSGD_hook,
)
from plait_distributed.algorithms.ddp_comm_hooks.powerSGD_hook import (
    PowerSGDState,
    powerSGD_hook,
)
from plait_distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from plait_distributed.device_mesh import init_device_mesh
from plait_distributed.fsdp import MixedPrecision
from plait_distributed.optim import PostLocalSGDOptimizer


def data(rank: int, step: int, n: int = 16) -> Any:
    pc.manual_seed(100 * step + rank)
    return pc.randn(6, n)


def train(model: Any, optimizer: Any, rank: int, steps: int) -> list[float]:
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = model(data(rank, step)).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def net() -> Any:
    pc.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 24), nn.Tanh(), nn.Linear(24, 12))


def test_power_sgd_of_low_rank_is_exact(ranks: Any) -> None:
    """The gradient of each rank has rank 1, so the mean of two has rank 2."""

    def work(rank: int) -> Any:
        layer = nn.Linear(16, 12, bias=True)
        nn.init.zeros_(layer.weight)
        model = dist.DistributedDataParallel(layer)
        state = PowerSGDState(None, 2, 2)
        model.register_comm_hook(state, powerSGD_hook)
        x, g = data(rank, 0)[:1], data(rank, 1)[:1, :12]
        for _ in range(4):
            layer.weight.grad = layer.bias.grad = None
            model(x).backward(g)
        return layer.weight.grad.numpy(), layer.bias.grad.numpy(), state.iter

    result = ranks(2, work)
    parts = [(data(r, 1)[:1, :12], data(r, 0)[:1]) for r in range(2)]
    weight = sum(g.t() @ x for g, x in parts) / 2
    bias = sum(g[0] for g, _ in parts) / 2
    for w, b, iterations in result:
        assert iterations == 4
        assert (w == result[0][0]).all()
        assert abs(w - weight.numpy()).max() < 1e-5
        assert abs(b - bias.numpy()).max() < 1e-6


def test_power_sgd_learns(ranks: Any) -> None:
    def work(rank: int) -> Any:
        model = dist.DistributedDataParallel(net())
        state = PowerSGDState(None, 1, 2)
        model.register_comm_hook(state, powerSGD_hook)
        losses = train(model, optim.SGD(model.parameters(), lr=0.5), rank, 40)
        return losses, model.module[0].weight.detach().numpy()

    (first, weight), (_, other) = ranks(2, work)
    assert (weight == other).all()
    assert first[-1] < first[0] / 4


def test_local_steps(ranks: Any) -> None:
    def work(rank: int) -> Any:
        model = dist.DistributedDataParallel(net())
        groups = dist.new_subgroups(1)[0]
        model.register_comm_hook(PostLocalSGDState(None, groups, 2), post_localSGD_hook)
        optimizer = PostLocalSGDOptimizer(
            optim.SGD(model.parameters(), lr=0.1), PeriodicModelAverager(2, 3)
        )
        seen = []
        for step in range(6):
            optimizer.zero_grad()
            model(data(rank, step)).pow(2).mean().backward()
            optimizer.step()
            seen.append(model.module[0].weight.detach().clone().numpy())
        assert optimizer.state_dict()["step"] == 6
        return seen

    a, b = ranks(2, work)
    same = [(x == y).all() for x, y in zip(a, b, strict=True)]
    # two steps with all, one local, then means behind steps 3 and 5
    assert same == [True, True, False, True, False, True]


def test_no_communication(ranks: Any) -> None:
    def work(rank: int) -> float:
        model = dist.DistributedDataParallel(nn.Linear(1, 1, bias=False))
        model.register_comm_hook(None, noop_hook)
        model(pc.full((1, 1), rank + 1.0)).sum().backward()
        return model.module.weight.grad.item()

    assert ranks(2, work) == [1.0, 2.0]


def test_mixed_precision(ranks: Any) -> None:
    def work(rank: int) -> Any:
        inner = nn.Sequential(nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
        dtypes = MixedPrecision(pc.bfloat16, pc.bfloat16, pc.bfloat16)
        mesh = init_device_mesh("cpu", (2,))
        model = dist.DistributedDataParallel(inner, mixed_precision=dtypes, device_mesh=mesh)
        y = model(data(rank, 0))
        assert y.dtype is pc.bfloat16
        y.float().pow(2).mean().backward()
        assert all(p.dtype is p.grad.dtype is pc.float32 for p in inner.parameters())
        assert abs(inner[1].running_mean).max().item() > 0
        assert inner[1].running_mean.dtype is pc.float32
        grad = inner[0].weight.grad
        assert (grad == grad.bfloat16().float()).all()  # it travelled in halves
        losses = train(model, optim.SGD(model.parameters(), lr=0.1), rank, 10)
        return losses[-1] < losses[0], inner[0].weight.detach().numpy()

    (better, weight), (_, other) = ranks(2, work)
    assert better
    assert (weight == other).all()


def test_a_static_graph_that_is_said_later(ranks: Any) -> None:
    def work(rank: int) -> Any:
        model = dist.DistributedDataParallel(net())
        model._set_static_graph()
        train(model, optim.SGD(model.parameters(), lr=0.1), rank, 3)
        return model.module[0].weight.detach().numpy()

    a, b = ranks(2, work)
    assert (a == b).all()


def test_errors() -> None:
    with pytest.raises(ValueError, match="`matrix_approximation_rank` must be positive"):
        PowerSGDState(None, 0)
    with pytest.raises(ValueError, match="`start_powerSGD_iter` must be above 1"):
        PowerSGDState(None, 1, 0)
