from collections import OrderedDict

import numpy as np
import pytest

import plait_core as pc
import plait_nn as nn


def model():
    return nn.Sequential(OrderedDict(first=nn.Linear(2, 3), act=nn.ReLU(), last=nn.Linear(3, 1)))


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", pc.zeros(1, dtype=pc.int64))
        self.register_buffer("scratch", pc.zeros(1), persistent=False)
        self.register_buffer("absent", None)


NAMES = ["first.weight", "first.bias", "last.weight", "last.bias"]


def test_state_is_detached_and_shares_memory():
    net = model()
    state = net.state_dict()
    assert list(state) == NAMES
    assert not any(value.requires_grad for value in state.values())
    net.first.bias.detach().fill_(7.0)
    assert state["first.bias"].tolist() == [7.0] * 3


def test_prefix_destination_and_keep_vars():
    net = model()
    destination = {}
    assert net.state_dict(destination=destination, prefix="net.") is destination
    assert list(destination) == [f"net.{name}" for name in NAMES]
    assert net.state_dict(keep_vars=True)["first.weight"] is net.first.weight


def test_only_persistent_buffers_are_in_it():
    assert list(Counter().state_dict()) == ["count"]


def test_round_trip():
    a, b = model(), model()
    x = pc.randn(4, 2)
    assert a(x).tolist() != b(x).tolist()
    before = b.first.weight
    result = b.load_state_dict(a.state_dict())
    assert repr(result) == "<All keys matched successfully>"
    assert result.missing_keys == [] and result.unexpected_keys == []
    assert a(x).tolist() == b(x).tolist()
    assert b.first.weight is before and before.requires_grad
    a.first.weight.detach().zero_()
    assert b.first.weight.abs().sum().item() > 0


def test_a_copy_converts_the_dtype():
    counter = Counter()
    counter.load_state_dict({"count": pc.tensor([5], dtype=pc.int32)})
    assert counter.count.tolist() == [5]
    assert counter.count.dtype == pc.int64


def test_arrays_may_be_loaded():
    layer = nn.Linear(2, 1)
    layer.load_state_dict({"weight": np.array([[1.0, 2.0]]), "bias": np.array([3.0])})
    assert layer.weight.tolist() == [[1.0, 2.0]]
    assert layer(pc.ones(1, 2)).tolist() == [[6.0]]


def test_assign_takes_the_tensors_themselves():
    layer, weight = nn.Linear(2, 1), pc.ones(1, 2, dtype=pc.float64)
    parameter = nn.Parameter(pc.ones(1))
    layer.load_state_dict({"weight": weight, "bias": parameter}, assign=True)
    assert isinstance(layer.weight, nn.Parameter)
    assert layer.weight.dtype == pc.float64 and layer.weight.requires_grad
    weight.fill_(4.0)
    assert layer.weight.tolist() == [[4.0, 4.0]]
    assert layer.bias is parameter
    counter = Counter()
    count = pc.tensor([3])
    counter.load_state_dict({"count": count}, assign=True)
    assert counter.count is count


def test_all_differences_are_listed():
    net = model()
    state = net.state_dict()
    del state["last.bias"]
    state["last.scale"] = pc.ones(1)
    state["first.weight"] = pc.ones(3, 5)
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(state)
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Sequential:\n"
        '\tMissing key(s) in state_dict: "last.bias". \n'
        '\tUnexpected key(s) in state_dict: "last.scale". \n'
        "\tsize mismatch for first.weight: copying a param with shape plait.Size([3, 5]) from "
        "checkpoint, the shape in current model is plait.Size([3, 2])."
    )


def test_nothing_is_written_when_something_differs():
    net = model()
    before = net.first.weight.tolist()
    state = {name: pc.zeros(tuple(value.shape)) for name, value in net.state_dict().items()}
    state["last.bias"] = pc.zeros(9)
    with pytest.raises(RuntimeError, match="size mismatch"):
        net.load_state_dict(state, strict=False)
    assert net.first.weight.tolist() == before


