"""Anomaly mode names the module in which the first NaN was made."""

from __future__ import annotations

import pytest

import plait_autograd as pa
import plait_core as pc
import plait_nn as nn


class Root(nn.Module):
    def forward(self, x: pc.Tensor) -> pc.Tensor:
        return x.sqrt()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2)
        self.head = nn.Sequential(nn.Identity(), Root())

    def forward(self, x: pc.Tensor) -> pc.Tensor:
        return self.head(self.first(x))


def test_the_path_of_the_module_is_named() -> None:
    net = Net()
    with pa.no_grad():
        for p in net.parameters():
            p.fill_(-1)
    with pa.detect_anomaly():
        loss = net(pc.ones(3, 2)).sum()
        origin = pa.find_nan(loss)
        with (
            pytest.warns(RuntimeWarning, match="Error detected in SqrtBackward"),
            pytest.raises(RuntimeError, match=r"\(module Net\.head\.1\)"),
        ):
            loss.backward()
    assert origin is not None
    assert origin.module == "Net.head.1"
    assert origin.operator == "SqrtBackward"


def test_a_diverged_parameter_is_named() -> None:
    net = Net()
    with pa.no_grad():
        net.first.weight[0, 0] = float("nan")  # as an optimizer with a large step leaves it
    loss = net(pc.ones(3, 2)).sum()
    origin = pa.find_nan(loss, net.named_parameters())
    assert origin is not None
    assert (origin.leaf, origin.shape) == ("first.weight", (2, 2))
    with pa.detect_anomaly():
        origin = pa.find_nan(net(pc.ones(3, 2)).sum(), net.named_parameters())
    assert origin is not None
    assert (origin.leaf, origin.shape, origin.module) == ("first.weight", (2, 2), "Net.first")


def test_checkpointed_modules_give_the_same_gradients() -> None:
    pc.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Tanh(), nn.Linear(4, 1))
    x = pc.rand(3, 4)

    def gradients(checkpointed: bool) -> list[object]:
        pc.manual_seed(1)
        net.zero_grad()
        y = pa.checkpoint_sequential(net, 2, x) if checkpointed else net(x)
        y.sum().backward()
        return [p.grad.tolist() for p in net.parameters()]

    assert gradients(True) == gradients(False)


def test_a_parameter_with_hooks_can_be_copied_and_saved() -> None:
    import copy
    import pickle

    layer = nn.Linear(2, 1)
    calls: list[int] = []
    layer.weight.register_hook(lambda g: calls.append(1))
    layer.weight.register_post_accumulate_grad_hook(lambda p: calls.append(2))
    other = copy.deepcopy(layer)
    again = pickle.loads(pickle.dumps(layer))
    for each in (other, again):
        each(pc.ones(1, 2)).sum().backward()
    assert calls == []
    layer(pc.ones(1, 2)).sum().backward()
    assert calls == [1, 2]
