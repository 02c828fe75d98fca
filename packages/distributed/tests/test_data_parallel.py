"""`DistributedDataParallel` against one process with the whole batch."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest

import plait_core as pc
import plait_distributed as dist
import plait_nn as nn
import plait_optim as optim
from plait_distributed._buckets import divide
from plait_distributed.algorithms.ddp_comm_hooks import default_hooks

STEPS = 4


class Net(nn.Module):
    """A network with a branch that a call may leave out, and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.norm = nn.LayerNorm(8)
        self.second = nn.Linear(8, 3)
        self.branch = nn.Linear(3, 3)
        self.frozen = nn.Linear(2, 2).requires_grad_(False)
        self.register_buffer("seen", pc.zeros(1))

    def forward(self, x: Any, branch: bool = True) -> Any:
        self.seen.add_(len(x))
        y = self.second(self.norm(self.first(x)).relu())
        return self.branch(y) if branch else y


def batches(size: int) -> Any:
    pc.manual_seed(3)
    return pc.randn(STEPS, 2 * size, 4)


def train(
    rank: int,
    size: int,
    hook: Any = None,
    branch: Any = lambda rank, step: True,
    syncs: Any = lambda step: True,
    keep: bool = False,
    **options: Any,
) -> tuple[list[Any], Any]:
    """Train with the part of a rank; return the parameters and the module."""
    pc.manual_seed(rank)  # parameters come from rank 0
    model = Net()
    parallel = dist.DistributedDataParallel(model, **options)
    if hook is not None:
        parallel.register_comm_hook(None, hook)
    optimizer = optim.SGD(parallel.parameters(), lr=0.1, momentum=0.9)
    for step, batch in enumerate(batches(size)):
        with contextlib.nullcontext() if syncs(step) else parallel.no_sync():
            x = batch[2 * rank : 2 * rank + 2]
            parallel(x, branch(rank, step)).pow(2).mean().backward()
        if syncs(step):
            optimizer.step()
            optimizer.zero_grad(set_to_none=not keep)
    return [p.detach().clone() for p in model.parameters()], parallel


def reference(
    size: int,
    branch: Any = lambda rank, step: True,
    syncs: Any = lambda step: True,
    **_: Any,
) -> list[Any]:
    """The result of one process with the whole batches."""
    pc.manual_seed(0)
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step, batch in enumerate(batches(size)):
        losses = [
            model(batch[2 * rank : 2 * rank + 2], branch(rank, step)).pow(2).mean()
            for rank in range(size)
        ]
        (sum(losses) / size).backward()
        if syncs(step):
            optimizer.step()
            optimizer.zero_grad()
    return [p.detach() for p in model.parameters()]


def check(ranks: Any, size: int = 2, close: float = 1e-6, **options: Any) -> None:
    want = reference(size, **options)
    result = ranks(size, lambda rank: [x.numpy() for x in train(rank, size, **options)[0]])
    for parameters in result:
        for own, first, other in zip(parameters, result[0], want, strict=True):
            assert (own == first).all()  # the same bits on all ranks
            assert abs(own - other.numpy()).max() < close


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("cap", [None, 1e-5])
def test_it_is_the_whole_batch(ranks: Any, size: int, cap: float | None) -> None:
    check(ranks, size, bucket_cap_mb=cap)


@pytest.mark.parametrize("keep", [False, True])
def test_parameters_that_passes_leave_out(ranks: Any, keep: bool) -> None:
    options = {"find_unused_parameters": True, "bucket_cap_mb": 1e-5}
    check(ranks, branch=lambda rank, step: (rank + step) % 2 == 0, keep=keep, **options)
    check(ranks, branch=lambda rank, step: step % 2 == 0 and rank == 1, **options)


def test_an_unused_parameter_gets_no_gradient(ranks: Any) -> None:
    def work(rank: int) -> Any:
        model = dist.DistributedDataParallel(Net(), find_unused_parameters=True)
        model(pc.ones(2, 4), False).sum().backward()
        missing = [name for name, p in model.named_parameters() if p.grad is None]
        model(pc.ones(2, 4), rank == 0).sum().backward()
        return missing, model.module.branch.weight.grad is not None

    for missing, used in ranks(2, work):
        assert missing == [
            "module.branch.weight",
            "module.branch.bias",
            *(f"module.frozen.{name}" for name in ("weight", "bias")),
        ]
        assert used  # by rank 0, so by all


