import copy

import numpy as np
import pytest

import plait_core as pc
import plait_nn as nn
from plait_nn.utils import parametrizations, parametrize


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, x):
        return x / 2


def test_a_parameter_is_computed_from_another():
    layer = nn.Linear(2, 3)
    before = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert pc.equal(layer.weight.detach(), before)
    assert sorted(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert pc.equal(layer.parametrizations.weight.original.detach(), before / 2)
    layer(pc.ones(1, 2)).sum().backward()
    assert layer.parametrizations.weight.original.grad.tolist() == [[2.0, 2.0]] * 3
    with pytest.raises(KeyError, match="attribute 'weight' already exists"):
        layer.weight = nn.Parameter(pc.ones(3, 2))
    layer.weight = pc.ones(3, 2)
    assert layer.parametrizations.weight.original.detach().unique().tolist() == [0.5]
    twin = copy.deepcopy(layer)
    twin.weight = pc.zeros(3, 2)
    assert layer.weight.sum().item() == 6.0 and twin.weight.sum().item() == 0.0
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and layer.weight.sum().item() == 6.0
    assert isinstance(layer.weight, nn.Parameter)


def test_errors():
    with pytest.raises(ValueError, match="`scale` must be a parameter or buffer of Linear"):
        parametrize.register_parametrization(nn.Linear(1, 1), "scale", Doubled())
    with pytest.raises(ValueError, match="Linear has no parametrization of `weight`"):
        parametrize.remove_parametrizations(nn.Linear(1, 1), "weight")
    with pytest.raises(ValueError, match=r"Flatten must keep the shape \(2, 3\).* got \(6,\)"):
        parametrize.register_parametrization(nn.Linear(3, 2), "weight", nn.Flatten(0))


def test_weight_norm(draw):
    layer = parametrizations.weight_norm(nn.Linear(4, 3, dtype=pc.float64))
    g, v = draw(3, 1), draw(3, 4)
    layer.load_state_dict(
        {"parametrizations.weight.original0": g, "parametrizations.weight.original1": v},
        strict=False,
    )
    expected = g * v / np.linalg.norm(v, axis=1, keepdims=True)
    np.testing.assert_allclose(layer.weight.detach().numpy(), expected, atol=1e-12)


def test_spectral_norm_finds_the_largest_singular_value(draw):
    layer = nn.Conv2d(3, 4, 2, dtype=pc.float64)
    w = layer.weight.detach().numpy().copy()
    parametrizations.spectral_norm(layer, n_power_iterations=60)
    expected = w / np.linalg.norm(w.reshape(4, -1), 2)
    np.testing.assert_allclose(layer.weight.detach().numpy(), expected, rtol=1e-5)
    layer.eval()
    u = layer.parametrizations.weight[0]._u.clone()
    layer(pc.tensor(draw(1, 3, 4, 4))).sum().backward()
    assert pc.equal(layer.parametrizations.weight[0]._u, u)
    assert layer.parametrizations.weight.original.grad is not None


def test_functional_call(draw):
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Linear(3, 1)).double()
    own = {name: p.detach().clone() for name, p in model.named_parameters()}
    arguments = {name: pc.tensor(draw(*p.shape)).requires_grad_() for name, p in own.items()}
    running = {"1.running_mean": pc.zeros(3, dtype=pc.float64)}
    x = pc.tensor(draw(4, 2))
    result = nn.functional_call(model, (arguments, running), x)
    result.sum().backward()
    assert all(tensor.grad is not None for tensor in arguments.values())
    assert all(p.grad is None and pc.equal(p.detach(), own[n]) for n, p in model.named_parameters())
    assert model[1].running_mean.tolist() == [0.0] * 3
    assert running["1.running_mean"].abs().sum().item() > 0
    model.load_state_dict({**arguments, **running}, strict=False)
    np.testing.assert_allclose(result.detach().numpy(), model(x).detach().numpy(), atol=1e-12)
    with pytest.raises(RuntimeError, match=r"unknown: \['2.scale'\]"):
        nn.functional_call(model, {"2.scale": x}, x, strict=True)
    assert pc.equal(nn.functional_call(model, {"2.scale": x}, x), model(x))
    assert not hasattr(model[2], "scale")
    with pytest.raises(RuntimeError, match=r"missing: \['0.bias'"):
        nn.functional_call(model, {"0.weight": arguments["0.weight"]}, x, strict=True)


def test_lazy_layers():
    model = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    assert model[0].has_uninitialized_params()
    reference = model[3].weight
    twin = copy.deepcopy(model)
    assert model(pc.ones(2, 3, 5, 5)).shape == (2, 2)
    assert [type(m) for m in model] == [nn.Conv2d, nn.BatchNorm2d, nn.Flatten, nn.Linear]
    assert (
        model[3].weight is reference
        and reference.shape == (2, 36)
        and type(reference) is nn.Parameter
    )
    assert model[0].weight.detach().std().item() > 0.01
    twin.load_state_dict(model.state_dict())
    x = pc.randn(2, 3, 5, 5)
    assert pc.equal(twin.eval()(x).detach(), model.eval()(x).detach())


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_reduce_their_rows(draw, mode):
    table = draw(7, 3)
    bags = nn.EmbeddingBag.from_pretrained(pc.tensor(table), mode=mode, padding_idx=6)
    result = bags(pc.tensor([1, 2, 6, 2, 5]), pc.tensor([0, 3, 3]))
    reduce = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    expected = [reduce(table[[1, 2]], 0), np.zeros(3), reduce(table[[2, 5]], 0)]
    np.testing.assert_allclose(result.numpy(), expected, atol=1e-12)
    with pytest.raises(ValueError, match=r"`offsets` must begin with 0 .* got \[1, 0\]"):
        bags(pc.tensor([1, 2]), pc.tensor([1, 0]))