def test_not_strict():
    net = model()
    state = {"first.bias": pc.full((3,), 2.0), "other": pc.zeros(1)}
    result = net.load_state_dict(state, strict=False)
    assert result.missing_keys == ["first.weight", "last.weight", "last.bias"]
    assert result.unexpected_keys == ["other"]
    assert "missing_keys=['first.weight'" in repr(result)
    assert net.first.bias.tolist() == [2.0] * 3


def test_a_prefix_too_many_or_too_few_is_recognised():
    net = model()
    state = {f"module.{name}": value for name, value in net.state_dict().items()}
    with pytest.raises(RuntimeError, match=r'there under the prefix "module."') as caught:
        net.load_state_dict(state)
    assert 'key.removeprefix("module.")' in str(caught.value)
    with pytest.raises(RuntimeError, match=r'there without the prefix "0."') as caught:
        nn.Sequential(net).load_state_dict(net.state_dict())
    assert '{"0." + key: value' in str(caught.value)


@pytest.mark.parametrize("value", [None, 3.0, "text", [1.0]])
def test_values_must_be_tensors(value):
    layer = nn.Linear(1, 1, bias=False)
    with pytest.raises(RuntimeError, match=f'"weight", expected Tensor .* {type(value)}'):
        layer.load_state_dict({"weight": value})


def test_the_state_must_be_a_mapping():
    with pytest.raises(TypeError, match=r"Expected state_dict to be dict-like, got .*list"):
        model().load_state_dict([1])


def test_a_name_of_an_absent_member_is_unexpected():
    with pytest.raises(RuntimeError, match=r'Unexpected key.* "bias"'):
        nn.Linear(1, 1, bias=False).load_state_dict(nn.Linear(1, 1).state_dict())


def test_shared_members_appear_under_both_names():
    layer = nn.Linear(1, 1)
    net = nn.Sequential(layer, layer)
    state = net.state_dict()
    assert list(state) == ["0.weight", "0.bias", "1.weight", "1.bias"]
    net.load_state_dict(state)


def test_a_module_may_write_and_read_its_own_entries():
    class Versioned(nn.Linear):
        def _save_to_state_dict(self, destination, prefix, keep_vars):
            super()._save_to_state_dict(destination, prefix, keep_vars)
            destination[prefix + "version"] = 2

        def _load_from_state_dict(self, state_dict, prefix, *rest):
            self.seen = state_dict.pop(prefix + "version")
            super()._load_from_state_dict(state_dict, prefix, *rest)

    net = nn.Sequential(Versioned(1, 1))
    state = net.state_dict()
    assert state["0.version"] == 2
    net.load_state_dict(state)
    assert net[0].seen == 2
    assert "0.version" in state


def test_loading_marks_the_write():
    layer = nn.Linear(1, 1)
    out = layer(pc.ones(1, 1).requires_grad_())
    layer.load_state_dict(layer.state_dict())
    with pytest.raises(RuntimeError):
        out.sum().backward()


def test_a_number_saved_with_a_dimension_is_loaded():
    layer = nn.BatchNorm1d(2)
    state = {name: each.clone() for name, each in layer.state_dict().items()}
    state["num_batches_tracked"] = pc.tensor([7])  # PyTorch before 0.4
    layer.load_state_dict(state)
    assert layer.num_batches_tracked.shape == () and layer.num_batches_tracked.item() == 7
    with pytest.raises(RuntimeError, match="size mismatch for num_batches_tracked"):
        layer.load_state_dict({**state, "num_batches_tracked": pc.tensor([7, 7])})


def test_a_module_on_meta_takes_tensors_by_assignment() -> None:
    with pc.device("meta"):
        module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    assert all(tensor.is_meta for tensor in module.state_dict().values())
    assert sum(tensor.untyped_storage().data_ptr() for tensor in module.parameters()) == 0
    source = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).state_dict()
    with pytest.warns(UserWarning, match=r"for \d\.\w+: copying from a non-meta parameter"):
        module.load_state_dict(source)
    assert all(tensor.is_meta for tensor in module.state_dict().values())
    module.load_state_dict(source, assign=True)
    assert all(not tensor.is_meta for tensor in module.state_dict().values())
    x = pc.ones(4, 2)
    expected = x @ source["0.weight"].T + source["0.bias"]
    assert pc.allclose(module[0](x), expected)
    assert all(parameter.requires_grad for parameter in module.parameters())