def test_an_output_without_a_loss_is_an_error(ranks: Any) -> None:
    def work(rank: int) -> Any:
        model = dist.DistributedDataParallel(Net())
        model(pc.ones(2, 4), False).sum().backward()
        with pytest.raises(RuntimeError, match=r"branch\.weight, branch\.bias, so .*find_unused"):
            model(pc.ones(2, 4))
        model(pc.ones(2, 4)).sum().backward()

    ranks(2, work)


def test_gradients_of_several_passes(ranks: Any) -> None:
    check(ranks, syncs=lambda step: step % 2 == 1)


def test_a_pass_reduces_though_its_forward_call_was_within_no_sync(ranks: Any) -> None:
    def work(rank: int) -> Any:
        model = dist.DistributedDataParallel(nn.Linear(1, 1, bias=False))
        x, weight = pc.full((1, 1), rank + 1.0), model.module.weight
        results = []
        with model.no_sync():
            for _ in range(2):
                loss = model(x).sum()
                loss.backward()
                results.append(weight.grad.item())
            loss = model(x).sum()
        model.reducer.prepare_for_backward([])
        loss.backward()
        return [*results, weight.grad.item()]

    assert ranks(2, work) == [[1, 2, 4.5], [2, 4, 4.5]]

    def two_after_one_call(rank: int) -> Any:
        model = dist.DistributedDataParallel(nn.Linear(1, 1, bias=False))
        y = model(pc.full((1, 1), float(rank + 1)))
        y.sum().backward(retain_graph=True)
        (2 * y).sum().backward()
        return model.module.weight.grad.item()

    assert ranks(2, two_after_one_call) == [4.5, 4.5]


def test_a_static_graph(ranks: Any) -> None:
    check(ranks, static_graph=True, branch=lambda rank, step: False, bucket_cap_mb=1e-5)


def test_communication_hooks(ranks: Any) -> None:
    check(ranks, hook=default_hooks.allreduce_hook)
    check(ranks, hook=default_hooks.fp16_compress_hook, close=1e-2)
    check(ranks, hook=default_hooks.bf16_compress_hook, close=1e-1)
    wrapped = default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)
    check(ranks, hook=wrapped, close=1e-2, bucket_cap_mb=1e-5)

    def seen(rank: int) -> Any:
        messages = []

        def hook(state: Any, bucket: Any) -> Any:
            messages.append((bucket.index(), bucket.is_last(), len(bucket.gradients())))
            state.append(sum(g.numel() for g in bucket.gradients()) == bucket.buffer().numel())
            future = dist.Future()
            bucket.set_buffer(bucket.buffer() * 0 + 7)
            future.set_result(bucket.buffer())
            return future

        model, whole = dist.DistributedDataParallel(Net(), bucket_cap_mb=1e-5), []
        model.register_comm_hook(whole, hook)
        with pytest.raises(RuntimeError, match="already"):
            model.register_comm_hook(whole, hook)
        model(pc.ones(2, 4)).sum().backward()
        return (
            messages,
            all(whole),
            {p.grad.mean().item() for p in model.module.branch.parameters()},
        )

    for messages, whole, values in ranks(2, seen):
        assert [index for index, _, _ in messages] == list(range(8)) and whole and values == {7.0}
        assert [last for _, last, _ in messages] == [False] * 7 + [True]


def test_parameters_and_buffers_are_those_of_rank_0(ranks: Any) -> None:
    def work(rank: int) -> Any:
        pc.manual_seed(rank)
        model = Net()
        model.seen.fill_(5.0 + rank)
        parallel = dist.DistributedDataParallel(model)
        first = model.first.weight.detach().clone(), model.seen.item()
        parallel(pc.ones(2 + rank, 4)).sum().backward()
        before = model.seen.item()
        parallel(pc.ones(2, 4)).sum().backward()
        return first[0].numpy(), first[1], before, model.seen.item()

    (weight, *zero), (other, *one) = ranks(2, work)
    assert (weight == other).all()
    assert zero == [5.0, 7.0, 9.0] and one == [5.0, 8.0, 9.0]


def test_other_parameters_are_an_error_on_all(outcomes: Any) -> None:
    def work(rank: int) -> Any:
        dist.DistributedDataParallel(nn.Linear(2, 3 + rank))

    for error in outcomes(2, work):
        assert isinstance(error, dist.MismatchError) and "weight (3, 2)" in str(error)


