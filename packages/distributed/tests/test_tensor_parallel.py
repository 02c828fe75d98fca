"""DTensor and tensor-parallel layers against one process."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import plait_core as pc
import plait_distributed as dist
import plait_nn as nn
import plait_nn.functional as F
import plait_optim as optim
from plait_distributed.device_mesh import DeviceMesh, init_device_mesh
from plait_distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_tensor,
    randn,
    zeros,
)
from plait_distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)


def test_moves_between_placements(ranks: Any) -> None:
    def work(rank: int) -> None:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
        assert mesh.shape == (2, 2)
        assert mesh["b"].get_group().ranks == ((0, 1) if rank < 2 else (2, 3))
        assert mesh["a"].get_group().ranks == ((0, 2) if rank % 2 == 0 else (1, 3))
        assert mesh.get_coordinate() == [rank // 2, rank % 2]
        pc.manual_seed(1)
        whole = pc.randn(5, 7)
        kinds = [Replicate(), Shard(0), Shard(1)]
        for now, then in itertools.product(itertools.product(kinds, kinds), repeat=2):
            leaf = whole.clone().requires_grad_()
            x = distribute_tensor(leaf, mesh, now)
            y = x.redistribute(placements=then)
            assert y.placements == tuple(then)
            assert y.shape == whole.shape
            want = distribute_tensor(whole, mesh, then)
            assert (y.to_local() == want.to_local()).all()
            assert (x.full_tensor() == whole).all()
            (y.to_local() * want.to_local()).sum().backward()
            assert (x.grad.full_tensor() == whole).all()
        for then in kinds:
            parts = DTensor.from_local(whole, mesh, [Partial(), Replicate()])
            moved = parts.redistribute(placements=[then, Replicate()])
            assert abs(moved.full_tensor() - 2 * whole).max() < 1e-6

    ranks(4, work)


def test_operators_are_right_or_refused(ranks: Any) -> None:
    def work(rank: int) -> None:
        mesh = init_device_mesh("cpu", (2,))
        pc.manual_seed(1)
        a, b = pc.randn(5, 4), pc.randn(5, 4)
        x, y = (distribute_tensor(t, mesh, [Shard(0)]) for t in (a, b))
        row = distribute_tensor(b[0].clone(), mesh)
        for f in (
            lambda x, y, r: x * y + 1,
            lambda x, y, r: (x + r).relu(),
            lambda x, y, r: x.sum(),
            lambda x, y, r: x.mean(),
            lambda x, y, r: x.sum(1),
            lambda x, y, r: x.abs().max(),
            lambda x, y, r: pc.linalg.vector_norm(x),
            lambda x, y, r: F.softmax(x, -1),
            lambda x, y, r: F.layer_norm(x, (4,), r),
        ):
            assert abs(f(x, y, row).full_tensor() - f(a, b, b[0])).max() < 1e-5
        assert x.sum().item() == pytest.approx(a.sum().item(), rel=1e-5)
        for wrong in (
            lambda: x @ y,
            lambda: x.sum(0),
            lambda: F.softmax(x, 0),
            lambda: x[0],
            lambda: x + a,
            lambda: x.tolist(),
            lambda: x + y.redistribute(placements=[Replicate()]),
            lambda: pc.cat([x, y]),
            lambda: DTensor.from_local(a, mesh, [Partial()]).relu(),
        ):
            with pytest.raises(NotImplementedError):
                wrong()
        assert zeros(5, 2, device_mesh=mesh, placements=[Shard(0)]).to_local().shape[1] == 2
        pc.manual_seed(5 + rank)
        noise = randn(6, device_mesh=mesh, placements=[Shard(0)])
        pc.manual_seed(5)
        assert (noise.full_tensor() == pc.randn(6)).all()
        pc.manual_seed(5)
        nn.init.normal_(x)
        pc.manual_seed(5)
        assert (x.full_tensor() == nn.init.normal_(a)).all()
        assert "placements=(Shard(dim=0),)" in repr(x)

    ranks(2, work)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, 6)
        self.places = nn.Embedding(5, 6)
        self.up = nn.Linear(6, 10)
        self.down = nn.Linear(10, 6)
        self.head = nn.Linear(6, 9)

    def forward(self, x: Any) -> Any:
        h = self.words(x) + self.places(pc.arange(x.shape[1]))
        h = h + self.down(self.up(h).relu())
        return self.head(h)


def train(model: Any) -> list[Any]:
    optimizer = optim.AdamW(model.parameters(), lr=0.05)
    results = []
    for step in range(3):
        pc.manual_seed(10 + step)
        x = pc.randint(0, 9, (2, 5))
        y = model(x)
        loss = F.cross_entropy(y.reshape(-1, 9), x.reshape(-1))
        loss.backward()
        results.append(y.detach().numpy())
        results += [_whole(p.grad) for p in model.parameters()]
        optimizer.step()
        optimizer.zero_grad()
    return results + [_whole(p) for p in model.parameters()]


def _whole(x: Any) -> Any:
    return (x.full_tensor() if isinstance(x, DTensor) else x).detach().numpy()


PLAN = {
    "words": lambda: RowwiseParallel(input_layouts=Replicate()),
    "places": lambda: ColwiseParallel(output_layouts=Replicate()),
    "up": ColwiseParallel,
    "down": RowwiseParallel,
    "head": lambda: ColwiseParallel(output_layouts=Replicate()),
}


@pytest.mark.parametrize("size", [2, 4])
def test_it_is_one_process(ranks: Any, size: int) -> None:
    pc.manual_seed(0)
    want = train(Net())

    def work(rank: int) -> Any:
        pc.manual_seed(rank)
        model = Net()
        plan = {name: style() for name, style in PLAN.items()}
        parallelize_module(model, init_device_mesh("cpu", (size,)), plan)
        assert model.up.weight.to_local().shape[0] <= -(-10 // size)
        return train(model)

    result = ranks(size, work)
    for results in result:
        for own, first, other in zip(results, result[0], want, strict=True):
            assert (own == first).all()
            assert abs(own - other).max() < 1e-5


class Sequence(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(6)
        self.up = nn.Linear(6, 8)
        self.down = nn.Linear(8, 6)

    def forward(self, x: Any) -> Any:
        return self.down(self.up(self.norm(x)).relu())


def test_parts_of_a_sequence(ranks: Any) -> None:
    def run(model: Any, x: Any) -> list[Any]:
        x = x.clone().requires_grad_()
        y = model(x)
        y.pow(2).sum().backward()
        parts = [_whole(y), x.grad.numpy()]
        return [*parts, *(_whole(p.grad) for p in model.parameters())]

    pc.manual_seed(0)
    x = pc.randn(2, 5, 6)
    one = Sequence()
    want = run(one, x)

    def work(rank: int) -> Any:
        model = Sequence()
        model.load_state_dict(one.state_dict())
        mesh = init_device_mesh("cpu", (2,))
        plan = {
            "norm": SequenceParallel(),
            "up": ColwiseParallel(input_layouts=Shard(1)),
            "down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        }
        parallelize_module(model, mesh, plan)
        whole = PrepareModuleInput(input_layouts=Replicate(), desired_input_layouts=Shard(1))
        parallelize_module(model, mesh, whole)
        to = PrepareModuleOutput(output_layouts=Shard(1), desired_output_layouts=Replicate())
        parallelize_module(model, mesh, to)
        return run(model, x)

    for result in ranks(2, work):
        for own, other in zip(result, want, strict=True):
            assert abs(own - other).max() < 1e-4


@pytest.mark.usefixtures("alone")
def test_errors() -> None:
    mesh = init_device_mesh("cpu", (1,))
    assert mesh == DeviceMesh("cpu", [0])
    with pytest.raises(NotImplementedError, match="a Linear or Embedding is required"):
        parallelize_module(nn.LayerNorm(2), mesh, ColwiseParallel())
    with pytest.raises(ValueError, match="has no module 'x'"):
        parallelize_module(nn.Sequential(), mesh, {"x": ColwiseParallel()})
    with pytest.raises(RuntimeError, match="must have the product 1"):
        init_device_mesh("cpu", (2,))
    with pytest.raises(ValueError, match="`device_type` must be 'cpu' or a type"):
        init_device_mesh("cuda", (1,))
    with pytest.raises(
        ValueError, match=r"Shard\(dim=3\) is out of range for a tensor with 1 dimensions"
    ):
        distribute_tensor(pc.ones(2), mesh, [Shard(3)])
    with pytest.raises(ValueError, match="must have one for each"):
        distribute_tensor(pc.ones(2), mesh, [Shard(0), Shard(0)])
    assert dist.get_world_size() == 1
