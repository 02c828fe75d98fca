"""Pipelines against one process."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import plait_core as pc
import plait_distributed as dist
import plait_nn as nn
import plait_nn.functional as F
import plait_optim as optim
from plait_distributed.device_mesh import init_device_mesh
from plait_distributed.fsdp import fully_shard
from plait_distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

LENGTHS = [3, 8, 8, 6, 2]


class Two(nn.Module):
    """A layer that returns two tensors, one of them for later, and takes both."""

    def __init__(self, n: int, m: int) -> None:
        super().__init__()
        self.layer = nn.Linear(n, m)

    def forward(self, x: Any, more: Any = None) -> Any:
        y = self.layer(x).tanh()
        total = x.sum(-1, keepdim=True)
        return y, total if more is None else more + total


class Last(nn.Module):
    def __init__(self, n: int, m: int) -> None:
        super().__init__()
        self.layer = nn.Linear(n, m)

    def forward(self, x: Any, more: Any = None) -> Any:
        return self.layer(x) if more is None else self.layer(x) * more


def layers() -> list[Any]:
    pc.manual_seed(0)
    pairs = list(itertools.pairwise(LENGTHS))
    return [*(Two(n, m) for n, m in pairs[:-1]), Last(*pairs[-1])]


class Chain(nn.Module):
    def __init__(self, parts: list[Any]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, *x: Any) -> Any:
        for part in self.parts:
            x = part(*x)
        return x


def batch(step: int) -> tuple[Any, Any]:
    pc.manual_seed(20 + step)
    return pc.randn(7, 3), pc.randn(7, 2)


def reference(n: int) -> tuple[list[Any], list[Any], list[Any]]:
    model = Chain(layers())
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    outputs, losses = [], []
    for step in range(3):
        x, y = batch(step)
        result = model(x)
        outputs.append(result.detach().numpy())
        parts = zip(pc.tensor_split(result, n), pc.tensor_split(y, n), strict=True)
        each = [F.mse_loss(a, b) for a, b in parts]
        losses.append([loss.item() for loss in each])
        (sum(each) / n).backward()
        optimizer.step()
        optimizer.zero_grad()
    return outputs, losses, [p.detach().numpy() for p in model.parameters()]


@pytest.mark.parametrize("kind", [ScheduleGPipe, Schedule1F1B])
@pytest.mark.parametrize(("size", "n"), [(2, 3), (4, 5), (4, 2), (1, 2)])
def test_it_is_one_process(ranks: Any, kind: Any, size: int, n: int) -> None:
    outputs, losses, parameters = reference(n)

    def work(rank: int) -> Any:
        parts = layers()
        per = len(parts) // size
        module = Chain(parts[rank * per : (rank + 1) * per])
        schedule = kind(PipelineStage(module, rank, size), n, loss_fn=F.mse_loss)
        optimizer = optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
        for step in range(3):
            x, y = batch(step)
            got: list[Any] = []
            args = (x,) if rank == 0 else ()
            target = y if rank == size - 1 else None
            before = schedule.eval(*args)
            result = schedule.step(*args, target=target, losses=got)
            if rank == size - 1:
                assert abs(result.numpy() - outputs[step]).max() < 1e-6
                assert (before == result).all()
                assert [loss.item() for loss in got] == pytest.approx(losses[step], rel=1e-5)
            else:
                assert result is None
            optimizer.step()
            optimizer.zero_grad()
        return [p.detach().numpy() for p in module.parameters()]

    results = [p for part in ranks(size, work) for p in part]
    for own, other in zip(results, parameters, strict=True):
        assert abs(own - other).max() < 1e-6


def test_how_many_micro_batches_a_stage_holds(ranks: Any) -> None:
    def work(rank: int) -> list[int]:
        most = []
        for kind in (ScheduleGPipe, Schedule1F1B):
            module = Chain([layers()[0] if rank < 2 else Last(8, 2)])
            if rank == 1:
                module = Chain([Two(8, 8)])
            stage = PipelineStage(module, rank, 3)
            schedule = kind(stage, 6, loss_fn=F.mse_loss)
            references = []
            module.register_forward_hook(
                lambda *_, stage=stage, references=references: references.append(
                    len(stage._inputs) + 1
                )
            )
            x, y = pc.randn(6, 3), pc.randn(6, 2)
            args = (x,) if rank == 0 else ()
            schedule.step(*args, target=y if rank == 2 else None)
            most.append(max(references))
        return most

    assert ranks(3, work) == [[6, 3], [6, 2], [6, 1]]


@pytest.mark.parametrize("kind", [ScheduleGPipe, Schedule1F1B])
@pytest.mark.parametrize("shards", [False, True])
def test_data_parallel_stages(ranks: Any, kind: Any, shards: bool) -> None:
    """Two stages, each on two ranks with a part of the batch."""

    def batches(step: int) -> tuple[Any, Any]:
        pc.manual_seed(20 + step)
        return pc.randn(8, 3), pc.randn(8, 2)

    model = Chain(layers())
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        x, y = batches(step)
        F.mse_loss(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()
    want = [p.detach().numpy() for p in model.parameters()]

    def work(rank: int) -> Any:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "stage"))
        index, replica = mesh.get_local_rank("stage"), mesh.get_local_rank("data")
        module = Chain(layers()[2 * index : 2 * index + 2])
        if shards:
            part = fully_shard(module, mesh=mesh["data"])
        else:
            part = dist.DistributedDataParallel(module, device_mesh=mesh["data"])
        stage = PipelineStage(part, index, 2, group=mesh.get_group("stage"))
        schedule = kind(stage, 2, loss_fn=F.mse_loss)
        optimizer = optim.SGD(part.parameters(), lr=0.1)
        for step in range(3):
            x, y = (t[4 * replica : 4 * replica + 4] for t in batches(step))
            schedule.step(*([x] if index == 0 else []), target=y if index else None)
            optimizer.step()
            optimizer.zero_grad()
        result = module.parameters()
        return [(p.full_tensor() if shards else p).detach().numpy() for p in result]

    parts = ranks(4, work)
    for first, second in ((0, 1), (2, 3)):
        for own, other in zip([*parts[first], *parts[second]], want, strict=True):
            assert abs(own - other).max() < 1e-6


@pytest.mark.usefixtures("alone")
def test_errors() -> None:
    layer = nn.Linear(1, 1)
    with pytest.raises(ValueError, match="`num_stages` must be the number of ranks, 1"):
        PipelineStage(layer, 0, 2)
    with pytest.raises(ValueError, match="`stage_index` must be this process's rank"):
        PipelineStage(layer, 1, 1)
    schedule = ScheduleGPipe(PipelineStage(layer, 0, 1), 4)
    with pytest.raises(ValueError, match="`loss_fn` must be given"):
        schedule.step(pc.ones(4, 1))
    schedule = ScheduleGPipe(PipelineStage(layer, 0, 1), 4, F.mse_loss)
    with pytest.raises(ValueError, match="can't be divided into 4"):
        schedule.step(pc.ones(3, 1), target=pc.ones(3, 1))
    with pytest.raises(ValueError, match="must be given on stage 0 of 1"):
        schedule.step(target=pc.ones(4, 1))
