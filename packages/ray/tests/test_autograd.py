"""Gradients through remote calls, equal to those of one process."""

from __future__ import annotations

from typing import Any

import pytest
import remote_functions as there

import plait_core as pc
import plait_optim as optim
from plait_ray import autograd, rpc
from plait_ray.optim import DistributedOptimizer

pytestmark = pytest.mark.usefixtures("world")


def leaves(n: int) -> list[Any]:
    pc.manual_seed(n)
    return [pc.rand(3, dtype=pc.float64).requires_grad_() for _ in range(n)]


def gradients_of(function: Any, inputs: list[Any]) -> list[Any]:
    """Return the gradients of a function of the inputs and of a way to multiply: here or there."""
    with autograd.context() as context_id:
        loss = function(*inputs, lambda to, x, y: rpc.rpc_sync(to, there.product, args=(x, y)))
        autograd.backward(context_id, [loss])
        result = autograd.get_gradients(context_id)
        remote = [result.get(x) for x in inputs]
    assert all(x.grad is None for x in inputs)
    local = function(*inputs, lambda to, x, y: x * y)
    local.backward()
    for one, x in zip(remote, inputs, strict=True):
        assert (one is None) == (x.grad is None)
        assert one is None or pc.allclose(one, x.grad)
        x.grad = None
    return remote


def test_one_call() -> None:
    gradients_of(lambda x, y, mul: mul("one", x, y).sum(), leaves(2))


def test_a_tensor_that_is_used_here_and_there() -> None:
    def function(x: Any, y: Any, mul: Any) -> Any:
        shared = (x * y).exp()
        return (mul("one", shared, y) * shared + mul("two", shared, x)).sum()

    gradients_of(function, leaves(2))


def test_unused_inputs_have_no_gradient() -> None:
    assert gradients_of(lambda x, y, mul: mul("one", x, x.detach()).sum(), leaves(2))[1] is None


def test_a_chain_whose_parts_are_used_twice() -> None:
    """Each part of the graph runs once: a part for each way to it would be 2**20 here."""

    def function(x: Any, mul: Any) -> Any:
        for step in range(20):
            x = mul("one", x, x.detach() * 0 + 0.5) + mul("two", x, x.detach() * 0 + 0.5)
            x = x + step * 0
        return x.sum()

    gradients_of(function, leaves(1))


def test_calls_within_calls() -> None:
    x, y = leaves(2)
    with autograd.context() as context_id:
        loss = rpc.rpc_sync("one", there.call_on, args=("two", x, y)).sum()
        autograd.backward(context_id, [loss])
        result = autograd.get_gradients(context_id)
        assert pc.allclose(result[x], y + 1) and pc.allclose(result[y], x) and len(result) == 2
        assert x in result and pc.ones(1) not in result
        with pytest.raises(NotImplementedError, match="cannot be listed"):
            list(result)


def test_references_carry_gradients() -> None:
    x, y = leaves(2)
    with autograd.context() as context_id:
        there_x = rpc.remote("one", there.product, args=(x, y))
        loss = rpc.remote("one", there.product, args=(there_x.to_here(), y)).to_here().sum()
        autograd.backward(context_id, [loss])
        result = autograd.get_gradients(context_id)
        assert pc.allclose(result[x], y * y) and pc.allclose(result[y], 2 * x * y)


def test_several_passes() -> None:
    x, y = leaves(2)
    with autograd.context() as context_id:
        loss = rpc.rpc_sync("one", there.product, args=(x, y)).sum()
        autograd.backward(context_id, [loss], retain_graph=True)
        autograd.backward(context_id, [loss])
        assert pc.allclose(autograd.get_gradients(context_id)[x], 2 * y)
        with pytest.raises(RuntimeError, match="graph of this context was freed"):
            autograd.backward(context_id, [loss])


def test_wrong_uses() -> None:
    (x,) = leaves(1)
    with autograd.context() as context_id:
        with pytest.raises(RuntimeError, match=r"one element each .* got shape \(3,\)"):
            autograd.backward(context_id, [x * 2])
        with pytest.raises(RuntimeError, match="in another context"), autograd.context():
            pass
        result = rpc.rpc_sync("one", there.product, args=(x, x))
        with pytest.raises(RuntimeError, match=r"use .*autograd.backward\(context_id, roots\)"):
            result.sum().backward()
    with pytest.raises(RuntimeError, match="there is no context"):
        autograd.get_gradients(context_id)


def test_a_model_in_two_processes_trains_as_in_one() -> None:
    x, target = pc.rand(8, 4), pc.rand(8, 2)
    layers = (1, 4, 5), (2, 5, 2)
    stages = [rpc.remote(rank, there.Stage, args=args) for rank, args in enumerate(layers, 1)]
    references = [each for stage in stages for each in stage.rpc_sync().references()]
    optimizer = DistributedOptimizer(optim.Adam, references, lr=0.05)
    local = [there.Stage(*args) for args in layers]
    whole = optim.Adam([p for stage in local for p in stage.parameters()], lr=0.05)
    for _ in range(4):
        with autograd.context() as context_id:
            hidden = stages[0].rpc_sync().forward(x)
            loss = (stages[1].rpc_sync().forward(hidden) - target).square().mean()
            autograd.backward(context_id, [loss])
            optimizer.step(context_id)
        here = (local[1](local[0](x)) - target).square().mean()
        whole.zero_grad()
        here.backward()
        whole.step()
        assert loss.item() == here.item()
    for stage, own in zip(stages, local, strict=True):
        for one, other in zip(stage.rpc_sync().values(), own.values(), strict=True):
            assert one.equal(other)


def test_an_optimizer_that_cannot_be_made() -> None:
    with pytest.raises(ValueError, match=r"Invalid learning rate: -1\.0"):
        DistributedOptimizer(optim.SGD, [rpc.RRef(pc.ones(1))], lr=-1.0)