def test_gradients_are_views_of_buckets(ranks: Any) -> None:
    def work(rank: int) -> Any:
        model = dist.DistributedDataParallel(Net())
        for _ in range(3):
            model(pc.ones(2, 4)).sum().backward()
            (bucket,) = model.reducer.buckets
            inside = [
                p.grad.data_ptr() - bucket.buffer.data_ptr()
                for p in model.parameters()
                if p.requires_grad
            ]
            assert sorted(inside)[0] == 0 and max(inside) < 4 * bucket.buffer.numel()
            model.zero_grad()
        # in the order in which gradients come: the branch is the last to be computed
        return [model.reducer.buckets[0].parameters[i].shape for i in (0, 1)]

    for shapes in ranks(2, work):
        assert set(map(tuple, shapes)) == {(3, 3), (3,)}


def test_how_parameters_are_divided() -> None:
    parameters = [
        pc.ones(n, dtype=d) for n, d in ((4, pc.float32), (2, pc.float16), (4, pc.float32))
    ]
    assert divide(parameters, [2, 1, 0], [1, 100]) == [[2], [1], [0]]
    assert divide(parameters, [2, 1, 0], [17, 100]) == [[2, 0], [1]]
    many = [pc.ones(1) for _ in range(7)]
    assert divide(many, range(7), [4, 12]) == [[0], [1, 2, 3], [4, 5, 6]]


def test_state_and_copies(ranks: Any) -> None:
    def work(rank: int) -> Any:
        model = dist.DistributedDataParallel(Net())
        names = list(model.state_dict())
        assert all(name.startswith("module.") for name in names) and "module.seen" in names
        again = copy.deepcopy(model)
        again(pc.ones(2, 4)).sum().backward()
        assert again.module.first.weight.grad is not None and model.module.first.weight.grad is None

    ranks(2, work)


@pytest.mark.usefixtures("alone")
def test_refusals() -> None:
    with pytest.raises(ValueError, match="must have a parameter that requires grad"):
        dist.DistributedDataParallel(nn.ReLU())
    with pytest.raises(ValueError, match="`device_ids` must be None"):
        dist.DistributedDataParallel(nn.Linear(1, 1), device_ids=[0])
    with pytest.raises(NotImplementedError, match="`param_to_hook_all_reduce`"):
        dist.DistributedDataParallel(nn.Linear(1, 1), param_to_hook_all_reduce=1)
    with pytest.raises(ValueError, match="`bucket_cap_mb` must be positive"):
        dist.DistributedDataParallel(nn.Linear(1, 1), bucket_cap_mb=0)


def test_a_model_on_one_rank_of_several_groups(ranks: Any) -> None:
    def work(rank: int) -> Any:
        own, _ = dist.new_subgroups(2)
        model = dist.DistributedDataParallel(nn.Linear(1, 1, bias=False), process_group=own)
        model(pc.full((1, 1), float(rank))).sum().backward()
        return model.module.weight.grad.item()

    assert ranks(4, work) == [0.5, 0.5, 2.5, 2.5]


def test_several_dtypes(ranks: Any) -> None:
    def work(rank: int) -> Any:
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double())
        parallel = dist.DistributedDataParallel(model)
        x = parallel.module[0](pc.full((1, 2), 1.0 + rank))
        parallel.reducer.prepare()
        model[1](x.double()).sum().backward()
        return [model[0].weight.grad.dtype is pc.float32, model[1].bias.grad.tolist()]

    assert ranks(2, work) == [[True, [1.0, 1.0]]] * 2


def test_gradients_lie_in_buckets_and_are_not_copied(ranks: Any) -> None:
    def work(rank: int) -> list[bool]:
        net = nn.Sequential(nn.Linear(33, 17), nn.ReLU(), nn.Linear(17, 40))
        parallel = dist.DistributedDataParallel(net)
        results = []
        for _ in range(3):
            parallel(pc.randn(4, 33)).square().mean().backward()
            buffers = [bucket.buffer for bucket in parallel.reducer.buckets]
            for p in net.parameters():
                inside = (
                    b.data_ptr() <= p.grad.data_ptr() < b.data_ptr() + 4 * b.numel()
                    for b in buffers
                )
                results += [any(inside), p.grad.data_ptr() % 64 == 0]
            shares = parallel.process_group.provider == "shared_memory"
            results += [b.is_shared() == shares for b in buffers]
            net.zero_grad()
        # a second wrapper takes over, and the first one goes
        second = dist.DistributedDataParallel(net)
        del parallel
        second(pc.randn(4, 33)).square().mean().backward()
        buffer = second.reducer.buckets[0].buffer
        low, high = buffer.data_ptr(), buffer.data_ptr() + 4 * buffer.numel()
        return results + [low <= p.grad.data_ptr() < high for p in net.parameters()]

    for results in ranks(2, work):
        assert all(results)
