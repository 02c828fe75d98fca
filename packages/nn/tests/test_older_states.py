"""States of older layers load, lazy layers take keywords, `functional_call` takes any name."""

from __future__ import annotations

import contextlib

import pytest

import plait_core as pc
import plait_nn as nn
from plait_nn.utils import parametrizations

LAYERS = {
    "Linear": (lambda: nn.Linear(3, 4), ["weight"]),
    "Bilinear": (lambda: nn.Bilinear(2, 3, 4), ["weight", "bias"]),
    "Embedding": (lambda: nn.Embedding(5, 3), ["weight"]),
    "Conv1d": (lambda: nn.Conv1d(2, 4, 3), ["weight"]),
    "Conv2d": (lambda: nn.Conv2d(2, 4, 3), ["weight", "bias"]),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(2, 4, 3), ["weight"]),
    "LSTM": (lambda: nn.LSTM(3, 4), ["weight_ih_l0", "weight_hh_l0"]),
}


@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("prefix", ["", "0."])
@pytest.mark.parametrize("kind", LAYERS)
def test_a_state_of_the_older_weight_norm_loads(kind, prefix, dim):
    make, names = LAYERS[kind]
    names = [name for name in names if dim != 1 or name != "bias"]
    old, new = make(), make()
    for name in names:
        nn.utils.weight_norm(old, name, dim)
        parametrizations.weight_norm(new, name, dim)
    state = {prefix + key: value for key, value in old.state_dict().items()}
    copy = dict(state)
    root = nn.Sequential(new) if prefix else new
    result = root.load_state_dict(state)
    assert not result.missing_keys and not result.unexpected_keys
    assert list(state) == list(copy)
    for name in names:
        originals = getattr(new.parametrizations, name)
        assert pc.equal(originals.original0, state[f"{prefix}{name}_g"])
        assert pc.equal(originals.original1, state[f"{prefix}{name}_v"])
    assert root.load_state_dict(root.state_dict())
    state.pop(f"{prefix}{names[0]}_g")
    with pytest.raises(RuntimeError, match=f"{names[0]}_v"):
        root.load_state_dict(state)


LAZY = sorted(name for name in dir(nn) if name.startswith("Lazy"))


@pytest.mark.parametrize("name", LAZY)
def test_lazy_layers_are_called_by_keyword(name):
    cls = getattr(nn, name)
    dims = int(name[-2]) if name[-1] == "d" else 0
    arguments = (3, 2) if "Conv" in name else (3,) if name == "LazyLinear" else ()
    x = pc.ones(2, 4, *[5] * dims)
    layer = cls(*arguments)
    result = layer(input=x)
    assert type(layer) is cls.cls_to_become
    assert pc.equal(result, layer(x)) or layer.training
    again = cls(*arguments)
    again(x)
    assert [p.shape for p in again.parameters()] == [p.shape for p in layer.parameters()]


def test_there_are_lazy_layers():
    assert len(LAZY) >= 10


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
        self.b.weight = self.a.weight
        self.register_buffer("c", pc.ones(2))
        self.register_buffer("d", self.c)
        self.factor = 2.0

    def forward(self, x):
        return self.factor * self.b(self.a(x)) + self.c + 10 * self.d


def test_functional_call_by_all_names_of_tied_tensors():
    model, x = Tied(), pc.ones(1, 2)
    two, half, zero = pc.full((2, 2), 2.0), pc.full((2, 2), 0.5), pc.zeros(2)

    def call(tensors, **options):
        return nn.functional_call(model, tensors, x, **options)[0, 0].item()

    first = 2 * 16.0 + 11
    for names in (["a.weight"], ["b.weight"], ["a.weight", "b.weight"]):
        assert call(dict.fromkeys(names, two)) == first
    assert call({"a.weight": two, "c": zero}) == call({"a.weight": two, "d": zero}) == 32.0
    assert call({"a.weight": two, "c": zero}, strict=True) == 32.0
    with pytest.raises(ValueError, match="names of one tensor and were given different tensors"):
        call({"a.weight": two, "b.weight": half})
    with pytest.raises(ValueError, match="names of one tensor"):
        call({"a.weight": two, "b.weight": two, "c": zero, "d": pc.zeros(2)}, strict=True)
    assert call({"a.weight": two, "b.weight": half}, tie_weights=False) == 2 * 4.0 + 11
    assert model.a.weight is model.b.weight and model.c is model.d


