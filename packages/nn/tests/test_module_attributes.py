"""Attributes of modules: Python's rules hold for members, as they do in PyTorch."""

import collections
import copy
import gc
import pickle
import subprocess
import sys

import pytest

import plait_autograd as pa
import plait_core as pc
import plait_nn as nn
from plait_core import attribute_lookup
from plait_nn.utils import parametrize


class Constrained(nn.Module):
    """A module as probabilistic libraries write it: named values have unconstrained parameters."""

    def __init__(self):
        super().__init__()
        self.__dict__["_constraints"] = {}

    def constrain(self, name, function, value):
        self._constraints[name] = function
        self.register_parameter(name + "_unconstrained", nn.Parameter(value))

    def __getattr__(self, name):
        if "_constraints" in self.__dict__ and name in self.__dict__["_constraints"]:
            return self._constraints[name](super().__getattr__(name + "_unconstrained"))
        result = super().__getattr__(name)
        if isinstance(result, nn.Parameter) and name == "bias":
            return result * 2  # a value computed from the registered parameter
        return result

    def __setattr__(self, name, value):
        if "_constraints" in self.__dict__ and name in self.__dict__["_constraints"]:
            with pa.no_grad():
                self._parameters[name + "_unconstrained"].copy_(value)
            return
        super().__setattr__(name, value)

    def __delattr__(self, name):
        if name in self._constraints:
            del self._constraints[name]
            name += "_unconstrained"
        super().__delattr__(name)


def test_a_probabilistic_library_trains_right():
    model = Constrained()
    model.constrain("scale", pc.exp, pc.zeros(1))
    model.bias = nn.Parameter(pc.ones(1))
    assert model.scale.item() == 1.0 and model.bias.item() == 2.0  # not the stored parameters
    x = pc.tensor([1.0, 2.0, 3.0])
    for _ in range(400):
        loss = ((model.scale * x + model.bias - (3 * x + 4)) ** 2).sum()
        model.zero_grad()
        loss.backward()
        with pa.no_grad():
            for parameter in model.parameters():
                parameter.sub_(0.005 * parameter.grad)
    assert model.scale.item() == pytest.approx(3, abs=1e-2)
    assert model._parameters["bias"].item() == pytest.approx(2, abs=1e-2)
    model.scale = pc.zeros(1)
    assert model.scale.item() == 1.0
    assert sorted(model.state_dict()) == ["bias", "scale_unconstrained"]
    del model.scale
    assert not hasattr(model, "scale") and sorted(model.state_dict()) == ["bias"]


class Asked(nn.Module):
    def __init__(self):
        super().__init__()
        self.asked = []
        self.weight = nn.Parameter(pc.ones(1))
        self.register_buffer("mean", pc.zeros(1))
        self.child = nn.Identity()
        self.plain = 3

    def __getattr__(self, name):
        self.__dict__.setdefault("asked", []).append(name)
        return super().__getattr__(name)


def test_getattr_is_called_for_every_member():
    module = Asked()
    module.asked.clear()
    _ = module.weight, module.mean, module.child, module.plain, module.training
    assert module.asked == ["weight", "mean", "child"]
    assert not {"weight", "mean", "child"} & set(vars(module))


def test_a_class_attribute_shadows_a_member():
    class Shadowed(nn.Module):
        weight = 3

        @property
        def bias(self):
            raise AttributeError("as if it were not there")

    module = Shadowed()
    module._parameters["weight"] = module._parameters["bias"] = nn.Parameter(pc.ones(1))
    assert module.weight == 3
    assert module.bias is module._parameters["bias"]
    with pytest.raises(KeyError, match="attribute 'weight' already exists"):
        module.register_buffer("weight", None)
    module.__dict__["weight"] = 5
    assert module.weight == 5


def test_members_stay_in_their_dicts_when_these_are_replaced():
    layer = nn.Linear(2, 2)
    weight = layer.weight
    layer._parameters = collections.OrderedDict(layer._parameters)
    assert layer.weight is weight
    layer.__dict__.pop("_parameters")
    with pytest.raises(AttributeError, match="must call super"):
        _ = layer._parameters
    assert not hasattr(layer, "weight")
    layer._parameters = {"weight": weight}
    assert layer.weight is weight


def test_hooks_made_by_hand_and_by_a_state_of_torch():
    layer = nn.Identity()
    assert layer._state_dict_hooks == {} and layer._forward_hooks == {}
    theirs = {
        "training": True,
        "_parameters": collections.OrderedDict(w=nn.Parameter(pc.ones(1))),
        "_buffers": {},
        "_modules": {},
        "_forward_hooks": collections.OrderedDict({7: lambda m, args, kwargs, out: out + 1}),
        "_forward_hooks_with_kwargs": {7: True},
        "_backward_hooks": {8: print},
        "_is_full_backward_hook": False,
    }
    module = nn.Identity.__new__(nn.Identity)
    module.__setstate__(theirs)
    assert module.w is theirs["_parameters"]["w"]
    assert module._non_persistent_buffers_set == set()
    assert module(pc.ones(1)).item() == 2.0
    assert list(module._backward_hooks) == [8] and module._is_full_backward_hook is False
    fresh = nn.Identity()
    fresh.register_full_backward_hook(print)
    nn.Module.__init__(fresh)
    assert fresh._backward_hooks == {} and fresh._is_full_backward_hook is None


