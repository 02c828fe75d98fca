"""Compiled modules are modules: parts of others, with the names of what they were made of."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import plait_core as pc
import plait_nn as nn
from plait_graph import compile


@pytest.fixture(params=[False, True], ids=["deferred", "frozen"])
def frozen(request: Any) -> bool:
    """Return each mode."""
    return bool(request.param)


class Block(nn.Module):
    """A compiled layer within a module."""

    def __init__(self, frozen: bool) -> None:
        super().__init__()
        self.layer = compile(nn.Sequential(nn.Linear(3, 3), nn.Dropout()), frozen=frozen)
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x: Any) -> Any:
        return self.norm(self.layer(x))


def test_a_compiled_module_is_a_part_of_a_module(frozen: bool) -> None:
    block = Block(frozen)
    assert isinstance(block.layer, nn.Module)
    names = ["layer.0.weight", "layer.0.bias", "norm.weight", "norm.bias"]
    assert [name for name, _ in block.named_parameters()] == names
    assert list(block.state_dict())[:4] == names
    assert [name for name, _ in block.named_modules()] == [
        *("", "layer", "layer.0", "layer.1", "norm")
    ]
    block.load_state_dict(nn_block().state_dict())
    assert "(layer): Sequential" in repr(block)
    assert block(pc.randn(4, 3)).requires_grad


def nn_block() -> nn.Module:
    block = Block(False)
    block.layer = block.layer._orig_mod
    return block


def test_modes_and_dtypes_go_through(frozen: bool) -> None:
    block = Block(frozen)
    x = pc.randn(64, 3)
    dropout = block.layer._orig_mod[1]
    assert block.eval().layer.training is False
    assert not dropout.training
    for _ in range(3):
        assert pc.equal(block.layer(x), block.layer._orig_mod[0](x))
    assert block.layer.train() is block.layer
    assert dropout.training
    assert (block.layer(x) == 0).any()
    assert block.double().layer.state_dict()["0.weight"].dtype == pc.float64
    block.requires_grad_(False)
    assert not any(p.requires_grad for p in block.layer.parameters())


def test_hooks_and_copies(frozen: bool) -> None:
    layer = compile(nn.Linear(3, 3), frozen=frozen)
    other = copy.deepcopy(layer)
    assert type(other) is type(layer) is type(pickle.loads(pickle.dumps(layer)))
    assert other.weight is not layer.weight
    handle = layer.register_forward_hook(lambda module, args, result: result * 0)
    x = pc.randn(2, 3)
    for _ in range(3):
        assert not layer(x).any()
    handle.remove()
    assert pc.equal(layer(x), other._orig_mod(x) * 0 + layer._orig_mod(x))


def test_hooks_of_inner_modules_that_come_and_go() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)).eval()
    layer, x = compile(model, frozen=True), pc.randn(2, 3)
    for _ in range(3):
        for inner in model:
            expected = model(x)
            for _ in range(3):
                assert pc.equal(layer(x), expected)
            handles = [
                inner.register_forward_hook(lambda module, args, result: result * 0),
                inner.register_forward_pre_hook(lambda module, args: (args[0] + 1,)),
            ]
            for handle in handles:
                expected = model(x)
                for _ in range(3):
                    assert pc.equal(layer(x), expected)
                handle.remove()