def test_functional_call_with_names_that_the_module_does_not_have():
    model, x = Tied(), pc.ones(1, 2)
    plain = model(x)
    assert pc.equal(nn.functional_call(model, {"other": pc.ones(1)}, x), plain)
    assert not hasattr(model, "other")
    with pytest.raises(TypeError, match="`factor` is not a tensor, but a float"):
        nn.functional_call(model, {"factor": pc.tensor(4.0)}, x)
    model.factor = own = pc.tensor(2.0)
    doubled = nn.functional_call(model, {"factor": pc.tensor(4.0)}, x)
    assert pc.allclose(doubled - 11, 2 * (plain - 11)) and model.factor is own
    layer = nn.Linear(2, 1, bias=False)
    biased = nn.functional_call(layer, {"bias": pc.ones(1)}, x)
    assert pc.equal(biased, layer(x) + 1) and layer.bias is None
    with pytest.raises(AttributeError):
        nn.functional_call(layer, {"inner.weight": pc.ones(1)}, x)
    with pytest.raises(RuntimeError, match=r"unknown: \['other'\], missing: \['weight'\]"):
        nn.functional_call(layer, {"other": pc.ones(1)}, x, strict=True)
    for bad in (3, [3], None):
        with pytest.raises((ValueError, TypeError, AttributeError)):
            nn.functional_call(layer, bad, x)
    with pytest.raises(TypeError, match="`weight` must be a Tensor; got int"):
        nn.functional_call(layer, {"weight": 3}, x)
    with pytest.raises(ValueError, match="`weight` is given twice"):
        nn.functional_call(layer, ({"weight": x}, {"weight": x}), x)


class Counting(nn.Module):
    """Assigns to what it has, of every kind; or deletes it first."""

    deletes = False

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(pc.ones(1))
        self.register_buffer("count", pc.zeros(1))
        self.register_buffer("passing", pc.zeros(1), persistent=False)
        self.register_buffer("none", None)
        self.number, self.plain = 3, pc.zeros(1)

    def forward(self, name):
        owner = self.child if name.startswith("child.") else self
        own = getattr(owner, name.rpartition(".")[2])
        value = pc.ones(1) if own is None else own + 1
        key = name.rpartition(".")[2]
        if self.deletes:
            delattr(owner, key)
        is_parameter = key == "weight" and not self.deletes
        setattr(owner, key, nn.Parameter(value.detach()) if is_parameter else value)
        if name == "plain":
            raise KeyError(name)


NAMES = ["weight", "count", "passing", "none", "plain", "child.count", "child.weight"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("deletes", [False, True])
def test_functional_call_returns_assigned_values(name, strict, deletes):
    """In the mapping, also behind an error; several mappings and the module stay as they are."""
    model = Counting()
    model.child, model.deletes = Counting(), deletes
    known = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    state = {**known, "plain": model.plain, "none": model.none}
    argument = dict(known) if strict else {}
    argument[name] = pc.full((1,), 30.0)
    if strict and name not in known:
        with pytest.raises(RuntimeError, match="unknown"):
            nn.functional_call(model, argument, (name,), strict=True)
        return
    for mapping in (argument, [dict(argument)], (dict(argument), {})):
        context = pytest.raises(KeyError) if name == "plain" else contextlib.nullcontext()
        with context:
            nn.functional_call(model, mapping, (name,), strict=strict)
        calls = mapping if isinstance(mapping, dict) else mapping[0]
        assert calls[name].item() == (31.0 if mapping is argument else 30.0)
        assert all(calls[key] is known[key] for key in calls if key != name)
        argument[name] = pc.full((1,), 30.0)
        owner, key = (model.child, name[6:]) if name.startswith("child.") else (model, name)
        assert getattr(owner, key) is (state.get(name))


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("child", TypeError), ("number", TypeError), ("forward", TypeError),
        ("training", TypeError), ("_buffers", TypeError), ("__class__", TypeError),
        ("weight.x", TypeError), ("number.x", TypeError), ("child.number", TypeError),
        ("", KeyError), (".", KeyError), ("child.", KeyError), ("other.x", AttributeError),
        ("child.other.x", AttributeError),
    ],
)  # fmt: skip
def test_functional_call_refuses_names_that_are_no_tensors(name, error):
    model = Counting()
    model.child = Counting()
    before = list(model.state_dict().values())
    with pytest.raises(error):
        nn.functional_call(model, {name: pc.ones(1)}, ("count",))
    with pytest.raises(RuntimeError, match="unknown"):
        nn.functional_call(model, {name: pc.ones(1)}, ("count",), strict=True)
    after = model.state_dict().values()
    assert all(x is y or pc.equal(x, y) for x, y in zip(before, after, strict=True))
