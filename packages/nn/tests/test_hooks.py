import copy
import pickle

import pytest

import plait_core as pc
import plait_nn as nn
from plait_nn._hooks import RemovableHandle


class Add(nn.Module):
    def forward(self, x, amount=1):
        return x + amount


def test_forward_hook_sees_and_changes_the_output():
    layer, calls = Add(), []

    def hook(module, args, output):
        calls.append((module, args, output))
        return output * 10

    handle = layer.register_forward_hook(hook)
    assert layer(1) == 20
    assert calls == [(layer, (1,), 2)]
    handle.remove()
    handle.remove()
    assert layer(1) == 2


def test_pre_hook_sees_and_changes_the_arguments():
    layer = Add()
    with layer.register_forward_pre_hook(lambda module, args: args[0] * 100):
        assert layer(1) == 101
    with layer.register_forward_pre_hook(lambda module, args: (5, 5)):
        assert layer(1) == 10
    with layer.register_forward_pre_hook(lambda module, args: None):
        assert layer(1) == 2
    assert layer(1) == 2


def test_hooks_with_kwargs():
    layer = Add()
    with layer.register_forward_pre_hook(
        lambda module, args, kwargs: (args, {"amount": kwargs["amount"] + 1}), with_kwargs=True
    ):
        assert layer(1, amount=1) == 3
    with layer.register_forward_hook(
        lambda module, args, kwargs, output: (output, kwargs), with_kwargs=True
    ):
        assert layer(1, amount=7) == (8, {"amount": 7})
    with (
        layer.register_forward_pre_hook(lambda m, args, kwargs: args, with_kwargs=True),
        pytest.raises(
            RuntimeError, match=r"must return None or a tuple of \(new_args, new_kwargs\)"
        ),
    ):
        layer(1)


def test_order_and_prepend():
    layer, order = Add(), []
    layer.register_forward_hook(lambda *_: order.append("a"))
    layer.register_forward_hook(lambda *_: order.append("b"))
    layer.register_forward_hook(lambda *_: order.append("c"), prepend=True)
    layer(1)
    assert order == ["c", "a", "b"]


def test_always_call_runs_after_an_error():
    class Fails(nn.Module):
        def forward(self):
            raise ValueError("no")

    layer, order = Fails(), []
    layer.register_forward_hook(lambda *_: order.append("sometimes"))
    layer.register_forward_hook(lambda *_: order.append("always"), always_call=True)
    layer.register_forward_hook(lambda *_: 1 / 0, always_call=True)
    with (
        pytest.warns(UserWarning, match="silenced as another error was raised in forward: div"),
        pytest.raises(ValueError, match="no"),
    ):
        layer()
    assert order == ["always"]


def test_a_hook_may_remove_itself():
    layer, calls = Add(), []

    def once(module, args, output):
        calls.append(output)
        handle.remove()

    handle = layer.register_forward_hook(once)
    layer(1)
    layer(1)
    assert calls == [2]


def test_hooks_must_be_callable():
    with pytest.raises(TypeError, match="Add: a hook must be callable; got int"):
        Add().register_forward_hook(3)


def test_a_handle_does_not_keep_its_module():
    handle = Add().register_forward_hook(print)
    handle.remove()
    pickle.loads(pickle.dumps(handle)).remove()


def double(module, args, output):
    return output * 2


def drop_bias(state, prefix, *rest):
    state.pop(prefix + "bias")


@pytest.mark.parametrize("again", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_handle_is_freed_with_its_module(again):
    layer = Add()
    layer.handle = layer.register_forward_hook(double)
    twin = again(layer)
    before = layer(3)
    assert twin(3) == before
    twin.handle.remove()
    assert twin(3) * 2 == before == layer(3)


def test_hooks_of_a_pickle_are_not_replaced():
    layer = Add()
    layer.register_forward_hook(double)
    layer = pickle.loads(pickle.dumps(layer))
    numbers = layer.__dict__["_forward_hooks"]
    number = RemovableHandle(numbers).id + 1
    numbers[number] = numbers.pop(next(iter(numbers)))  # the number that comes next
    before = layer(3)
    layer.register_forward_hook(double)
    assert layer(3) == 2 * before


@pytest.mark.parametrize("again", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_hooks_of_loading_go_with_their_module(again):
    layer = nn.Linear(2, 2)
    layer._register_load_state_dict_pre_hook(drop_bias)
    state = dict(layer.state_dict())
    twin = again(layer)
    missing = twin.load_state_dict(state, strict=False).missing_keys
    assert missing == ["bias"]


def test_hooks_work_inside_a_model():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    shapes = []
    for layer in model:
        layer.register_forward_hook(lambda m, args, out: shapes.append(tuple(out.shape)))
    model(pc.zeros(4, 2))
    assert shapes == [(4, 3), (4, 3)]
