"""`fully_shard` against one process with the whole batch."""

from __future__ import annotations

import copy
import resource
from typing import Any

import pytest

import plait_autograd as pa
import plait_core as pc
import plait_nn as nn
import plait_optim as optim
from plait_distributed.device_mesh import init_device_mesh
from plait_distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from plait_distributed.tensor import DTensor

STEPS = 4


class Block(nn.Module):
    """A layer with a norm, whose lengths no number of ranks divides."""

    def __init__(self, n: int = 7) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(n)
        self.layer = nn.Linear(n, n)

    def forward(self, x: Any) -> Any:
        return x + self.layer(self.norm(x)).relu()


class Net(nn.Module):
    """Blocks, one of them called twice; the last layer shares the first one's weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(7, 7)
        self.blocks = nn.Sequential(Block(), Block(), Block())
        self.last = nn.Linear(7, 7)
        self.last.weight = self.first.weight

    def forward(self, x: Any) -> Any:
        y = self.blocks(self.first(x))
        return self.last(self.blocks[1](y))


def batches(size: int) -> Any:
    pc.manual_seed(3)
    return pc.randn(STEPS, 2 * size, 7)


def shard(model: Any, **options: Any) -> Any:
    for block in model.blocks:
        fully_shard(block, **options)
    return fully_shard(model, **options)


def train(
    model: Any,
    optimizer: Any,
    data: Any,
    clip: float | None = None,
    syncs: Any = lambda step: True,
    accumulate: int = 1,
) -> list[float]:
    norms = []
    for step, batch in enumerate(data):
        if isinstance(model, FSDPModule):
            model.set_requires_gradient_sync(syncs(step))
        (model(batch).pow(2).mean() / accumulate).backward()
        if not syncs(step):
            continue
        if clip is not None:
            norms.append(nn.utils.clip_grad_norm_(model.parameters(), clip).item())
        optimizer.step()
        optimizer.zero_grad()
    return norms


def whole(model: Any) -> list[Any]:
    return [
        (p.full_tensor() if isinstance(p, DTensor) else p).detach().numpy()
        for p in model.parameters()
    ]


def reference(size: int, **options: Any) -> tuple[list[Any], list[float]]:
    pc.manual_seed(0)
    model = Net()
    norms = train(model, optim.AdamW(model.parameters(), lr=0.05), batches(size), **options)
    return whole(model), norms


def sharded(rank: int, size: int, options: dict[str, Any], shared: dict[str, Any]) -> Any:
    pc.manual_seed(0)
    model = shard(Net(), **shared)
    optimizer = optim.AdamW(model.parameters(), lr=0.05)
    norms = train(model, optimizer, batches(size)[:, 2 * rank : 2 * rank + 2], **options)
    for p in model.parameters():
        assert isinstance(p, DTensor)
        assert p.grad is None
        assert optimizer.state[p]["exp_avg"].to_local().shape == p.to_local().shape
    return whole(model), norms


def check(ranks: Any, size: int, shared: Any = None, close: float = 1e-5, **options: Any) -> None:
    want, norms = reference(size, **options)
    result = ranks(size, lambda rank: sharded(rank, size, options, shared or {}))
    again = result if size > 2 else ranks(size, lambda r: sharded(r, size, options, shared or {}))
    for (parameters, own), (others, _) in zip(result, again, strict=True):
        assert own == pytest.approx(norms, rel=1e-4)
        for own_value, first, repeated, other in zip(
            parameters, result[0][0], others, want, strict=True
        ):
            assert (own_value == first).all()  # the same bits on all ranks
            assert (own_value == repeated).all()  # and in every run
            assert abs(own_value - other).max() < close


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("after", [None, True, False])
def test_it_is_the_whole_batch(ranks: Any, size: int, after: bool | None) -> None:
    check(ranks, size, {"reshard_after_forward": after})


def test_clipping(ranks: Any) -> None:
    check(ranks, 2, clip=0.05)


def test_gradients_of_several_passes(ranks: Any) -> None:
    check(ranks, 2, syncs=lambda step: step % 2 == 1, accumulate=2)


def test_replicas_of_shards(ranks: Any) -> None:
    want, _ = reference(4)

    def work(rank: int) -> Any:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
        parameters = sharded(rank, 4, {}, {"mesh": mesh})[0]
        return parameters

    for result in ranks(4, work):
        for own, other in zip(result, want, strict=True):
            assert abs(own - other).max() < 1e-5


def test_halves(ranks: Any) -> None:
    policy = MixedPrecisionPolicy(pc.bfloat16, pc.float32, output_dtype=pc.float32)
    check(ranks, 2, {"mp_policy": MixedPrecisionPolicy(pc.bfloat16, pc.float32)}, close=0.3)

    def work(rank: int) -> None:
        layer = fully_shard(nn.Linear(4, 4), mp_policy=policy)
        seen = []
        layer.register_forward_hook(lambda m, x, y: seen.append((x[0].dtype, y.dtype)))
        y = layer(pc.ones(2, 4))
        y.sum().backward()
        assert seen == [(pc.bfloat16, pc.bfloat16)]
        assert y.dtype is pc.float32
        assert layer.weight.grad.dtype is layer.weight.dtype is pc.float32

    ranks(2, work)


def test_parameters_are_given_back(ranks: Any) -> None:
    def work(rank: int) -> None:
        model = shard(Net())
        groups = [m._fsdp.group for m in model.modules() if isinstance(m, FSDPModule)]
        y = model(pc.ones(2, 7))
        assert [group.is_whole for group in groups] == [True, False, False, False]
        y.sum().backward()
        assert not any(group.is_whole for group in groups)
        assert all(p.whole.numel() == 0 for group in groups for p in group.parameters)
        with pa.no_grad():
            model(pc.ones(2, 7))
        assert not any(group.is_whole for group in groups)
        assert all(isinstance(p, DTensor) for p in model.parameters())
        y = model(pc.ones(2, 7)).sum()
        with pa.no_grad():
            for p in model.parameters():
                p.mul_(2)
        with pytest.raises(RuntimeError, match="written to between the forward call"):
            y.backward()

    ranks(2, work)


def test_frozen_and_unused_parameters(ranks: Any) -> None:
    def work(rank: int) -> None:
        model = nn.Sequential(Block(), Block(), Block())
        model[0].requires_grad_(False)
        model[1].layer.weight.requires_grad_(False)
        for block in model:
            fully_shard(block)
        fully_shard(model)
        model(pc.ones(2, 7)).sum().backward()
        has = {name for name, p in model.named_parameters() if p.grad is not None}
        assert has == {
            "1.norm.weight", "1.norm.bias", "1.layer.bias",
            "2.norm.weight", "2.norm.bias", "2.layer.weight", "2.layer.bias",
        }  # fmt: skip
        model.zero_grad()
        model[1](pc.ones(2, 7)).sum().backward()
        assert model[2].layer.weight.grad is None
        assert model[1].layer.bias.grad is not None

    ranks(2, work)


def test_checkpoints_of_activations(ranks: Any) -> None:
    def work(rank: int) -> list[Any]:
        results = []
        for wraps in (False, True):
            pc.manual_seed(0)
            model = Net()
            if wraps:
                for block in model.blocks:
                    forward = block.forward
                    block.forward = lambda x, f=forward: checkpoint(f, x)
            shard(model)
            model(pc.ones(2, 7)).sum().backward()
            results.append([p.grad.full_tensor().numpy() for p in model.parameters()])
        return results

    from plait_autograd import checkpoint as made

    checkpoint = made.checkpoint if hasattr(made, "checkpoint") else made
    for plain, again in ranks(2, work):
        for a, b in zip(plain, again, strict=True):
            assert abs(a - b).max() < 1e-6


def test_a_pass_that_failed_leaves_nothing(ranks: Any) -> None:
    def work(rank: int) -> None:
        pc.manual_seed(0)
        model = shard(Net())
        x = pc.ones(2, 7) * (rank + 1)
        model(x).sum().backward()
        want = [p.grad.to_local().clone() for p in model.parameters()]
        model.zero_grad()

        def fail(_: Any) -> None:
            raise KeyError("in the middle")

        handle = model.blocks[1].layer.register_full_backward_hook(lambda *_: fail(0))
        with pytest.raises(KeyError):
            model(x).sum().backward()
        handle.remove()
        model.zero_grad()
        model(x).sum().backward()
        for p, other in zip(model.parameters(), want, strict=True):
            assert (p.grad.to_local() == other).all()

    ranks(2, work)


def test_states(ranks: Any) -> None:
    def work(rank: int) -> None:
        pc.manual_seed(1)
        plain = Net()
        want = copy.deepcopy(plain.state_dict())
        model = shard(plain)
        state = model.state_dict()
        for name, value in state.items():
            assert isinstance(value, DTensor)
            assert (value.full_tensor() == want[name]).all()
        other = shard(Net())
        other.load_state_dict(state)
        assert (other.first.weight.full_tensor() == want["first.weight"]).all()
        third = shard(Net())
        third.load_state_dict(want)
        assert (third.last.bias.full_tensor() == want["last.bias"]).all()

    ranks(2, work)


@pytest.mark.usefixtures("alone")
def test_errors() -> None:
    with pytest.raises(TypeError, match="must be a module"):
        fully_shard([nn.Linear(1, 1)])
    layer = fully_shard(nn.Linear(1, 1))
    with pytest.raises(ValueError, match="sharded already"):
        fully_shard(layer)
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].weight = model[0].weight
    fully_shard(model[0])
    with pytest.raises(ValueError, match="is also weight of a module that was sharded before"):
        fully_shard(model)
    scalar = nn.Module()
    scalar.scale = nn.Parameter(pc.tensor(1.0))
    with pytest.raises(ValueError, match="scale has no dimension to shard"):
        fully_shard(scalar)


def test_a_model_that_one_process_has_no_room_for(outcomes: Any) -> None:
    """64 MiB of parameters, as much of gradients and twice of states, in little more memory than
    a quarter of that.
    """
    room = 150 << 20

    def work(rank: int, shards: bool) -> float:
        pages = int(open("/proc/self/statm").read().split()[0])  # noqa: SIM115
        limit = pages * resource.getpagesize() + room
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        layers = []
        for _ in range(16):
            layer = nn.Linear(1024, 1024, bias=False)
            layers.append(fully_shard(layer) if shards else layer)
        model = nn.Sequential(*layers)
        model = fully_shard(model) if shards else model
        optimizer = optim.Adam(model.parameters(), lr=1e-3)
        for _ in range(2):
            loss = model(pc.ones(1, 1024)).pow(2).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        return loss.item()

    first, *rest = outcomes(4, lambda rank: work(rank, True))
    assert isinstance(first, float), first
    assert rest == [first] * 3
    assert isinstance(outcomes(1, lambda rank: work(rank, False))[0], Exception)
