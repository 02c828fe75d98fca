"""Int8 weights of linear layers: replacing, calls, states, conversions, errors."""

from __future__ import annotations

import copy
import pathlib
import pickle
from typing import Any

import pytest

import plait_core as pc
import plait_nn as nn


def network() -> Any:
    pc.manual_seed(3)
    return nn.Sequential(nn.Linear(12, 40), nn.GELU(), nn.Linear(40, 6, bias=False)).eval()


def near(a: pc.Tensor, b: pc.Tensor, bound: float) -> bool:
    return bool((a - b).abs().max() <= bound * b.abs().max())


@pytest.mark.parametrize("activations", [False, True])
def test_results_are_near_those_of_floats(activations: bool) -> None:
    model = network()
    for shape in ((12,), (3, 12), (2, 20, 12)):
        x = pc.randn(shape)
        quantized = nn.quantize_(copy.deepcopy(model), activations=activations)
        assert quantized(x).shape == model(x).shape
        assert near(quantized(x), model(x), 0.03)


def test_weights_are_rounded_to_the_nearest_step() -> None:
    linear = nn.Linear(100, 30).eval()
    linear.weight.data[4] = 0.0
    layer = nn.QuantizedLinear.from_float(linear)
    assert layer.weight.dtype is pc.int8 and layer.scale.dtype is pc.float32
    assert int(layer.weight.to(pc.int32).abs().max()) == 127
    error = (layer.dequantize() - linear.weight).abs() - layer.scale.unsqueeze(1) * 0.5001
    assert bool((error <= 0).all())
    assert layer.dequantize()[4].tolist() == [0.0] * 100


def test_replacing() -> None:
    shared = nn.Linear(4, 4)
    model = nn.ModuleDict(
        {
            "a": shared,
            "b": nn.Sequential(shared, nn.ReLU()),
            "attention": nn.MultiheadAttention(4, 2),
            "conv": nn.Conv1d(4, 4, 1),
        }
    ).eval()
    names: list[str] = []
    assert nn.quantize_(model, filter_fn=lambda _, name: bool(names.append(name)) or True) is model
    assert names == ["a", "b.0"]
    assert type(model["a"]) is nn.QuantizedLinear and model["b"][0] is model["a"]
    x = pc.randn(3, 1, 4)
    assert tuple(model["attention"](x, x, x)[0].shape) == (3, 1, 4)
    assert isinstance(model["attention"].out_proj, nn.Linear)
    encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    y = pc.randn(2, 5, 8)
    want = encoder(y)
    assert near(nn.quantize_(encoder)(y), want, 0.03)
    assert type(encoder.linear1) is nn.QuantizedLinear


def test_what_cannot_be_replaced() -> None:
    model = network()
    with pytest.raises(RuntimeError, match=r"`0` is in training mode.*eval\(\)"):
        nn.quantize_(model.train())
    model.eval()
    with pytest.raises(TypeError, match=r"is a Linear.*from_float"):
        nn.quantize_(model[0])
    with pytest.raises(TypeError, match="must be a Module; got str"):
        nn.quantize_("model")  # type: ignore[type-var]
    with pytest.raises(ValueError, match="ReLU has no Linear"):
        nn.quantize_(nn.ReLU())
    handle = model[2].register_forward_hook(lambda *_: None)
    with pytest.raises(ValueError, match=r"`2` has hooks"):
        nn.quantize_(model)
    handle.remove()
    model[2].weight.data[1, 1] = float("inf")
    with pytest.raises(ValueError, match="`2`: a weight is nan or infinite"):
        nn.quantize_(model)
    with pytest.raises(TypeError, match=r"`0`: the weight must be .* got .*float64"):
        nn.quantize_(network().to(pc.float64))
    assert all(type(layer) is not nn.QuantizedLinear for layer in model)
    with pytest.raises(TypeError, match="must be a Linear; got ReLU"):
        nn.QuantizedLinear.from_float(nn.ReLU())  # type: ignore[arg-type]


def test_training_is_refused() -> None:
    model = nn.quantize_(network())
    assert list(model.parameters()) == []
    x = pc.randn(2, 12).requires_grad_()
    with pytest.raises(RuntimeError, match=r"no gradients.*eval\(\)"):
        model.train()(x)
    with pytest.raises(TypeError, match="input"):
        model.eval()(pc.randn(2, 12, dtype=pc.float64))


def test_states(tmp_path: pathlib.Path) -> None:
    model, x = nn.quantize_(network()), pc.randn(2, 12)
    assert list(model.state_dict()) == ["0.weight", "0.scale", "0.bias", "2.weight", "2.scale"]
    pc.save(model.state_dict(), str(tmp_path / "state.safetensors"))
    state = pc.load(str(tmp_path / "state.safetensors"))
    other = nn.quantize_(
        nn.Sequential(nn.Linear(12, 40), nn.GELU(), nn.Linear(40, 6, bias=False)).eval()
    )
    assert not pc.equal(other(x), model(x))
    other.load_state_dict(state)
    assert pc.equal(other(x), model(x))
    with pytest.raises(RuntimeError, match=r"loads int8 weights; got .*float32.*before it is"):
        other.load_state_dict(network().state_dict())
    assert pc.equal(other(x), model(x))
    with pytest.raises(RuntimeError, match="scale"):
        network().load_state_dict(state)
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert pc.equal(copied(x), model(x))


@pytest.mark.parametrize("dtype", [pc.bfloat16, pc.float16])
@pytest.mark.parametrize("activations", [False, True])
def test_conversions(dtype: pc.dtype, activations: bool) -> None:
    model, x = nn.quantize_(network(), activations=activations), pc.randn(2, 12)
    want, scale = model(x), model[0].scale.clone()
    model.to(dtype)
    assert (model[0].weight.dtype, model[0].bias.dtype) == (pc.int8, dtype)
    assert pc.equal(model[0].scale, scale)
    got = model(x.to(dtype))
    assert got.dtype is dtype and near(got.to(pc.float32), want, 0.05)
    of_halves = nn.quantize_(network().to(dtype), activations=activations)
    assert near(of_halves(x.to(dtype)).to(pc.float32), want, 0.05)
    assert model.to(pc.float32)(x).dtype is pc.float32


@pytest.mark.filterwarnings("ignore:Initializing zero-element")
def test_reprs_and_sizes() -> None:
    layer = nn.QuantizedLinear(3, 2, bias=False, activations=True)
    assert repr(layer) == (
        "QuantizedLinear(in_features=3, out_features=2, bias=False, activations=True)"
    )
    assert layer(pc.ones(4, 3)).tolist() == [[0.0, 0.0]] * 4
    empty = nn.quantize_(nn.Sequential(nn.Linear(0, 3), nn.Linear(3, 0)).eval())
    assert tuple(empty(pc.ones(2, 0)).shape) == (2, 0)
    with pytest.raises(ValueError, match="in_features"):
        nn.QuantizedLinear(-1, 2)
