"""Batch norm and the activation behind it in one pass: when they are joined, and the results."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import plait_autograd as pa
import plait_core as pc
import plait_nn as nn
import plait_nn.functional as F

JOINED = "NativeBatchNormActivationBackward"
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "relu in place": lambda: nn.ReLU(inplace=True),
    "relu6": lambda: nn.ReLU6(inplace=True),
    "hardtanh": lambda: nn.Hardtanh(-0.5, 0.75),
    "leaky_relu": lambda: nn.LeakyReLU(0.2),
    "silu": lambda: nn.SiLU(inplace=True),
    "hardswish": nn.Hardswish,
}


@pytest.fixture(autouse=True)
def switched_on() -> Iterator[None]:
    yield
    pc.set_fusion(True)


def joins(net: nn.Module, *shape: int) -> bool:
    """Whether the last two layers of the net run as one."""
    return JOINED in repr(net(pc.randn(*(shape or (4, 3, 6, 5)))).grad_fn)


def run(net: nn.Module, x: Any, g: Any) -> list[Any]:
    """Output, gradients and statistics of a training step."""
    leaf = x.clone().requires_grad_()
    out = net(leaf)
    out.backward(g)
    values = [out, leaf.grad, *(p.grad for p in net.parameters()), *net.buffers()]
    return [value.detach().numpy() for value in values]


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("dtype", [pc.float32, pc.float64])
@pytest.mark.parametrize(
    "options", [{}, {"momentum": None}, {"affine": False}, {"track_running_stats": False}], ids=str
)
def test_the_numbers_are_those_of_single_layers(name: str, dtype: Any, options: Any) -> None:
    for shape, kind in (
        ((5, 3, 7, 6), nn.BatchNorm2d),
        ((9, 3), nn.BatchNorm1d),
        ((2, 3, 2, 3, 5), nn.BatchNorm3d),
    ):
        net = nn.Sequential(kind(3, dtype=dtype, **options), ACTIVATIONS[name]())
        for p in net.parameters():
            nn.init.normal_(p)
        x, g = pc.randn(*shape, dtype=dtype) * 2, pc.randn(*shape, dtype=dtype)
        other = copy.deepcopy(net)
        result = run(net, x, g)
        pc.set_fusion(False)
        separate = run(other, x, g)
        pc.set_fusion(True)
        at = 1e-5 if dtype is pc.float32 else 1e-12
        for one, two in zip(result, separate, strict=True):
            np.testing.assert_allclose(one, two, rtol=at, atol=at)


def test_relu_has_the_same_bits() -> None:
    net = nn.Sequential(nn.BatchNorm2d(8), nn.ReLU())
    other = copy.deepcopy(net)
    x, g = pc.randn(4, 8, 14, 14), pc.randn(4, 8, 14, 14)
    result = run(net, x, g)
    pc.set_fusion(False)
    for one, two in zip(result, run(other, x, g), strict=True):
        np.testing.assert_array_equal(one, two)


def test_which_layers_are_joined() -> None:
    assert joins(nn.Sequential(nn.BatchNorm2d(3), nn.ReLU()))
    assert joins(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU6(inplace=True)))
    assert joins(nn.Sequential(nn.Sequential(nn.BatchNorm1d(3), nn.SiLU())), 4, 3)
    assert not joins(nn.Sequential(nn.BatchNorm2d(3), nn.Tanh()))
    assert not joins(nn.Sequential(nn.BatchNorm2d(3), nn.Identity(), nn.ReLU()))
    assert not joins(nn.Sequential(nn.BatchNorm2d(3)))
    assert not joins(nn.Sequential(nn.BatchNorm2d(3), nn.ReLU()).eval())
    assert joins(nn.Sequential(nn.BatchNorm2d(3, track_running_stats=False), nn.ReLU()).eval())
    assert not joins(nn.Sequential(nn.InstanceNorm2d(3, affine=True), nn.ReLU()))
    chain = nn.Sequential(nn.BatchNorm2d(3), nn.BatchNorm2d(3), nn.ReLU(), nn.BatchNorm2d(3))
    assert chain(pc.randn(4, 3, 6, 5)).shape == (4, 3, 6, 5)


def test_hooks_keep_them_apart() -> None:
    for at in (0, 1):
        net = nn.Sequential(nn.BatchNorm2d(3), nn.ReLU())
        seen: list[Any] = []
        with net[at].register_forward_hook(lambda m, args, out, seen=seen: seen.append(out)):
            assert not joins(net) and len(seen) == 1
        assert joins(net)
        with net[at].register_full_backward_hook(lambda m, inner, outer: None):
            assert not joins(net)
    with nn.register_module_forward_hook(lambda m, args, out: None):
        assert not joins(net)
    assert joins(net)


def test_hooks_that_only_watch_see_both() -> None:
    net = nn.Sequential(nn.BatchNorm2d(3), nn.ReLU())
    calls: list[str] = []
    enter = nn.register_module_forward_pre_hook(
        lambda m, args: calls.append(type(m).__name__), only_watches=True
    )
    leave = nn.register_module_forward_hook(
        lambda m, args, out: calls.append("end"), only_watches=True
    )
    with enter, leave:
        assert joins(net)
    assert calls == ["Sequential", "BatchNorm2d", "end", "ReLU", "end", "end"]


def test_a_forward_of_ones_own_keeps_them_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(nn.BatchNorm2d):
        pass

    class Other(nn.ReLU):
        def forward(self, input: Any) -> Any:
            return super().forward(input) + 1

    assert not joins(nn.Sequential(Mine(3), nn.ReLU()))
    assert not joins(nn.Sequential(nn.BatchNorm2d(3), Other()))
    net = nn.Sequential(nn.BatchNorm2d(3), nn.ReLU())
    net[1].forward = lambda x: x * 2
    assert not joins(net)
    net = nn.Sequential(nn.BatchNorm2d(3), nn.ReLU())
    assert joins(net)
    monkeypatch.setattr(nn.ReLU, "forward", lambda self, input: input.clone())
    assert not joins(net)


def test_the_switch() -> None:
    net = nn.Sequential(nn.BatchNorm2d(3), nn.ReLU())
    assert pc.is_fusion_enabled() and joins(net)
    pc.set_fusion(False)
    assert not pc.is_fusion_enabled() and not joins(net)
    with pytest.raises(TypeError, match="set_fusion: `mode` must be a bool; got int"):
        pc.set_fusion(1)  # type: ignore[arg-type]


def test_copies_and_pickles() -> None:
    net = nn.Sequential(nn.BatchNorm2d(3), nn.ReLU())
    net(pc.randn(4, 3, 2, 2))
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert joins(other) and list(other.state_dict()) == list(net.state_dict())


def test_an_error_names_the_batch_norm() -> None:
    net = nn.Sequential(nn.BatchNorm2d(3), nn.ReLU())
    with pytest.raises(pc.ShapeError, match=r"^batch_norm: ") as caught:
        net(pc.randn(2, 4, 5, 5))
    notes = "".join(getattr(caught.value, "__notes__", ["Sequential.0: BatchNorm2d"]))
    assert "Sequential.0: BatchNorm2d" in notes


def test_the_output_may_be_overwritten() -> None:
    net = nn.Sequential(nn.BatchNorm2d(3), nn.ReLU(inplace=True))
    x = pc.randn(4, 3, 6, 5).requires_grad_()
    g = pc.randn(4, 3, 6, 5)
    net(x).backward(g)
    want = x.grad.clone()
    x.grad = None
    (net(x).mul_(2)).backward(g)  # the derivative needs the input alone
    np.testing.assert_allclose(x.grad.numpy(), 2 * want.numpy(), rtol=1e-4, atol=1e-5)
    x.grad = None
    changed = x.clone()
    out = net(changed)
    changed.add_(1)
    with pytest.raises(RuntimeError, match="overwritten"):
        out.backward(g)


def test_half_precision() -> None:
    net = nn.Sequential(nn.BatchNorm2d(3), nn.ReLU())
    x = pc.randn(4, 3, 6, 5).to(pc.bfloat16)
    result = net(x)
    pc.set_fusion(False)
    assert result.dtype is pc.bfloat16
    np.testing.assert_array_equal(result.detach().float().numpy(), net(x).detach().float().numpy())


def test_no_values() -> None:
    net = nn.Sequential(nn.BatchNorm2d(3), nn.ReLU())
    x = pc.zeros(0, 3, 4, 4).requires_grad_()
    net(x).sum().backward()
    assert tuple(x.grad.shape) == (0, 3, 4, 4)


@pytest.mark.parametrize("kind", ["relu", "hardtanh", "leaky_relu", "silu", "hardswish"])
@pytest.mark.parametrize("residual", [False, True])
def test_second_derivatives(kind: str, residual: bool) -> None:
    pc.manual_seed(3)
    x, r = (pc.randn(3, 2, 4, dtype=pc.float64).requires_grad_() for _ in range(2))
    w, b = (pc.randn(2, dtype=pc.float64).requires_grad_() for _ in range(2))

    def function(x: Any, w: Any, b: Any, r: Any) -> Any:
        return F.batch_norm_activation(
            x,
            None,
            None,
            w,
            b,
            training=True,
            activation=kind,
            residual=r if residual else None,
            min_val=-0.5,
            max_val=0.75,
        )

    leaves = (x, w, b, r) if residual else (x, w, b, None)
    assert pa.gradcheck(function, leaves)
    assert pa.gradgradcheck(function, leaves)


@pytest.mark.parametrize("make", [nn.ReLU6, nn.Hardtanh, nn.SiLU, nn.Hardswish, nn.ELU, nn.Mish])
def test_in_place_activations(make: Any) -> None:
    x, g = pc.randn(3, 50), pc.randn(3, 50)
    leaf, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    out = make()(leaf)
    out.backward(g)
    copy = other * 1
    result = make(inplace=True)(copy)
    assert result is copy
    result.backward(g)
    np.testing.assert_array_equal(result.detach().numpy(), out.detach().numpy())
    np.testing.assert_array_equal(other.grad.numpy(), leaf.grad.numpy())
    with pytest.raises(RuntimeError, match="leaf"):
        make(inplace=True)(leaf)
