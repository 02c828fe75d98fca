"""Registries of modules that programs edit, and code of programs that runs during loading."""

import collections
import copy
import pickle

import pytest

import plait_core as pc
import plait_nn as nn
from plait_nn._hooks import RemovableHandle


def double(module, args, output):
    return output * 2


class WithGetattr(nn.Identity):
    def __getattr__(self, name):
        return super().__getattr__(name)


class WithGetattribute(nn.Identity):
    def __getattribute__(self, name):
        return super().__getattribute__(name)


class Impl(nn.Identity):
    def _call_impl(self, *args, **kwargs):
        return super()._call_impl(*args, **kwargs)


@pytest.mark.parametrize(
    "cls", [nn.Identity, type("Own", (nn.Identity,), {}), WithGetattr, WithGetattribute, Impl]
)
def test_hooks_that_are_assigned_directly_run(cls):
    layer = cls()
    assert layer(3) == 3
    layer._forward_hooks[7] = double
    assert layer(3) == 6
    layer._forward_hooks[8] = lambda module, args, kwargs, output: output + 1
    layer._forward_hooks_with_kwargs[8] = True
    assert layer(3) == 7
    layer._forward_hooks.move_to_end(7)
    assert layer(3) == 8
    layer._forward_hooks = collections.OrderedDict({1: double})
    assert layer(3) == 6
    layer._forward_hooks.clear()
    assert layer(3) == 3
    layer._forward_pre_hooks[1] = lambda module, args: (args[0] + 1,)
    assert layer(3) == 4
    layer._forward_pre_hooks = {}
    assert layer(3) == 3
    layer.__dict__["_forward_hooks"] = collections.UserDict({3: double})  # no dict
    assert layer(3) == 6
    layer.__dict__ = dict(reversed(nn.Identity().__dict__.items()))
    assert layer(3) == 3
    layer._forward_hooks[7] = double
    assert layer(3) == 6


def test_calls_use_getattribute_of_the_class(monkeypatch):
    class Answers(WithGetattr):
        pass

    module = Answers()
    assert module(3) == 3
    Answers.__getattribute__ = lambda self, name: (
        (lambda x: "other") if name == "forward" else object.__getattribute__(self, name)
    )
    assert module(3) == "other"
    del Answers.__getattribute__
    assert module(3) == 3
    monkeypatch.setattr(Impl, "_call_impl", lambda self, x: nn.Module._call_impl(self, x) + 1)
    assert Impl()(3) == 4 and nn.Identity()(3) == 3


def test_hooks_of_all_modules_by_hand():
    from plait_nn._hooks import GLOBAL

    layer = nn.Identity()
    GLOBAL._forward_hooks[-1] = double
    try:
        assert layer(3) == 6
    finally:
        GLOBAL._forward_hooks.clear()
    assert layer(3) == 3


def test_backward_hooks_by_hand_need_their_kind():
    layer, calls = nn.Identity(), []
    layer._backward_hooks[3] = lambda *arguments: calls.append(len(arguments))
    x = pc.ones(1, requires_grad=True)
    layer(x).backward()
    assert calls == []
    layer._is_full_backward_hook = True
    layer(x).backward()
    assert calls == [3]


def test_handles_of_dicts_of_a_library():
    hooks, options = collections.OrderedDict(), collections.OrderedDict()
    handle = RemovableHandle(hooks, extra_dict=options)
    hooks[handle.id] = options[handle.id] = print
    twin = pickle.loads(pickle.dumps(handle))
    assert twin.id == handle.id < RemovableHandle(hooks).id
    handle.remove()
    handle.remove()
    assert hooks == options == {}
    one, other = copy.deepcopy((hooks, RemovableHandle(hooks)))
    assert other.hooks_dict_ref() is one


def test_members_are_reordered_and_replaced():
    model = nn.Sequential(nn.ReLU(), nn.Linear(1, 1))
    model._modules = dict(reversed(model._modules.items()))
    assert [name for name, _ in model.named_children()] == ["1", "0"]
    model._modules["2"] = model._modules.pop("1")
    assert isinstance(model[1], nn.Linear)
    weight = nn.Parameter(pc.full((1, 1), 5.0))
    model[1]._parameters["weight"] = weight
    del model[1]._parameters["bias"]
    model[1].register_parameter("bias", None)
    assert model(pc.ones(1, 1)).item() == 5.0
    assert dict(model.named_parameters()) == {"2.weight": weight}


