"""`Sequential` without gradients: a convolution and a batch norm as one convolution."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import plait_autograd as ag
import plait_core as pc
import plait_nn as nn
from plait_nn import _folded_layers as folded

KINDS = [(nn.Conv1d, nn.BatchNorm1d, 1), (nn.Conv2d, nn.BatchNorm2d, 2)]
KINDS += [(nn.Conv3d, nn.BatchNorm3d, 3)]


def filled(norm: Any) -> Any:
    """Give all members of a batch norm values of their own."""
    with ag.no_grad():
        for member in (norm.running_mean, norm.weight, norm.bias):
            if member is not None:
                member.normal_()
        norm.running_var.uniform_(0.5, 2.0)
    return norm


def model(conv: Any = nn.Conv2d, norm: Any = nn.BatchNorm2d, **options: Any) -> nn.Sequential:
    layers = conv(4, 6, 3, groups=2, **options), filled(norm(6)), nn.ReLU()
    return nn.Sequential(*layers).eval()


def check(layers: nn.Sequential, x: pc.Tensor, apart: bool = False) -> None:
    """Compare with the layers one by one, which are asked for by their gradients."""
    expected = x
    for layer in layers:
        expected = layer(expected)
    with ag.no_grad():
        for _ in range(3):
            assert pc.allclose(layers(x), expected.detach(), rtol=1e-4, atol=1e-5)
    assert (layers[0] in folded._kept) is not apart


@pytest.mark.parametrize(("conv", "norm", "dims"), KINDS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [pc.float32, pc.float64])
def test_results(conv: Any, norm: Any, dims: int, bias: bool, dtype: Any) -> None:
    layers = model(conv, norm, bias=bias, stride=2, padding=1).to(dtype)
    check(layers, pc.randn(2, 4, *[7] * dims, dtype=dtype))


def test_without_weight_and_bias() -> None:
    x = pc.randn(2, 3, 5, 5)
    check(nn.Sequential(nn.Conv2d(3, 4, 2), filled(nn.BatchNorm2d(4, affine=False))).eval(), x)


WRITES: list[Callable[[nn.Sequential], object]] = [
    lambda m: m[0].weight.mul_(2),
    lambda m: m[0].bias.add_(1),
    lambda m: m[1].weight.neg_(),
    lambda m: m[1].bias.view(3, 2).add_(1),
    lambda m: m[1].running_mean.add_(1),
    lambda m: m[1].running_var.mul_(3),
    lambda m: setattr(m[1], "eps", 0.5),
    lambda m: setattr(m[0].weight, "data", pc.randn(6, 2, 3, 3)),
    lambda m: setattr(m[0], "weight", nn.Parameter(pc.randn(6, 2, 3, 3))),
    lambda m: m.load_state_dict(model().state_dict()),
    lambda m: m.load_state_dict(model().state_dict(), assign=True),
    lambda m: m[0].reset_parameters(),
]


@pytest.mark.parametrize("write", WRITES)
def test_all_writers_are_seen(write: Callable[[nn.Sequential], object]) -> None:
    layers, x = model(), pc.randn(2, 4, 6, 6)
    check(layers, x)
    with ag.no_grad():
        write(layers)
    check(layers, x)


def test_arrays_that_share_memory() -> None:
    layers, x = model(), pc.randn(2, 4, 6, 6)
    check(layers, x)
    array = layers[1].running_mean.numpy()
    for _ in range(2):
        array += 1
        expected = layers(x).detach()
        with ag.no_grad():
            assert pc.equal(layers(x), expected)


APART: list[Callable[[nn.Sequential], object]] = [
    lambda m: m[0].register_forward_hook(lambda module, args, output: output + 1),
    lambda m: m[1].register_forward_pre_hook(lambda module, args: (args[0] + 1,)),
    lambda m: setattr(m[0], "forward", lambda x: x[:, :1].expand(-1, 6, -1, -1)),
    lambda m: setattr(m[0], "padding_mode", "circular"),
]


@pytest.mark.parametrize("change", APART)
def test_observed_layers_run_separately(change: Callable[[nn.Sequential], object]) -> None:
    layers = model()
    change(layers)
    check(layers, pc.randn(2, 4, 6, 6), apart=True)


def test_by_batch_and_switched_off() -> None:
    layers, x = model(), pc.randn(3, 4, 6, 6)
    layers[1].train()
    with ag.no_grad():
        layers(x)
        assert layers[0] not in folded._kept
        layers.eval()
        layers(x)
        assert layers[0] in folded._kept
        layers.train()(x)
        assert layers[0] not in folded._kept
        pc.set_weight_cache(False)
        try:
            layers.eval()(x)
            assert layers[0] not in folded._kept
        finally:
            pc.set_weight_cache(True)


def test_errors_are_those_of_the_layers() -> None:
    layers = model()
    with ag.no_grad():
        with pytest.raises(pc.ShapeError, match="conv2d"):
            layers(pc.randn(2, 5, 6, 6))
        with pytest.raises(ValueError, match="BatchNorm2d"):
            layers(pc.randn(4, 6, 6))
        layers[1] = nn.BatchNorm2d(5).eval()
        with pytest.raises(ValueError, match="batch_norm"):
            layers(pc.randn(2, 4, 6, 6))


def test_copies_and_ends() -> None:
    layers, x = model(), pc.randn(2, 4, 6, 6)
    check(layers, x)
    check(copy.deepcopy(layers), x)
    check(pickle.loads(pickle.dumps(layers)), x)
    before = len(folded._kept)
    del layers
    gc.collect()
    assert len(folded._kept) < before


JOINED: dict[str, Callable[[], nn.Module]] = {
    "relu": lambda: nn.ReLU(inplace=True),
    "relu6": nn.ReLU6,
    "hardtanh": lambda: nn.Hardtanh(-0.5, 0.75),
    "leaky_relu": lambda: nn.LeakyReLU(0.2),
    "silu": nn.SiLU,
    "hardswish": nn.Hardswish,
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the activations that ran together with a convolution."""
    result: list[str] = []
    operator = folded.conv2d_activation

    def watched(*args: Any) -> pc.Tensor:
        result.append(args[7])
        return operator(*args)

    monkeypatch.setattr(folded, "conv2d_activation", watched)
    return result


