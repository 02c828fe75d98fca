"""Derivatives of collectives, and batch norm over ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import plait_core as pc
import plait_distributed as dist
import plait_nn as nn
from plait_distributed.nn import functional as F

SIZE = 3


def whole(function: Any) -> Any:
    """The matrix of a linear function of all ranks' vectors of 3, from its values."""

    def work(rank: int) -> Any:
        columns = []
        for other in range(SIZE):
            for i in range(3):
                x = pc.zeros(3)
                if rank == other:
                    x[i] = 1.0
                columns.append(function(rank, x).numpy())
        return np.stack(columns, 1)

    return work


def transposed(function: Any, sizes: list[int]) -> Any:
    """The transposed matrix, from derivatives; `sizes`: of the ranks' results."""

    def work(rank: int) -> Any:
        rows = []
        for other in range(SIZE):
            for i in range(sizes[other]):
                x = pc.zeros(3, requires_grad=True)
                y = function(rank, x)
                seed = pc.zeros(sizes[rank])
                if rank == other:
                    seed[i] = 1.0
                y.backward(seed)
                rows.append(x.grad.numpy())
        return np.stack(rows, 1)

    return work


def flat(parts: Any) -> Any:
    return pc.cat([x.view(-1) for x in parts])


FUNCTIONS = {
    "all_reduce": lambda rank, x: F.all_reduce(x * 2),
    "mean": lambda rank, x: F.all_reduce(x, dist.ReduceOp.AVG),
    "broadcast": lambda rank, x: F.broadcast(x, 1),
    "reduce": lambda rank, x: F.reduce(x, 2),
    "reduce mean": lambda rank, x: F.reduce(x, 2, dist.ReduceOp.AVG),
    "all_gather": lambda rank, x: flat(F.all_gather(x)),
    "gather": lambda rank, x: flat(F.gather(x, 1)),
    "scatter": lambda rank, x: F.scatter(list(x.split(1)), 1),
    "reduce_scatter": lambda rank, x: F.reduce_scatter(pc.empty(1), list(x.split(1))),
    "reduce_scatter mean": lambda rank, x: F.reduce_scatter(
        pc.empty(1), list(x.split(1)), dist.ReduceOp.AVG
    ),
    "all_to_all": lambda rank, x: flat(F.all_to_all([pc.empty(1)] * SIZE, list(x.split(1)))),
    "all_to_all_single": lambda rank, x: F.all_to_all_single(pc.empty(3), x),
    "uneven": lambda rank, x: F.all_to_all_single(
        pc.empty([0, 3, 6][rank]), x, [[0, 1, 2][rank]] * SIZE, [0, 1, 2]
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_derivative_is_the_adjoint(ranks: Any, name: str) -> None:
    function = FUNCTIONS[name]
    forward = np.concatenate(ranks(SIZE, whole(function)))
    sizes = [len(x) for x in ranks(SIZE, lambda rank: function(rank, pc.zeros(3)).numpy())]
    backward = np.concatenate(ranks(SIZE, transposed(function, sizes)))
    np.testing.assert_allclose(backward, forward.T, rtol=1e-6)


def test_second_derivatives(ranks: Any) -> None:
    def work(rank: int) -> Any:
        x = pc.full((1,), float(rank + 1), requires_grad=True)
        y = (F.all_reduce(x * x)).pow(2).sum()
        (first,) = _autograd().grad(y, x, create_graph=True)
        first.sum().backward()
        return first.item(), x.grad.item()

    # each rank's loss is (1 + 4)^2; the sum of both has the derivative 2 * 2 * 5 * 2x
    for rank, (first, second) in enumerate(ranks(2, work)):
        assert first == 40.0 * (rank + 1) and second > 0


def _autograd() -> Any:
    import plait_autograd

    return plait_autograd


@pytest.mark.usefixtures("alone")
def test_reductions_without_a_derivative() -> None:
    x = pc.ones(2, requires_grad=True)
    with pytest.raises(NotImplementedError, match="SUM and AVG"):
        F.all_reduce(x, dist.ReduceOp.MAX)
    assert F.all_reduce(x.detach(), dist.ReduceOp.MAX).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("momentum", [0.1, None])
def test_batch_norm_over_ranks(ranks: Any, momentum: float | None) -> None:
    pc.manual_seed(1)
    batch, seed = pc.randn(5, 3, 4), pc.randn(5, 3, 4)
    parts = [slice(0, 2), slice(2, 5)]  # of different sizes

    def layer() -> Any:
        output = nn.BatchNorm1d(3, momentum=momentum)
        output.weight.data.copy_(pc.tensor([0.5, 1.0, 2.0]))
        return output

    def work(rank: int) -> Any:
        model = dist.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(layer()))
        for _ in range(2):
            x = batch[parts[rank]].clone().requires_grad_(True)
            y = model(x)
            (y * seed[parts[rank]]).sum().backward()
        sums = [p.grad.clone() for p in model.parameters()]
        for each in sums:
            dist.all_reduce(each)
        state = [model[0].running_mean, model[0].running_var, model[0].num_batches_tracked.float()]
        model.eval()
        return [v.detach().numpy() for v in (y, x.grad, *sums, *state, model(x))]

    one = layer()
    for _ in range(2):
        x = batch.clone().requires_grad_(True)
        y = one(x)
        (y * seed).sum().backward()
    sums = [p.grad for p in one.parameters()]
    state = [one.running_mean, one.running_var, one.num_batches_tracked.float()]
    one.eval()
    want = [v.detach().numpy() for v in (y, x.grad, *sums, *state, one(x))]
    for rank, result in enumerate(ranks(2, work)):
        for i, (own, other) in enumerate(zip(result, want, strict=True)):
            other = other[parts[rank]] if i in (0, 1, len(want) - 1) else other
            np.testing.assert_allclose(own, other, rtol=2e-4, atol=2e-5)