class Reads(nn.Module):
    """A module whose `_load_from_state_dict` looks at its weight after the weight was loaded."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(pc.zeros(1))
        self.seen = None

    def _load_from_state_dict(self, *args):
        super()._load_from_state_dict(*args)
        self.seen = self.weight.item()


def test_code_of_loading_sees_the_values():
    model = nn.Sequential(Reads(), nn.BatchNorm1d(1))
    state = model.state_dict()
    state["0.weight"] = pc.ones(1)
    model.load_state_dict(state)
    assert model[0].seen == 1.0
    state["0.weight"] = pc.full((1,), 2.0)
    del state["1.bias"]
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "1.bias"'):
        model.load_state_dict(state)
    assert model[0].seen == 2.0


def test_loading_one_module_by_itself():
    layer = nn.Linear(1, 1)
    state = {"a.weight": pc.ones(1, 1), "a.b.c": 3, "b": 4}
    missing, unexpected, errors = [], [], []
    layer._load_from_state_dict(state, "a.", {}, True, missing, unexpected, errors)
    assert (missing, unexpected, errors) == (["a.bias"], ["a.b.c"], [])
    assert layer.weight.item() == 1.0
    own = {"weight": pc.full((1, 1), 4.0)}
    metadata = {"assign_to_params_buffers": True}
    layer._load_from_state_dict(own, "", metadata, False, missing, unexpected, errors)
    assert layer.weight.data_ptr() == own["weight"].data_ptr() and len(missing) == 1


def test_a_child_gets_its_part_of_the_state():
    layer, calls = nn.Sequential(nn.Sequential(nn.Linear(1, 1)), nn.Linear(1, 1)), []
    layer[0]._register_load_state_dict_pre_hook(lambda state, *rest: calls.append(list(state)))
    state = layer.state_dict()
    layer._modules["a.b"] = nn.Linear(1, 1, bias=False)
    state["a.b.weight"] = pc.ones(1, 1)
    layer.load_state_dict(state, strict=False)
    assert calls == [["0.0.weight", "0.0.bias"]]
    assert layer._modules["a.b"].weight.item() == 1.0
    assert not hasattr(layer.state_dict()._metadata, "assign_to_params_buffers")


def test_an_error_of_one_member_is_reported():
    layer = nn.Linear(1, 1)
    layer.weight.requires_grad_(False)
    layer.register_load_state_dict_pre_hook(lambda *arguments: None)
    object.__setattr__(layer, "__class__", type("Refuses", (nn.Linear,), {"__setattr__": refuse}))
    with pytest.raises(RuntimeError, match=r'named "weight".* an exception occurred'):
        layer.load_state_dict(layer.state_dict(), assign=True)


def refuse(module, name, value):
    raise ValueError("no")


def test_a_register_buffer_without_persistent():
    class Old(nn.Module):
        def register_buffer(self, name, tensor):
            super().register_buffer(name, tensor)

    module = Old()
    module.count = nn.Buffer(pc.ones(1))
    module.count = pc.zeros(1)
    assert list(module.state_dict()) == ["count"]
    with pytest.raises(RuntimeError, match="without the persistent argument is not allowed"):
        module.other = nn.Buffer(pc.ones(1), persistent=False)


def test_buffers_are_marked_tensors():
    result = nn.Buffer(pc.ones(2), persistent=False)
    assert type(result) is pc.Tensor and isinstance(result, nn.Buffer) and not result.persistent
    assert not isinstance(pc.ones(2), nn.Buffer) and isinstance(copy.deepcopy(result), nn.Buffer)
    assert nn.Buffer(pc.ones(1, requires_grad=True)).requires_grad


def test_attributes_of_parameters_go_into_pickles():
    weight = nn.Parameter(pc.ones(1))
    weight.decay = 0.5
    assert pickle.loads(pickle.dumps(weight)).decay == 0.5


def test_conversions_call_apply_of_subclasses_with_the_parameters():
    calls = []

    class Watches(nn.Linear):
        def _apply(self, fn, recurse=True):
            calls.append(recurse)
            return super()._apply(fn, recurse)

    layer, kinds = Watches(1, 1), []
    layer.weight.grad = pc.ones(1, 1)
    gradient = layer.weight.grad
    for convert in (layer.cpu, layer.double, layer.float, layer.double):
        assert convert() is layer
    assert len(calls) == 4 and layer.weight.dtype == pc.float64
    assert layer.weight.grad is gradient and gradient.dtype == pc.float64
    layer._apply(lambda t: kinds.append((isinstance(t, nn.Parameter), t.requires_grad)) or t)
    assert kinds == [(True, True), (False, False), (True, True)]


def test_a_computed_weight_takes_the_place_of_a_parameter():
    layer = nn.LSTM(2, 3)
    x = pc.ones(4, 1, 2)
    raw = layer._parameters.pop("weight_hh_l0")
    layer.weight_hh_l0 = raw.detach() * 0
    other, _ = layer(x)
    layer._flat_weights = [
        raw.detach() if w is layer.weight_hh_l0 else w for w in layer._flat_weights
    ]
    assert not pc.equal(layer(x)[0], other)
    assert layer._flat_weights_names == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]


def test_state_dict_takes_positions_with_a_warning():
    layer, argument = nn.Linear(1, 1), {}
    with pytest.warns(FutureWarning, match="Positional args"):
        assert layer.state_dict(argument, "p.") is argument
    assert list(argument) == ["p.weight", "p.bias"]


def test_a_hook_of_states_may_return_another_only_if_it_is_private():
    layer = nn.Linear(1, 1)
    handle = layer._register_state_dict_hook(lambda module, state, prefix, metadata: {"x": 1})
    assert layer.state_dict() == {"x": 1}
    handle.remove()

    def replaces(module, state, prefix, metadata):
        return {}

    layer.register_state_dict_post_hook(replaces)
    with pytest.raises(RuntimeError, match="must return None"):
        layer.state_dict()
    with pytest.raises(RuntimeError, match="Cannot register the same function"):
        layer._register_state_dict_hook(replaces)


def test_a_replica_shares_the_tensors():
    layer = nn.BatchNorm1d(2)
    replica = layer._replicate_for_data_parallel()
    assert replica._parameters == {} and replica.running_mean is layer.running_mean
    assert replica._is_replica and "running_mean" in replica._buffers


def test_replacing_the_call_of_one_module_is_an_error() -> None:
    layer = nn.Linear(2, 2)
    with pytest.raises(NotImplementedError, match="set `forward`, or override `_call_impl`"):
        layer._call_impl = lambda x: x
    layer.forward = lambda x: "own"  # type: ignore[method-assign]
    assert layer(1) == "own"