def test_copies():
    layer = nn.Linear(1, 1)
    shallow, deep = copy.copy(layer), copy.deepcopy(layer)
    stored = pickle.loads(pickle.dumps(layer))
    assert shallow.weight is layer.weight and deep.weight is not layer.weight
    assert shallow._parameters is layer._parameters  # as PyTorch's
    for other in (shallow, deep, stored):
        assert pc.equal(other.weight, layer.weight) and other.bias is other._parameters["bias"]
        assert list(vars(other)) == list(vars(layer))


class Doubled(nn.Module):
    def forward(self, x):
        return x * 2

    def right_inverse(self, x):
        return x / 2


def test_a_parametrized_parameter_stays_the_same_object():
    layer = nn.Linear(1, 1)
    weight = layer.weight  # as an optimizer has it
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.parametrizations.weight.original is weight
    assert attribute_lookup.installed(type(layer))
    assert layer.bias is layer._parameters["bias"]
    copied = copy.deepcopy(layer)
    assert pc.equal(copied.weight, layer.weight)
    assert copied.parametrizations.weight.original is not weight
    for refused in (copy.copy, pickle.dumps):
        with pytest.raises(RuntimeError, match="save its state_dict"):
            refused(layer)
    parametrize.remove_parametrizations(layer, "weight")
    assert layer.weight is weight and type(layer) is nn.Linear
    before = layer.weight.tolist()
    with pytest.raises(ValueError, match="must keep the shape"):
        parametrize.register_parametrization(layer, "weight", nn.Flatten(0))
    assert layer.weight.tolist() == before


def test_a_state_with_one_name_twice():
    module = nn.Module()
    module.a = nn.Parameter(pc.ones(1))
    module._buffers["a"] = None
    assert list(module.state_dict()) == ["a"]
    assert module.load_state_dict({"a": pc.zeros(1)}).missing_keys == []
    assert module.a.item() == 0.0


def test_a_parameter_is_a_leaf():
    result = nn.Parameter(pc.ones(1), requires_grad=False)
    result.mul_(pc.ones(1, requires_grad=True))
    with pytest.raises(ValueError, match="Cannot assign non-leaf Tensor to parameter 'w'"):
        nn.Module().w = result


class Slow(nn.Module):
    def __init_subclass__(cls):
        pass  # Module's does not run


class Unusual(Slow):
    pass


class Usual(nn.Module):
    pass


@pytest.mark.parametrize("cls", [Unusual, Usual, nn.Linear, nn.Sequential])
def test_lookup_in_c_and_python(cls):
    assert attribute_lookup.installed(cls) is (cls is not Unusual)
    module = cls.__new__(cls)
    nn.Module.__init__(module)
    module.p, module.b, module.m = nn.Parameter(pc.ones(1)), nn.Buffer(pc.ones(1)), nn.Identity()
    module.register_parameter("none", None)
    assert module.p is module._parameters["p"] and module.b is module._buffers["b"]
    assert module.m is module._modules["m"] and module.none is None
    with pytest.raises(AttributeError, match=f"'{cls.__name__}' object has no attribute 'x'"):
        _ = module.x
    assert module.__getattr__("p") is module.p


def test_a_getattr_that_is_assigned_later_is_called():
    class Base(nn.Module):
        pass

    class Derived(Base):
        pass

    module = Derived()
    module.w = nn.Parameter(pc.ones(1))
    reference = module.w
    Base.__getattr__ = lambda self, name: ("asked", nn.Module.__getattr__(self, name))
    assert module.w == ("asked", reference)
    del Base.__getattr__
    assert module.w is reference
    layer, before = nn.Linear(1, 1), nn.Module.__getattr__
    nn.Module.__getattr__ = lambda self, name: ("all", before(self, name))
    try:
        assert module.w == ("all", reference) and layer.weight[0] == "all"
    finally:
        nn.Module.__getattr__ = before
    assert module.w is reference


def test_reading_members_keeps_no_references():
    module = Asked()
    plain = nn.Sequential(nn.Linear(1, 1))
    watched = [plain[0], plain[0].weight, plain._modules, plain[0]._parameters, module.weight]
    gc.collect()
    before = [sys.getrefcount(each) for each in watched]
    for _ in range(1000):
        _ = plain[0].weight, getattr(plain, "0"), module.weight
        getattr(plain, "absent", None)
    del _
    module.asked.clear()
    gc.collect()
    assert [sys.getrefcount(each) for each in watched] == before


def test_a_core_without_lookup_in_c():
    program = (
        "import sys; sys.modules['plait_core.attribute_lookup'] = None\n"
        "import plait_nn as nn\n"
        "layer = nn.Sequential(nn.Linear(1, 1))\n"
        "print(layer[0].weight is layer[0]._parameters['weight'], hasattr(layer, 'x'))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "True False\n", done.stderr
