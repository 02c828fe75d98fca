import copy
import pickle

import pytest

import plait_core as pc
import plait_nn as nn
from plait_nn._hooks import is_hooked


class Scale(nn.Module):
    def forward(self, x, factor=3.0):
        return x * factor


def test_the_hook_sees_both_ends():
    layer, calls = Scale(), []
    layer.register_full_backward_hook(lambda *arguments: calls.append(arguments))
    x = pc.ones(2, requires_grad=True)
    (layer(x, 5.0) * 7).sum().backward()
    ((module, grad_input, grad_output),) = calls
    assert module is layer
    assert (grad_input[0].tolist(), grad_input[1]) == ([35.0, 35.0], None)
    assert grad_output[0].tolist() == [7.0, 7.0]


def test_pre_hook_then_hook_change_the_gradient():
    layer = Scale()
    layer.register_full_backward_hook(lambda m, inner, outer: (inner[0] + outer[0],))
    layer.register_full_backward_pre_hook(lambda m, outer: (outer[0] * 10,))
    x = pc.ones(2, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad.tolist() == [40.0, 40.0]


def test_each_call_has_its_own_gradients():
    layer, calls = Scale(), []
    layer.register_full_backward_hook(lambda m, i, o: calls.append((i[0].item(), o[0].item())))
    x = pc.ones(1, requires_grad=True)
    layer(layer(x)).backward()
    assert calls == [(3.0, 1.0), (9.0, 3.0)]


def test_hooks_do_not_change_values_or_gradients_of_parameters():
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    hooked = copy.deepcopy(model)
    for module in hooked.modules():
        module.register_full_backward_hook(lambda *_: None)
    x = pc.randn(5, 3)
    assert (model(x) == hooked(x)).all()
    model(x).sum().backward()
    hooked(x).sum().backward()
    for own, other in zip(model.parameters(), hooked.parameters(), strict=True):
        assert (own.grad == other.grad).all()


def test_a_result_of_no_tensor_is_warned_of():
    class Names(nn.Module):
        def forward(self, x):
            return {"x": x}

    layer = Names()
    layer.register_full_backward_hook(lambda *_: None)
    with pytest.warns(
        UserWarning, match="Names: For backward hooks to be called, .* received .*dict"
    ):
        layer(pc.ones(1, requires_grad=True))


def test_errors_name_the_module_and_the_numbers():
    layer = Scale()
    layer.register_full_backward_hook(lambda *_: (None, None))
    with pytest.raises(RuntimeError, match=r"Scale: a backward hook must .*, 1; got 2"):
        layer(pc.ones(1, requires_grad=True)).backward()
    layer = nn.Linear(1, 1)
    layer.register_full_backward_hook(lambda *_: (pc.ones(1),))
    with pytest.raises(RuntimeError, match="must return None where no input requires grad"):
        layer(pc.ones(1)).backward()
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full"):
        layer.register_backward_hook(lambda *_: None)
    with pytest.raises(TypeError, match="Module: a hook must be callable; got int"):
        nn.register_module_forward_hook(3)


def test_a_module_without_hooks_takes_the_short_way_again():
    layer = nn.ReLU()
    handles = [
        layer.register_forward_hook(lambda *_: None),
        layer.register_full_backward_hook(lambda *_: None),
    ]
    assert is_hooked(layer)
    for handle in handles:
        handle.remove()
    assert not is_hooked(layer)
    lazy = nn.LazyLinear(2)
    lazy(pc.ones(1, 3))
    assert not is_hooked(lazy)
    with nn.register_module_forward_hook(lambda m, a, o: o + 1):
        assert layer(pc.ones(1)).tolist() == [2.0]
    assert layer(pc.ones(1)).tolist() == [1.0]


def test_hooked_modules_are_pickled_and_copied():
    layer = Scale()
    layer.register_full_backward_pre_hook(_double)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        x = pc.ones(1, requires_grad=True)
        other(x).backward()
        assert x.grad.tolist() == [6.0]


def _double(module, gradients):
    return (gradients[0] * 2,)


def test_registration_hooks_put_others_in_place():
    def halved(module, name, param):
        return nn.Parameter(pc.zeros(param.shape))

    with nn.register_module_parameter_registration_hook(halved):
        layer = nn.Linear(2, 2)
    assert isinstance(layer._parameters["weight"], nn.Parameter)
    layer = Scale()
    with nn.register_module_buffer_registration_hook(lambda m, name, buffer: buffer + 1):
        layer.register_buffer("count", pc.zeros(1))
    assert layer.count.tolist() == [1.0]


def test_a_failing_load_with_a_post_hook_names_missing_keys():
    layer = nn.Linear(1, 1)
    layer.register_load_state_dict_post_hook(lambda m, keys: keys.unexpected_keys.clear())
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "bias"'):
        layer.load_state_dict({"weight": pc.ones(1, 1), "other": pc.ones(1)})
    assert layer.weight.tolist() == [[1.0]]
    layer.load_state_dict({"weight": pc.ones(1, 1), "bias": pc.ones(1), "other": pc.ones(1)})
    layer.register_load_state_dict_post_hook(lambda m, keys: keys)
    with pytest.raises(AssertionError, match="not expected to return new values"):
        layer.load_state_dict(layer.state_dict())
