"""Ranks with unequal numbers of batches."""

from __future__ import annotations

from typing import Any

import pytest

import plait_core as pc
import plait_distributed as dist
import plait_nn as nn
import plait_optim as optim
from plait_distributed.algorithms.join import Join

BATCHES = [3, 0, 2]  # of each rank


def batch(rank: int, step: int) -> Any:
    pc.manual_seed(10 * rank + step)
    return pc.randn(4, 3)


def model_of(rank: int) -> Any:
    pc.manual_seed(rank)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))


def reference(by_all: bool) -> Any:
    """Train in one process with what each step has."""
    model = model_of(0)
    norm = model[1]
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for step in range(max(BATCHES)):
        going = [rank for rank, n in enumerate(BATCHES) if step < n]
        before = norm.running_mean.clone(), norm.running_var.clone()
        statistics = None
        optimizer.zero_grad()
        for rank in going:
            norm.running_mean.copy_(before[0])
            norm.running_var.copy_(before[1])
            loss = model(batch(rank, step)).pow(2).mean()
            (loss / (len(BATCHES) if by_all else len(going))).backward()
            statistics = statistics or (
                norm.running_mean.clone(),
                norm.running_var.clone(),
            )  # rank 0's
        norm.running_mean.copy_(statistics[0])
        norm.running_var.copy_(statistics[1])
        optimizer.step()
    return [x.detach() for x in (*model.parameters(), norm.running_mean, norm.running_var)]


@pytest.mark.parametrize("by_all", [True, False])
@pytest.mark.parametrize("unused", [True, False])
def test_it_is_training_with_the_batches_that_there_are(
    ranks: Any, by_all: bool, unused: bool
) -> None:
    def work(rank: int) -> Any:
        model = model_of(rank)
        parallel = dist.DistributedDataParallel(
            model, find_unused_parameters=unused, bucket_cap_mb=1e-5
        )
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        with parallel.join(divide_by_initial_world_size=by_all):
            for step in range(BATCHES[rank]):
                optimizer.zero_grad()
                parallel(batch(rank, step)).pow(2).mean().backward()
                optimizer.step()
        parallel(batch(rank, 9)).sum().backward()  # all take part again
        norm = model[1]
        model.eval()
        return [x.detach().numpy() for x in model.parameters()], norm.num_batches_tracked.item()

    want = reference(by_all)
    for parameters, _ in ranks(3, work):
        for own, other in zip(parameters, want, strict=False):
            assert abs(own - other.numpy()).max() < 1e-5


def test_an_early_end_may_be_an_error_on_all(outcomes: Any) -> None:
    def work(rank: int) -> Any:
        model = dist.DistributedDataParallel(nn.Linear(3, 1))
        with model.join(throw_on_early_termination=True):
            for step in range(1 + rank):
                model(batch(rank, step)).sum().backward()

    for error in outcomes(2, work):
        assert isinstance(error, RuntimeError) and "has used up its batches" in str(error)


def test_it_may_be_switched_off(ranks: Any) -> None:
    def work(rank: int) -> Any:
        model = dist.DistributedDataParallel(nn.Linear(3, 1))
        with Join([model], enable=False):
            model(batch(rank, 0)).sum().backward()
        return True

    assert ranks(2, work) == [True, True]
    with pytest.raises(ValueError, match="must not be empty"):
        Join([])