@pytest.mark.parametrize("name", JOINED)
@pytest.mark.parametrize("normed", [True, False])
def test_activations_join(name: str, normed: bool, calls: list[str]) -> None:
    norm = [filled(nn.BatchNorm2d(6))] if normed else []
    layers = nn.Sequential(nn.Conv2d(4, 6, 3, 2, 1), *norm, JOINED[name](), nn.Conv2d(6, 2, 1))
    x = pc.randn(2, 4, 9, 9)
    before = x.clone()
    with ag.no_grad():
        result = layers.eval()(x)
        assert len(calls) == 1
        pc.set_fusion(False)
        try:
            assert pc.equal(layers(x), result)
        finally:
            pc.set_fusion(True)
    assert len(calls) == 1
    assert pc.allclose(layers(x).detach(), result, rtol=1e-4, atol=1e-5)  # with gradients: apart
    assert len(calls) == 1
    assert pc.equal(x, before)


SEEN: list[Callable[[nn.Sequential], object]] = [
    lambda m: m[2].register_forward_hook(lambda module, args, output: output + 1),
    lambda m: setattr(m[2], "forward", lambda x: x + 1),
    lambda m: setattr(m[0], "padding", "valid"),
    lambda m: m.double(),
    lambda m: m[1].register_forward_hook(lambda module, args, output: output + 1),
    lambda m: m.train(),
]


@pytest.mark.parametrize("number", range(len(SEEN)))
def test_activations_with_another_reference(number: int, calls: list[str]) -> None:
    layers = model()
    SEEN[number](layers)
    x = pc.randn(2, 4, 6, 6, dtype=layers[0].weight.dtype)
    with ag.no_grad():
        expected = x
        for layer in layers:
            expected = layer(expected)
        assert pc.allclose(layers(x), expected, rtol=1e-4, atol=1e-5)
    assert len(calls) == (number == 3)  # float64 has the same kernels


def test_hooks_that_only_watch_see_all_joined_layers(calls: list[str]) -> None:
    layers, records = model(), []
    enter = nn.register_module_forward_pre_hook(
        lambda m, args: records.append(type(m).__name__), only_watches=True
    )
    leave = nn.register_module_forward_hook(
        lambda m, args, out: records.append("end"), only_watches=True
    )
    with enter, leave, ag.no_grad():
        layers(pc.randn(2, 4, 6, 6))
    assert records == ["Sequential", "Conv2d", "end", "BatchNorm2d", "end", "ReLU", "end", "end"]
    assert calls == ["relu"]
